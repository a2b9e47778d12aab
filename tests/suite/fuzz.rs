//! Broken files in great number: each is answered without a panic, soon, and in little memory (crate/FORMATS.md, "Refusals").
//!
//! Each target starts from sound and hostile files and changes them; a file with a new answer is added to the files that are changed. The
//! sequence is the same in every run. `TABTUNE_FUZZ` is the number of files for each target, 20,000 with
//! `TABTUNE_FULL=1` and 6,000 otherwise.

pub(crate) mod mutation;
mod opening;
mod opening_manifests;
mod targets;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use mutation::Random;
use tabtune_tests::allocation::{Counting, most_held};
use tabtune_tests::in_full;
use targets::{Target, as_text};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Maximum time of an answer. A busy machine may need several attempts.
const MOST_TIME: Duration = Duration::from_millis(100);
const ATTEMPTS: usize = 5;
/// Maximum number of files that are kept because their answer was new.
const MOST_FILES: usize = 2_000;

/// Returns the maximum number of bytes that opening a file may hold.
fn most_bytes(file: &[u8]) -> u64 {
    8 * file.len() as u64 + (16 << 20)
}

/// Returns the answer to one file, or the fault that was found.
fn answer(target: &Target, file: &[u8]) -> Result<String, String> {
    let mut least = Duration::MAX;
    for _ in 0..ATTEMPTS {
        let start = Instant::now();
        let (answer, held) = most_held(|| catch_unwind(AssertUnwindSafe(|| (target.answer)(file))));
        least = least.min(start.elapsed());
        let answer = answer.map_err(|cause| format!("panics: {}", as_text(cause.as_ref())))?;
        if held > most_bytes(file) {
            return Err(format!(
                "holds {held} bytes, at most {} are allowed",
                most_bytes(file)
            ));
        }
        if least <= MOST_TIME {
            return Ok(answer);
        }
    }
    Err(format!("takes {least:?}, at most {MOST_TIME:?} is allowed"))
}

fn fuzz(target: &Target) {
    let default = if in_full() { 20_000 } else { 6_000 };
    let count: u64 = std::env::var("TABTUNE_FUZZ").map_or(default, |count| {
        count.parse().expect("TABTUNE_FUZZ is a number")
    });
    let mut random = Random(20_261_122);
    let mut files = (target.seeds)();
    let seeds = files.len() as u64;
    let mut answers = BTreeSet::new();
    let start = Instant::now();
    for n in 0..count {
        // The seeds themselves come first.
        let file = if n < seeds {
            files[n as usize].clone()
        } else {
            (target.change)(&mut random, &files, target.words)
        };
        match answer(target, &file) {
            Ok(answer) => {
                if answers.insert(answer) && files.len() < MOST_FILES {
                    files.push(file);
                }
            }
            Err(fault) => {
                let path = std::env::temp_dir().join(format!("tabtune-fuzz-{}-{n}", target.name));
                std::fs::write(&path, &file).unwrap();
                panic!(
                    "{}: file {n} {fault}; it is {}",
                    target.name,
                    path.display()
                );
            }
        }
    }
    println!(
        "{}: {count} files, {} answers, {:.1} s",
        target.name,
        answers.len(),
        start.elapsed().as_secs_f64()
    );
    let expected = if count < 20_000 {
        target.answers / 2
    } else {
        target.answers
    };
    assert!(
        answers.len() >= expected,
        "{}: {} answers, expected at least {expected}: {answers:#?}",
        target.name,
        answers.len()
    );
}

#[test]
fn fuzz_safetensors_header() {
    fuzz(&targets::SAFETENSORS);
}

#[test]
fn fuzz_gguf_header() {
    fuzz(&targets::GGUF);
}

#[test]
fn fuzz_index() {
    fuzz(&targets::INDEX);
}

#[test]
fn fuzz_manifest() {
    fuzz(&targets::MANIFEST);
}

#[test]
fn fuzz_json_state_dict() {
    fuzz(&targets::STATE_JSON);
}

#[test]
fn fuzz_adapter_config() {
    fuzz(&targets::ADAPTER);
}

#[test]
fn fuzz_tokenizer_metadata() {
    fuzz(&targets::TOKENIZER);
}

#[test]
fn fuzz_block_decoders() {
    fuzz(&targets::BLOCKS);
}

/// The loop itself finds a panic, a file that takes too long, and one that takes too much memory.
#[test]
fn fuzz_finds_planted_faults() {
    fn planted(file: &[u8]) -> String {
        match file {
            [0, ..] => panic!("planted"),
            [1, ..] => drop(std::hint::black_box(vec![1u8; 17 << 20])),
            [2, ..] => std::thread::sleep(2 * MOST_TIME),
            _ => {}
        }
        String::new()
    }
    let target = Target {
        name: "planted",
        answer: planted,
        ..targets::INDEX
    };
    assert!(
        answer(&target, &[0])
            .unwrap_err()
            .contains("panics: planted")
    );
    assert!(answer(&target, &[1]).unwrap_err().contains("holds 178"));
    assert!(answer(&target, &[2]).unwrap_err().contains("takes"));
    assert_eq!(answer(&target, &[3]).unwrap(), "");
}
