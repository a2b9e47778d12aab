//! Documents that comments and Markdown name: each exists in the repository, and has the headings that are cited of it. And the width of
//! documents.

use super::none;
use super::source::{files, root, shown, text};
use std::path::{Path, PathBuf};

const FOLDERS: [&str; 6] = [
    "crate",
    "native-runner",
    "shaders",
    "tests",
    "tests/golden",
    "web",
];
const COMMENTED: [&str; 6] = [".rs", ".wgsl", ".ts", ".mjs", ".js", ".css"];

/// Maximum number of columns of a line of prose.
const WIDTH: usize = 120;

/// A document that a line names, with the headings that it cites: `shaders/README.md, "Noise" and "Block tree"`.
#[derive(Debug, PartialEq)]
struct Mention<'a> {
    path: &'a str,
    headings: Vec<&'a str>,
}

/// Returns the comment of a line of code, if it has one.
fn comment(line: &str) -> Option<&str> {
    let start = line.trim_start();
    if ["//", "/*", "*"].iter().any(|mark| start.starts_with(mark)) {
        Some(start)
    } else {
        line.split_once(" // ").map(|(_, rest)| rest)
    }
}

/// Finds names that end in `.md`, except web addresses and bare endings such as `*.md`.
fn mentions(line: &str) -> Vec<Mention<'_>> {
    let in_path = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let mut found = Vec::new();
    for (at, ending) in line.match_indices(".md") {
        let rest = &line[at + ending.len()..];
        if rest.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')) {
            continue;
        }
        let begin = line[..at].rfind(|c: char| !in_path(c)).map_or(0, |before| {
            before + line[before..].chars().next().map_or(1, char::len_utf8)
        });
        if begin < at && !line[begin..].starts_with("//") {
            found.push(Mention {
                path: &line[begin..at + ending.len()],
                headings: headings(rest),
            });
        }
    }
    found
}

fn headings(mut rest: &str) -> Vec<&str> {
    let mut found = Vec::new();
    while let Some((heading, after)) = rest
        .strip_prefix(", \"")
        .or_else(|| rest.strip_prefix(" and \""))
        .and_then(|quoted| quoted.split_once('"'))
    {
        found.push(heading);
        rest = after;
    }
    found
}

/// Finds the file that `path` names: below the root, relative to the folder of `citing`, or by a file name that only one document has.
fn resolved(path: &str, citing: &Path, documents: &[PathBuf]) -> Option<PathBuf> {
    let home = root().canonicalize().expect("the root exists");
    let inside = |place: PathBuf| {
        place
            .canonicalize()
            .ok()
            .filter(|place| place.starts_with(&home))
    };
    let beside = citing.parent().and_then(|folder| inside(folder.join(path)));
    let found = inside(root().join(path)).or(beside);
    let mut of_name = documents
        .iter()
        .filter(|document| document.file_name().is_some_and(|name| name == path));
    found.or_else(|| of_name.next().filter(|_| of_name.next().is_none()).cloned())
}

/// Returns the faults of the documents that one line of `citing` names.
fn faults(line: &str, citing: &Path, documents: &[PathBuf]) -> Vec<String> {
    let mut faults = Vec::new();
    for Mention { path, headings } in mentions(line) {
        let Some(document) = resolved(path, citing, documents) else {
            faults.push(format!("{path} is not in the repository"));
            continue;
        };
        let whole = text(&document);
        let has = |heading: &str| {
            whole
                .lines()
                .any(|line| line.starts_with('#') && line.trim_start_matches('#').trim() == heading)
        };
        faults.extend(
            headings
                .into_iter()
                .filter(|heading| !has(heading))
                .map(|heading| format!("{path} has no heading \"{heading}\"")),
        );
    }
    faults
}

