//! Messages for people: for every code of the table an example, made of what real inputs raise. `golden/messages.txt` is to be read from top to
//! bottom; `MESSAGES=update cargo test --workspace --test suite messages` writes it.

mod constructed;
mod inputs;
mod terminal;

use std::collections::BTreeMap;
use std::process::Command;

use tabtune::error::{CODES, Raiser, Refusal, examples};

/// File in which the process that runs the inputs leaves its examples.
const OUT: &str = "TABTUNE_MESSAGES";

fn golden(name: &str) -> String {
    format!("{}/golden/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Runs the tests that raise codes, in one thread, and returns code and values of each example.
fn raised() -> BTreeMap<String, String> {
    let out = std::env::temp_dir().join(format!("tabtune-messages-{}.json", std::process::id()));
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "--test-threads=1", "--quiet"])
        .args(inputs::TESTS)
        .arg("words_written")
        .env(OUT, &out);
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    let found: BTreeMap<String, String> =
        serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    std::fs::remove_file(&out).unwrap();
    found
}

/// Writes the examples of this process, if it is the one that runs the inputs.
pub fn write_examples() {
    let Some(out) = std::env::var_os(OUT) else {
        return;
    };
    inputs::open_files();
    let found: BTreeMap<_, _> = examples()
        .into_iter()
        .map(|values| (values.code, values.encoded()))
        .collect();
    std::fs::write(out, serde_json::to_string(&found).unwrap()).unwrap();
}

/// Returns the values that a text has encoded.
fn decoded(encoded: &str) -> Refusal {
    let parts: Vec<&str> = encoded
        .trim_matches(['\u{fdd0}', '\u{fdd2}'])
        .split('\u{fdd1}')
        .collect();
    let code = CODES.iter().find(|row| row.word == parts[0]).unwrap().word;
    let value = |at: usize| parts.get(at).map(|part| (*part).to_owned());
    let filled = |at: usize| value(at).filter(|value| !value.is_empty());
    let other = Refusal::new(tabtune::error::word!("format.unsupported"));
    Refusal {
        code,
        artifact: value(1).unwrap(),
        subject: filled(2),
        expected: filled(3),
        found: filled(4),
        hint: value(5),
        ..other
    }
}

#[test]
fn every_code_has_a_sentence_that_people_read() {
    let (mut values, mut problems) = (raised(), Vec::new());
    let mut messages = terminal::told();
    for constructed in constructed::values() {
        let code = constructed.code.to_owned();
        if values.contains_key(&code) || messages.contains_key(&code) {
            problems.push(format!("{code}: it is constructed, and an input raises it"));
        }
        values.entry(code).or_insert(constructed.encoded());
    }
    messages.extend(
        values
            .iter()
            .map(|(code, encoded)| (code.clone(), decoded(encoded).to_string())),
    );
    let missing = CODES
        .iter()
        .filter(|row| row.raiser != Raiser::Page && !messages.contains_key(row.word));
    problems.extend(missing.map(|row| format!("{}: it has no example", row.word)));
    let mut lines = String::new();
    for (code, message) in &messages {
        let line = format!("{message} [{code}]\n");
        let marks = line.contains(['\u{fdd0}', '\u{fdd1}', '\u{fdd2}'])
            || ["{subject}", "{expected}", "{found}", " ? ", " ?.", "\"?\""]
                .iter()
                .any(|one| line.contains(one));
        let ends = message.ends_with(['.', '!', '…']);
        if marks || !ends || message.starts_with(code) || message.contains(&format!("[{code}]")) {
            problems.push(format!("{code}: {message}"));
        }
        lines.push_str(&line);
    }
    let json = serde_json::to_string_pretty(&values).unwrap() + "\n";
    if std::env::var_os("MESSAGES").is_some_and(|asked| asked == "update") {
        std::fs::write(golden("messages.txt"), &lines).unwrap();
        std::fs::write(golden("messages.json"), &json).unwrap();
    }
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(
        std::fs::read_to_string(golden("messages.txt")).unwrap(),
        lines
    );
    assert_eq!(
        std::fs::read_to_string(golden("messages.json")).unwrap(),
        json
    );
}
