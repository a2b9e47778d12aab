//! Comments, sentences that people see, and names of tests are in common words.

use super::none;
use super::source::{files, shown, text};

const FOLDERS: [&str; 5] = ["crate", "native-runner", "shaders", "tests", "web"];
const ENDINGS: [&str; 4] = [".rs", ".wgsl", ".ts", ".mjs"];

/// First words of comments that say what a thing is about, but not what it is or does.
const FIRST: [&str; 4] = ["What", "Whether", "Of", "Those"];

/// Words of a private dialect, with the common ones.
const DIALECT: [(&str, &str); 8] = [
    ("anew", "again"),
    ("beside", "next to, alongside, in addition to"),
    ("goes on", "continues"),
    ("passed over", "skipped"),
    ("told", "reported, named, stated"),
    ("stands", "is, is written"),
    ("unless told", "by default"),
    ("dearest", "slowest"),
];

/// The text of a line of comment, without its marks and without code in backticks.
fn comment(line: &str) -> Option<String> {
    let start = line.trim_start();
    let marks = ["///", "//!", "//", "/**", "* "];
    let rest = marks.iter().find_map(|mark| start.strip_prefix(mark))?;
    // An operator is no mark of a comment.
    let prose = start.starts_with('/') || line.starts_with(" *") || line.starts_with("  ");
    prose.then(|| {
        rest.split('`')
            .step_by(2)
            .collect::<Vec<_>>()
            .join(" ")
            .trim()
            .to_string()
    })
}

/// True if the words occur in the text, not within other words and not joined to them by a hyphen.
fn has(text: &str, words: &str) -> bool {
    let text = text.to_lowercase();
    let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ':');
    text.match_indices(words).any(|(at, _)| {
        let (before, after) = (
            text[..at].chars().next_back(),
            text[at + words.len()..].chars().next(),
        );
        !before.is_some_and(part) && !after.is_some_and(|c| c != ':' && part(c))
    })
}

/// The words of a private dialect in a text.
fn dialect(text: &str) -> impl Iterator<Item = String> {
    DIALECT
        .iter()
        .filter(|(words, _)| has(text, words))
        .map(|(words, common)| format!("\"{words}\": write {common}"))
}

/// The sentences of a line: its texts in quotes of three words or more, without values that are filled in.
fn sentences(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for quote in ['"', '\'', '`'] {
        for text in line
            .split(quote)
            .skip(1)
            .step_by(2)
            .filter(|text| text.split(' ').count() > 2)
        {
            found.push(
                text.split('{')
                    .map(|part| part.split_once('}').map_or(part, |(_, after)| after))
                    .collect::<Vec<_>>()
                    .join(" "),
            );
        }
    }
    found
}

fn faults(line: &str) -> Vec<String> {
    let Some(comment) = comment(line) else {
        return Vec::new();
    };
    let first = comment
        .split(|c: char| !c.is_alphabetic())
        .next()
        .unwrap_or_default();
    let begins = FIRST
        .contains(&first)
        .then(|| format!("a comment begins with {first}"));
    begins.into_iter().chain(dialect(&comment)).collect()
}

#[test]
fn wording_of_comments_is_common() {
    let mut findings = Vec::new();
    for path in FOLDERS
        .iter()
        .flat_map(|folder| files(folder, &ENDINGS))
        .filter(|path| !path.ends_with("house/wording.rs"))
    {
        for (number, line) in (1..).zip(text(&path).lines()) {
            findings.extend(
                faults(line)
                    .into_iter()
                    .map(|fault| format!("{}:{number}: {fault}", shown(&path))),
            );
        }
    }
    none(findings);
}

#[test]
fn wording_of_sentences_and_of_names_of_tests_is_common() {
    let mut findings = Vec::new();
    let seen = [
        "crate/src",
        "native-runner",
        "shaders",
        "web/border/src",
        "web/core/src",
        "web/src",
        "web/demo",
    ];
    for path in seen
        .iter()
        .flat_map(|folder| files(folder, &[".rs", ".ts", ".html"]))
    {
        let is_page = path.extension().is_some_and(|ending| ending == "html");
        for (number, line) in (1..)
            .zip(text(&path).lines())
            .filter(|(_, line)| comment(line).is_none())
        {
            let said = if is_page {
                vec![line.to_string()]
            } else {
                sentences(line)
            };
            findings.extend(
                said.iter()
                    .flat_map(|said| dialect(said))
                    .map(|fault| format!("{}:{number}: {fault}", shown(&path))),
            );
        }
    }
    for path in files("tests/suite", &[".rs"]) {
        let whole = text(&path);
        for after in whole.split("#[test]").skip(1) {
            let name = after
                .split_once("fn ")
                .and_then(|(_, rest)| rest.split_once('('))
                .map_or("", |(name, _)| name);
            findings.extend(
                dialect(&name.replace('_', " "))
                    .map(|fault| format!("{}: {name}: {fault}", shown(&path))),
            );
        }
    }
    none(findings);
}

#[test]
fn wording_that_is_planted_is_found() {
    assert_eq!(faults("    /// What the file holds.").len(), 1);
    assert_eq!(
        faults(" * Whether it is there; it stands beside the other.").len(),
        3
    );
    assert_eq!(
        faults("    // A run goes on unless told otherwise.").len(),
        3
    );
    assert!(
        faults("/// Whatever `beside` says, the stand-in understands. [`Driver::told`]").is_empty()
    );
    assert!(faults("let told = beside(stands);").is_empty());
    let said = sentences("warn(\"{told} rows were passed over\", 'it goes on', `told`)");
    assert_eq!(said.iter().flat_map(|said| dialect(said)).count(), 2);
}