/// Lists the documents of the repository.
fn documents() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = FOLDERS
        .iter()
        .flat_map(|folder| files(folder, &[".md"]))
        .collect();
    let beside = std::fs::read_dir(root())
        .expect("the root can be listed")
        .map(|entry| entry.expect("an entry").path());
    all.extend(beside.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    all
}

#[test]
fn documents_that_are_named_exist() {
    let documents = documents();
    assert!(documents.len() > 5, "the documents are found");
    let commented = FOLDERS.iter().flat_map(|folder| files(folder, &COMMENTED));
    // Documents, and the Python makers of goldens, whose docstrings are not comments.
    let whole = FOLDERS
        .iter()
        .flat_map(|folder| files(folder, &[".py"]))
        .chain(documents.clone());
    let mut findings = Vec::new();
    for (path, is_code) in commented
        .map(|path| (path, true))
        .chain(whole.map(|path| (path, false)))
    {
        for (index, line) in text(&path).lines().enumerate() {
            let said = if is_code { comment(line) } else { Some(line) };
            let wrong = said.map_or_else(Vec::new, |said| faults(said, &path, &documents));
            findings.extend(
                wrong
                    .into_iter()
                    .map(|what| format!("{}:{}: {what}", shown(&path), index + 1)),
            );
        }
    }
    none(findings);
}

/// Numbers of the lines that are longer than [`WIDTH`]. Tables and blocks of code are not prose, and an address cannot be broken.
fn wide_lines(text: &str) -> Vec<usize> {
    let mut in_code = false;
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let start = line.trim_start();
        if start.starts_with("```") {
            in_code = !in_code;
        } else if !in_code
            && !start.starts_with('|')
            && !line.contains("://")
            && line.chars().count() > WIDTH
        {
            found.push(index + 1);
        }
    }
    found
}

#[test]
fn documents_have_lines_of_120_columns() {
    let wide = |path: &PathBuf| {
        wide_lines(&text(path))
            .into_iter()
            .map(|line| format!("{}:{line}", shown(path)))
            .collect::<Vec<_>>()
    };
    none(documents().iter().flat_map(wide).collect());
    let (fits, long) = ("é".repeat(120), "é".repeat(121));
    assert_eq!(
        wide_lines(&format!(
            "{fits}\n{long}\n| {long} |\n```\n{long}\n```\n{long}\nhttps://{long}"
        )),
        [2, 7]
    );
}

#[test]
fn documents_are_distinguished_from_what_looks_like_them() {
    let named = |line| {
        mentions(line)
            .into_iter()
            .map(|mention| mention.path)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        named("see [tests](tests/README.md#bench), `web/README.md`."),
        ["tests/README.md", "web/README.md"]
    );
    assert_eq!(
        named("every *.md, a.mdx, codes.d.mts, https://x.org/README.md, –README.md"),
        ["README.md"]
    );
    let cited = Mention {
        path: "shaders/README.md",
        headings: vec!["Noise", "Block tree"],
    };
    assert_eq!(
        mentions("(shaders/README.md, \"Noise\" and \"Block tree\")"),
        [cited]
    );
    assert_eq!(
        comment("let x = \"a.md\"; // as README.md says"),
        Some("as README.md says")
    );
    assert_eq!(comment("let x = \"a.md\";"), None);
}

#[test]
fn documents_that_are_absent_are_found() {
    let (documents, citing) = (documents(), root().join("crate/src/lib.rs"));
    let found = |line| faults(line, &citing, &documents);
    assert_eq!(found("rules.md, ../spec/rules.md, spec/rules.md").len(), 3);
    assert_eq!(
        found("../../shaders/README.md, FORMATS.md, crate/FORMATS.md"),
        Vec::<String>::new()
    );
    assert_eq!(
        found("README.md stands at the root, TORTURE.md nowhere"),
        ["TORTURE.md is not in the repository"]
    );
    assert_eq!(
        found("shaders/README.md, \"Laws\" and \"Customs\""),
        ["shaders/README.md has no heading \"Customs\""]
    );
}
