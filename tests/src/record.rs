//! Kernel cases written to disk, so that the same inputs meet the same WGSL in a browser (`tests/browser/kernels.test.mjs`).

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tabtune::gpu::{Access, AnyKernel};

use crate::kernels::Case;

/// Cases with more words than this stay native: the software adapter of a browser is slow.
const MOST_WORDS: usize = 1 << 20;

thread_local! {
    /// Checks recorded by this test; each test has a thread of its own.
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

/// Words of all cases in one row, and where each buffer lies in it.
#[derive(Default)]
struct Words(Vec<u32>);

impl Words {
    fn push(&mut self, words: &[u32]) -> Value {
        let start = self.0.len();
        self.0.extend_from_slice(words);
        json!({ "start": start, "length": words.len() })
    }
}

/// Writes the cases of one check, with what their twins gave, to the folder that `TABTUNE_CASES` names: `<test>.json` and `<test>.bin`.
/// Without it, nothing.
pub fn record(cases: &[Case], twins: &[Vec<Vec<u32>>], bound: f64, mutant: &AnyKernel) {
    let Some(folder) = std::env::var_os("TABTUNE_CASES").map(PathBuf::from) else { return };
    let mut words = Words::default();
    let small = cases.iter().zip(twins).filter(|(case, _)| case.buffers.iter().map(Vec::len).sum::<usize>() <= MOST_WORDS);
    let told: Vec<Value> = small.map(|(case, twin)| describe(case, twin, &mut words)).collect();
    let Some(kernel) = cases.first().map(|case| case.kernel).filter(|_| !told.is_empty()) else { return };
    let manifest = json!({
        "kernel": kernel.name,
        "source": kernel.assembled(),
        "mutant": mutant.assembled(),
        "bound": bound,
        "cases": told,
    });
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("unnamed").replace("::", ".");
    let stem = format!("{test}.{}", COUNT.replace(COUNT.get() + 1));
    let bytes: Vec<u8> = words.0.iter().flat_map(|word| word.to_le_bytes()).collect();
    fs::create_dir_all(&folder).expect("the folder of TABTUNE_CASES can be made");
    fs::write(folder.join(format!("{stem}.json")), manifest.to_string()).expect("the folder of TABTUNE_CASES can be written");
    fs::write(folder.join(format!("{stem}.bin")), bytes).expect("the folder of TABTUNE_CASES can be written");
}

fn describe(case: &Case, twin: &[Vec<u32>], words: &mut Words) -> Value {
    let buffers: Vec<Value> = case.buffers.iter().map(|buffer| words.push(buffer)).collect();
    let expected: Vec<Value> = twin.iter().map(|buffer| words.push(buffer)).collect();
    let written: Vec<bool> = case.kernel.bindings.iter().map(|binding| binding.access != Access::Read).collect();
    json!({ "buffers": buffers, "written": written, "expected": expected, "params": case.params, "groups": case.groups })
}
