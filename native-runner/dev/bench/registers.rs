//! Compiles each kernel for a GPU that this machine lacks, and prints its registers (`tests/bench/registers`).

use std::process::Command;

use serde::{Deserialize, Serialize};
use tabtune::catalogue::catalogue;
use tabtune_registers::{
    Compiled, FAMILIES, FAMILY_VARIABLE, Loops, compile, environment, radv, runs_on_gpus,
};

use tabtune_native::error::{Result, RunError};
use tabtune_native::output::Output;

/// One line of `--json`.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    family: String,
    #[serde(flatten)]
    compiled: Compiled,
}

fn failed(reason: impl ToString) -> RunError {
    RunError::Usage(format!("bench registers: {}", reason.to_string()))
}

/// Prints one line per kernel, family and form of its loops; people get a table for each family. `quick` compiles only kernels that GPUs run,
/// for one family.
///
/// # Errors
/// `cli.usage` if RADV is not installed or refuses a kernel.
pub fn run(quick: bool, output: &Output) -> Result<()> {
    if let Ok(family) = std::env::var(FAMILY_VARIABLE) {
        return show(output, &family, compiled_here(quick)?);
    }
    let radv = radv()
        .ok_or_else(|| failed("Mesa's RADV is not installed (in Debian's mesa-vulkan-drivers)"))?;
    for family in FAMILIES.iter().take(if quick { 1 } else { FAMILIES.len() }) {
        // The loader and the driver read their environment once, and one family hides every other device, so each family has its own process.
        let program = std::env::current_exe().map_err(failed)?;
        let mut child = Command::new(program);
        child
            .args(["bench", "registers", "--json"])
            .args(quick.then_some("--quick"))
            .envs(environment(&radv, family));
        let child = child.output().map_err(failed)?;
        let text = String::from_utf8_lossy(&child.stdout);
        if !child.status.success() {
            return Err(failed(format!(
                "{family}: {} {}",
                text.trim(),
                String::from_utf8_lossy(&child.stderr).trim()
            )));
        }
        let compiled =
            |line: &str| Ok(serde_json::from_str::<Line>(line).map_err(failed)?.compiled);
        show(
            output,
            family,
            text.lines().map(compiled).collect::<Result<_>>()?,
        )?;
    }
    Ok(())
}

fn compiled_here(quick: bool) -> Result<Vec<Compiled>> {
    let kernels = || catalogue().filter(|kernel| !quick || runs_on_gpus(kernel));
    let [bounded, free] = [Loops::Bounded, Loops::Free].map(|loops| compile(kernels(), loops));
    Ok([bounded.map_err(failed)?, free.map_err(failed)?].concat())
}

fn show(output: &Output, family: &str, compiled: Vec<Compiled>) -> Result<()> {
    if output.json() {
        let mut lines = compiled.into_iter().map(|compiled| Line {
            family: family.into(),
            compiled,
        });
        return lines.try_for_each(|line| output.json_line(&line));
    }
    output.fragment(&format!("\n### {family}\n\n{HEAD}"))?;
    let (bounded, free): (Vec<_>, Vec<_>) = compiled
        .into_iter()
        .partition(|compiled| compiled.loops == Loops::Bounded);
    bounded
        .iter()
        .zip(&free)
        .try_for_each(|(bounded, free)| output.fragment(&row(bounded, free)))
}

const HEAD: &str =
    "| kernel | runs on | registers | wanted | spilled | scratch | workgroup memory | waves | instructions | per multiply-add |
|---|---|---|---|---|---|---|---|---|---|
";

/// Formats the figures of bounded and of free loops; both are shown if they differ.
fn row(bounded: &Compiled, free: &Compiled) -> String {
    let both = |of: fn(&Compiled) -> String| {
        let (bounded, free) = (of(bounded), of(free));
        if bounded == free {
            bounded
        } else {
            format!("{bounded} → {free}")
        }
    };
    let cells = [
        format!("`{}`", bounded.kernel),
        (if bounded.on_gpus { "GPU" } else { "CPU" }).into(),
        both(|it| it.registers.to_string()),
        both(|it| it.wanted.to_string()),
        both(|it| it.spilled.to_string()),
        both(|it| it.scratch_bytes.to_string()),
        both(|it| it.workgroup_bytes.to_string()),
        both(|it| it.waves.to_string()),
        both(|it| it.instructions.to_string()),
        both(|it| {
            it.products
                .iter()
                .map(|sum| format!("{:.2}", sum.per_multiply_add()))
                .collect::<Vec<_>>()
                .join(", ")
        }),
    ];
    format!("| {} |\n", cells.join(" | "))
}
