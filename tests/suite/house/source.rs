//! Access to the repository's files: their list, and their lines without tests and comments.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders with built, installed or generated files instead of written ones.
const MADE: [&str; 7] = [
    "target",
    "node_modules",
    "dist",
    "pkg",
    "pkg-quick",
    "generated",
    "golden",
];

/// Returns the root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ has a parent")
        .to_path_buf()
}

/// Returns a path below the root, with forward slashes.
pub fn shown(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap_or(path)
        .to_string_lossy()
        .replace('\\', "/")
}

/// Lists all written files below `folder` (a path below the root) with one of the endings; sorted, without a module's `tests.rs`.
/// A missing folder gives an empty list.
pub fn files(folder: &str, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(&root().join(folder), endings, &mut found);
    found.sort();
    found
}

fn collect(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for path in entries.map(|entry| entry.expect("a folder can be listed").path()) {
        let name = path
            .file_name()
            .expect("an entry has a name")
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            if !MADE.contains(&name.as_str()) && !name.starts_with('.') {
                collect(&path, endings, found);
            }
        } else if name != "tests.rs" && endings.iter().any(|ending| name.ends_with(ending)) {
            found.push(path);
        }
    }
}

/// Reads the text of a file.
pub fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns a Rust file up to its own tests, which are last in a file.
pub fn without_tests(text: &str) -> &str {
    text.find("\n#[cfg(test)]\nmod tests {")
        .map_or(text, |end| &text[..end])
}

/// Returns the lines of code with their numbers from 1: no tests, no comment lines, no trailing comments.
pub fn code(text: &str) -> Vec<(usize, &str)> {
    let lines = without_tests(text)
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line));
    lines
        .map(|(number, line)| (number, line.split(" //").next().unwrap_or(line)))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .collect()
}

/// Returns the stem of a file's name.
pub fn stem(path: &Path) -> String {
    path.file_stem()
        .expect("a file has a stem")
        .to_string_lossy()
        .into_owned()
}

#[test]
fn source_leaves_out_tests_and_comments() {
    let text =
        "//! doc\nuse a; // why\n/// doc\nfn f() {}\n\n#[cfg(test)]\nmod tests {\n    use b;\n}\n";
    assert_eq!(code(text), [(2, "use a;"), (4, "fn f() {}")]);
}
