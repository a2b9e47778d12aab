//! The dotted words of errors and warnings: the code raises exactly those of the table.

use std::collections::BTreeSet;

use super::source::{code, files, text};
use tabtune::error::{CLASSES, WORDS, class};

/// Every `word!("…")` of the sources.
fn raised() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in files("crate/src", &[".rs"]).into_iter().chain(files("native-runner/src", &[".rs"])) {
        let whole = text(&path);
        for (_, line) in code(&whole) {
            found.extend(line.split("word!(\"").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned));
        }
    }
    found
}

#[test]
fn words_of_the_table_are_those_that_the_code_raises() {
    // A word outside the table does not compile, so only the other direction can fail.
    let listed: BTreeSet<String> = WORDS.iter().map(ToString::to_string).collect();
    assert_eq!(listed.difference(&raised()).collect::<Vec<_>>(), Vec::<&String>::new(), "words that nobody raises");
    assert!(WORDS.is_sorted() && listed.len() == WORDS.len(), "the table is sorted and has each word once");
    let of_class = |start: &str| listed.iter().any(|word| word == start || word.starts_with(&format!("{start}.")));
    let reserved = ["integrity"];
    let idle: Vec<_> = CLASSES.iter().map(|row| row.0).filter(|start| !of_class(start) && !reserved.contains(start)).collect();
    assert_eq!(idle, Vec::<&str>::new(), "classes of no word");
}

/// A word takes the class of the longest row that begins it: words on both sides of such rows, and plain ones.
#[test]
fn words_have_the_class_of_their_longest_beginning() {
    for (word, expected) in [
        ("safetensors.header.json", "BAD_MODEL_FILE"),
        ("adapter.target.none", "BAD_MODEL_FILE"),
        ("model.config.type", "BAD_MODEL_FILE"),
        ("model.config.layers", "UNSUPPORTED_ARCH"),
        ("model.arch.unsupported", "UNSUPPORTED_ARCH"),
        ("model.tensor.missing", "BAD_MODEL_FILE"),
        ("gguf.tensor.type-unknown", "UNSUPPORTED_QUANT"),
        ("gguf.tensor.rank", "BAD_MODEL_FILE"),
        ("digest.mismatch", "INTEGRITY"),
        ("integrity.sha256", "INTEGRITY"),
        ("export.name.invalid", "BAD_OPTION"),
        ("tokenizer.text", "BAD_OPTION"),
        ("tokenizer.budget", "BAD_MODEL_FILE"),
        ("source.too-large", "LIMIT_EXCEEDED"),
        ("source.truncated", "BAD_MODEL_FILE"),
        ("model.non-finite", "NON_FINITE"),
        ("train.non-finite", "NON_FINITE"),
        ("checkpoint.version", "CHECKPOINT_VERSION"),
        ("checkpoint.chunk.hash", "CHECKPOINT_CORRUPT"),
        ("optim.state-mismatch", "CHECKPOINT_MISMATCH"),
        ("jsonx", ""),
    ] {
        assert_eq!(class(word), expected, "{word}");
    }
}
