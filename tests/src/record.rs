//! Writes kernel cases to disk, so that a browser runs the same WGSL on the same inputs (`tests/browser/kernels.test.mjs`).

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use serde_json::{Value, json};
use tabtune::gpu::{Access, AnyKernel};

use crate::kernels::Case;

/// Maximum number of words in a case that is recorded; larger ones stay native, because the software adapter of a browser is slow.
const MOST_WORDS: usize = 1 << 20;

thread_local! {
    /// Number of checks that this test has recorded. Each test has a thread of its own.
    static COUNT: Cell<usize> = const { Cell::new(0) };
    /// Hashes of the kernels and cases that this test has recorded.
    static RECORDED: RefCell<HashSet<u64>> = RefCell::default();
}

/// Words of all cases, one after another, with the position of each buffer among them.
#[derive(Default)]
struct Words(Vec<u32>);

impl Words {
    fn push(&mut self, words: &[u32]) -> Value {
        let start = self.0.len();
        self.0.extend_from_slice(words);
        json!({ "start": start, "length": words.len() })
    }
}

/// Returns a hash of these launches.
fn hash_of(cases: &[Case]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for case in cases {
        (case.kernel.name, &case.buffers, &case.params, case.groups).hash(&mut hasher);
    }
    hasher.finish()
}

/// Writes the cases of one check, with the results of their twins, to the folder that `TABTUNE_CASES` names, as `<test>.json` and `<test>.bin`.
/// Without that variable it does nothing. The mutant fails first at the case with index `caught`; `None` means that the mutant did not run
/// here, so it has to fail in the browser. If the same cases were recorded with another mutant, the kernel itself runs only this case again.
pub fn record(
    cases: &[Case],
    twins: &[Vec<Vec<u32>>],
    bound: f64,
    mutant: &AnyKernel,
    caught: Option<usize>,
) {
    let Some(folder) = std::env::var_os("TABTUNE_CASES").map(PathBuf::from) else {
        return;
    };
    let is_small = |case: &Case| case.buffers.iter().map(Vec::len).sum::<usize>() <= MOST_WORDS;
    let unproven = caught.is_none();
    let caught = caught.unwrap_or(0);
    let again = !RECORDED.with_borrow_mut(|recorded| recorded.insert(hash_of(cases)))
        && is_small(&cases[caught]);
    let caught = cases[..caught].iter().filter(|case| is_small(case)).count();
    let mut words = Words::default();
    let small = cases.iter().zip(twins).filter(|(case, _)| is_small(case));
    let told: Vec<Value> = small
        .map(|(case, twin)| describe(case, twin, &mut words))
        .collect();
    let Some(kernel) = cases
        .first()
        .map(|case| case.kernel)
        .filter(|_| !told.is_empty())
    else {
        return;
    };
    let manifest = json!({
        "kernel": kernel.name,
        "source": kernel.assembled(),
        "mutant": mutant.assembled(),
        "bound": bound,
        "caught": caught,
        "again": again,
        "unproven": unproven,
        "cases": told,
    });
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("unnamed").replace("::", ".");
    let stem = format!("{test}.{}", COUNT.replace(COUNT.get() + 1));
    let bytes: Vec<u8> = words.0.iter().flat_map(|word| word.to_le_bytes()).collect();
    fs::create_dir_all(&folder).expect("the folder of TABTUNE_CASES can be made");
    fs::write(folder.join(format!("{stem}.json")), manifest.to_string())
        .expect("the folder of TABTUNE_CASES can be written");
    fs::write(folder.join(format!("{stem}.bin")), bytes)
        .expect("the folder of TABTUNE_CASES can be written");
}

fn describe(case: &Case, twin: &[Vec<u32>], words: &mut Words) -> Value {
    let buffers: Vec<Value> = case
        .buffers
        .iter()
        .map(|buffer| words.push(buffer))
        .collect();
    let expected: Vec<Value> = twin.iter().map(|buffer| words.push(buffer)).collect();
    let written: Vec<bool> = case
        .kernel
        .bindings
        .iter()
        .map(|binding| binding.access != Access::Read)
        .collect();
    json!({ "buffers": buffers, "written": written, "expected": expected, "params": case.params, "groups": case.groups })
}
