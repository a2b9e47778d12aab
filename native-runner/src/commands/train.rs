//! `tabtune train`: the driver's loop around `Trainer::step`.

use std::path::Path;
use std::time::Instant;

use serde_json::json;
use tabtune::data::{DataFormat, Dataset};
use tabtune::device::Device;
use tabtune::model::{FreshWeights, Model};
use tabtune::tokenizer::Tokenizer;
use tabtune::train::{StepReport, Trainer};

use super::{Outcome, load_model, open_device};
use crate::args::TrainArgs;
use crate::error::{Result, RunError};
use crate::files::{checkpoint_sources, open_model, read_file};
use crate::output::Output;
use crate::progress::Progress;
use crate::wait::wait;
use crate::writer::{check_place, write_folder};
use crate::{scratch, settings};

/// The file that makes a folder a checkpoint.
const MARKER: &str = "checkpoint.json";

/// A trainer and what else its checkpoint holds.
struct Run {
    trainer: Trainer,
    tokenizer: Tokenizer,
}

/// Trains, evaluates and saves as asked; prints one line per step.
pub fn run(args: &TrainArgs, output: &Output) -> Result<Outcome> {
    if let Some(folder) = &args.out {
        check_place(folder, Some(MARKER))?;
    }
    let mut run = prepare(args)?;
    let total = run.trainer.config().steps;
    let last = args.stop_at.map_or(total, |step| step.min(total));
    let progress = Progress::new(total, run.trainer.progress().completed_steps, !output.json());
    let mut saved = None;
    while run.trainer.progress().completed_steps < last {
        let report = wait(run.trainer.step())?;
        output.json_line(&report)?;
        progress.step(report.step, shown(&report));
        let at_end = report.step == last;
        if args.eval_every.is_some_and(|n| report.step.is_multiple_of(n) || at_end) {
            evaluate(&run.trainer, report.step, output, &progress)?;
        }
        if let Some(folder) = args.out.as_deref()
            && (at_end || args.save_every.is_some_and(|n| report.step.is_multiple_of(n)))
        {
            save(&run, folder)?;
            saved = Some(folder);
        }
    }
    progress.end();
    finish(&run.trainer, saved, output)
}

fn shown(report: &StepReport) -> String {
    let rate = report.tokens as f64 / report.secs.max(1e-9);
    format!("loss {:.4} · norm {:.3} · rate {:.3e} · {rate:.0} tokens/s", report.loss, report.grad_norm, report.learning_rate)
}

fn evaluate(trainer: &Trainer, step: u64, output: &Output, progress: &Progress) -> Result<()> {
    let report = wait(trainer.evaluate(None))?;
    let line = json!({ "step": step, "eval_loss": report.loss });
    progress.suspend(|| output.line(&line, || format!("step {step}: evaluation loss {:.4}", report.loss)))
}

fn finish(trainer: &Trainer, saved: Option<&Path>, output: &Output) -> Result<Outcome> {
    let step = trainer.progress().completed_steps;
    let checkpoint = saved.map(|folder| folder.display().to_string());
    let line = json!({ "done": true, "step": step, "checkpoint": checkpoint });
    output.line(&line, || match &checkpoint {
        Some(folder) => format!("done at step {step}; checkpoint in {folder}"),
        None => format!("done at step {step}; nothing saved (no --out)"),
    })?;
    Ok(Outcome::Good)
}

fn save(run: &Run, folder: &Path) -> Result<()> {
    let mut stream = tabtune::checkpoint::write(&run.trainer, &run.tokenizer)?;
    write_folder(folder, Some(MARKER), &mut stream)?;
    Ok(())
}
