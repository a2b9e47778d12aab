//! The rules of the house that a compiler does not know: layers, places, names, lengths. crate/ARCHITECTURE.md has them in words.

mod circles;
mod documents;
mod layers;
mod names;
mod settings;
mod source;
mod stems;
mod words;

/// Fails with every finding, one a line.
#[track_caller]
fn none(findings: Vec<String>) {
    assert!(findings.is_empty(), "{} finding(s):\n{}", findings.len(), findings.join("\n"));
}
