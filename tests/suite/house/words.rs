//! The table of error codes: crate, runner and npm package raise exactly its rows.

use std::collections::BTreeSet;

use super::source::{code, files, text};
use tabtune::error::{CODES, Class, Code, Raiser, SENTENCES, class};

/// Collects every `word!("…")` of the sources.
fn raised_in_rust() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in ["crate/src", "native-runner/src", "web/core/src"]
        .iter()
        .flat_map(|folder| files(folder, &[".rs"]))
    {
        let whole = text(&path);
        for (_, line) in code(&whole) {
            found.extend(
                line.split("word!(\"")
                    .skip(1)
                    .filter_map(|rest| rest.split('"').next())
                    .map(str::to_owned),
            );
        }
    }
    found
}

/// Collects every quoted word of the npm package's sources, except generated ones and those of the fake core for tests.
fn quoted_in_typescript() -> BTreeSet<String> {
    let sources = files("web/src", &[".ts"]).into_iter().filter(|path| {
        !path
            .components()
            .any(|part| ["generated", "testing"].contains(&&*part.as_os_str().to_string_lossy()))
    });
    let quoted = |whole: String| {
        whole
            .split('\'')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    // An apostrophe in a comment shifts the quotes, so each line is read on its own.
    sources
        .flat_map(|path| {
            text(&path)
                .lines()
                .flat_map(|line| quoted(line.to_owned()))
                .collect::<Vec<_>>()
        })
        .collect()
}

fn rows(raisers: [Raiser; 2]) -> impl Iterator<Item = &'static Code> {
    CODES
        .iter()
        .filter(move |row| raisers.contains(&row.raiser))
}

#[test]
fn words_of_the_table_are_those_that_the_code_raises() {
    // A code outside the table does not compile in either language, so only the other direction can fail.
    let (rust, typescript) = (raised_in_rust(), quoted_in_typescript());
    let idle = |words: &BTreeSet<String>, raisers| {
        rows(raisers)
            .map(|row| row.word)
            .filter(|word| !words.contains(*word))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        idle(&rust, [Raiser::Core, Raiser::Both]),
        Vec::<&str>::new(),
        "rows that Rust does not raise"
    );
    assert_eq!(
        idle(&typescript, [Raiser::Page, Raiser::Both]),
        Vec::<&str>::new(),
        "rows that TypeScript does not raise"
    );
    let core: BTreeSet<&str> = rows([Raiser::Core, Raiser::Core])
        .map(|row| row.word)
        .collect();
    assert_eq!(
        typescript
            .iter()
            .filter(|word| core.contains(word.as_str()))
            .collect::<Vec<_>>(),
        Vec::<&String>::new()
    );
}

#[test]
fn words_are_sorted_and_explained() {
    assert!(
        CODES.is_sorted_by(|a, b| a.word < b.word),
        "the table is sorted and has each word once"
    );
    for (row, (sentence, hint)) in CODES.iter().zip(SENTENCES) {
        assert!(sentence.ends_with(['.', '}']), "{}: {sentence}", row.word);
        assert!(
            hint.is_empty() || hint.ends_with(['.', ']']),
            "{}: {hint}",
            row.word
        );
        for text in [sentence, hint] {
            let places = text
                .split('{')
                .skip(1)
                .filter_map(|rest| rest.split_once('}'))
                .map(|(place, _)| place.trim_start_matches('?'));
            for place in places {
                assert!(
                    ["artifact", "subject", "expected", "found"].contains(&place),
                    "{}: {{{place}}}",
                    row.word
                );
            }
            assert_eq!(
                text.matches('[').count(),
                text.matches(']').count(),
                "{}: {text}",
                row.word
            );
            assert!(
                !text.contains(row.word),
                "{}: a sentence does not name its code",
                row.word
            );
        }
    }
    for one in Class::ALL {
        assert!(
            CODES.iter().any(|row| row.class == *one),
            "no code of class {}",
            one.text()
        );
    }
}

#[test]
fn words_have_the_class_of_their_row() {
    for (word, expected) in [
        ("safetensors.header.json", "BAD_MODEL_FILE"),
        ("model.config.type", "BAD_MODEL_FILE"),
        ("model.config.layers", "UNSUPPORTED_ARCH"),
        ("gguf.tensor.type-unknown", "UNSUPPORTED_QUANT"),
        ("digest.mismatch", "INTEGRITY"),
        ("export.name.invalid", "BAD_OPTION"),
        ("tokenizer.text", "BAD_OPTION"),
        ("source.too-large", "LIMIT_EXCEEDED"),
        ("train.non-finite", "NON_FINITE"),
        ("checkpoint.version", "CHECKPOINT_VERSION"),
        ("optim.state-mismatch", "CHECKPOINT_MISMATCH"),
        ("bundle.unused", "WARNING"),
    ] {
        assert_eq!(class(word).map(Class::text), Some(expected), "{word}");
    }
    assert_eq!(class("jsonx"), None);
}
