//! Rules of the code base that the compiler does not check: layers, places, names, lengths. crate/ARCHITECTURE.md describes them.

mod circles;
mod documents;
mod layers;
mod modules;
mod names;
mod settings;
pub mod source;
mod stems;
mod surface;
mod wording;
mod words;

/// Fails with every finding, one per line.
#[track_caller]
fn none(findings: Vec<String>) {
    assert!(
        findings.is_empty(),
        "{} finding(s):\n{}",
        findings.len(),
        findings.join("\n")
    );
}
