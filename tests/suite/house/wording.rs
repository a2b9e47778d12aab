//! Comments are in common words and whole sentences.

use super::none;
use super::source::{files, shown, text};

const FOLDERS: [&str; 5] = ["crate", "native-runner", "shaders", "tests", "web"];
const ENDINGS: [&str; 4] = [".rs", ".wgsl", ".ts", ".mjs"];

/// First words of comments that say what a thing is about, but not what it is or does.
const FIRST: [&str; 4] = ["What", "Whether", "Of", "Those"];

/// Words of a private dialect, with the common ones.
const DIALECT: [(&str, &str); 6] = [
    ("beside", "next to, alongside, in addition to"),
    ("goes on", "continues"),
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
    prose.then(|| rest.split('`').step_by(2).collect::<Vec<_>>().join(" ").trim().to_string())
}

/// True if the words occur in the text, not within other words and not joined to them by a hyphen.
fn has(text: &str, words: &str) -> bool {
    let text = text.to_lowercase();
    let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ':');
    text.match_indices(words).any(|(at, _)| {
        let (before, after) = (text[..at].chars().next_back(), text[at + words.len()..].chars().next());
        !before.is_some_and(part) && !after.is_some_and(|c| c != ':' && part(c))
    })
}

fn faults(line: &str) -> Vec<String> {
    let Some(comment) = comment(line) else { return Vec::new() };
    let first = comment.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    let begins = FIRST.contains(&first).then(|| format!("a comment begins with {first}"));
    let said = DIALECT.iter().filter(|(words, _)| has(&comment, words)).map(|(words, common)| format!("\"{words}\": write {common}"));
    begins.into_iter().chain(said).collect()
}

#[test]
fn wording_of_comments_is_common() {
    let mut findings = Vec::new();
    for path in FOLDERS.iter().flat_map(|folder| files(folder, &ENDINGS)).filter(|path| !path.ends_with("house/wording.rs")) {
        for (number, line) in (1..).zip(text(&path).lines()) {
            findings.extend(faults(line).into_iter().map(|fault| format!("{}:{number}: {fault}", shown(&path))));
        }
    }
    none(findings);
}

#[test]
fn wording_that_is_planted_is_found() {
    assert_eq!(faults("    /// What the file holds.").len(), 1);
    assert_eq!(faults(" * Whether it is there; it stands beside the other.").len(), 3);
    assert_eq!(faults("    // A run goes on unless told otherwise.").len(), 3);
    assert!(faults("/// Whatever `beside` says, the stand-in understands. [`Driver::told`]").is_empty());
    assert!(faults("let told = beside(stands);").is_empty());
}
