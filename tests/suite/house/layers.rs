//! Dependencies that are allowed between modules.

use super::none;
use super::source::{code, files, root, shown, text};

/// The modules of the crate with their row. A module imports from lower rows only, never from its own.
const ROWS: [(&str, u8); 29] = [
    ("error", 0),
    ("platform", 0),
    ("bf16", 1),
    ("config", 1),
    ("interrupt", 1),
    ("random", 1),
    ("formats", 2),
    ("gpu", 3),
    ("tokenizer", 3),
    ("data", 4),
    ("device", 4),
    ("ops", 4),
    ("parameters", 4),
    ("schedule", 4),
    ("state", 4),
    ("families", 5),
    ("optim", 5),
    ("bundle", 6),
    ("model", 7),
    ("catalogue", 8),
    ("generate", 8),
    ("measure", 8),
    ("train", 8),
    ("checkpoint", 9),
    ("export", 9),
    ("portable", 10),
    ("replay", 10),
    ("Error", 0),
    ("Result", 0),
];

/// External names that only some modules may use: (word, reason, test whether a file of the crate may have it).
type Place = (&'static str, &'static str, fn(&str) -> bool);
const PLACES: [Place; 13] = [
    (
        "cubecl",
        "CubeCL is named in gpu/launch.rs, gpu/graph.rs and gpu/allocation.rs only",
        |file| matches!(file, "gpu/launch.rs" | "gpu/graph.rs" | "gpu/allocation.rs"),
    ),
    (
        "unsafe {",
        "the call that runs a recording is the only unsafe one",
        |file| file == "gpu/graph.rs",
    ),
    ("burn::", "Burn is named from gpu up", |file| {
        row_of_file(file).is_some_and(|row| row >= 3)
    }),
    (
        "target_family",
        "the browser is told apart in platform/mod.rs, and in error, whose sentences it has not",
        |file| file == "platform/mod.rs" || file.starts_with("error/"),
    ),
    (
        "target_arch",
        "the browser is told apart by target_family",
        |_| false,
    ),
    (
        "wasm_bindgen",
        "the browser's types belong to web/core",
        |_| false,
    ),
    ("js_sys", "the browser's types belong to web/core", |_| {
        false
    }),
    ("std::fs", "the crate does no I/O", |_| false),
    ("std::net", "the crate does no I/O", |_| false),
    ("std::env", "the crate reads no environment", |_| false),
    ("std::thread", "the crate starts no threads", |_| false),
    ("std::time", "clocks are in platform", |file| {
        file == "platform/native.rs"
    }),
    ("println!", "the crate prints nothing", |_| false),
];

/// Calls that are forbidden in code that may meet any input.
const FORBIDDEN: [&str; 5] = [".unwrap()", "todo!(", "unimplemented!(", "dbg!(", "panic!("];

fn row_of(module: &str) -> Option<u8> {
    ROWS.iter()
        .find(|(name, _)| *name == module)
        .map(|(_, row)| *row)
}

/// Returns the module that a file of `crate/src` belongs to.
fn module_of(file: &str) -> &str {
    file.split('/')
        .next()
        .unwrap_or(file)
        .trim_end_matches(".rs")
}

fn row_of_file(file: &str) -> Option<u8> {
    row_of(module_of(file))
}

/// Returns the modules that a line or a whole file names after `crate::`, including those in groups.
fn modules_named(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(group) => found.extend(heads_of_group(group)),
            None => found.extend(head(rest)),
        }
    }
    found
}

fn head(path: &str) -> Option<String> {
    let word: String = path
        .trim_start()
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect();
    (!word.is_empty()).then_some(word)
}

/// Returns the first words of the members of `{a, b::{c, d}}`, given the text after the brace.
fn heads_of_group(group: &str) -> Vec<String> {
    let (mut depth, mut member, mut found) = (0, String::new(), Vec::new());
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => found.extend(head(&std::mem::take(&mut member))),
            _ => {}
        }
        if depth == 0 && c != ',' {
            member.push(c);
        }
    }
    found.extend(head(&member));
    found
}

/// Reads the files of the crate as (path below src, text).
fn crate_files() -> Vec<(String, String)> {
    let below = root().join("crate/src");
    let name = |path: &std::path::Path| {
        path.strip_prefix(&below)
            .expect("listed below src")
            .to_string_lossy()
            .replace('\\', "/")
    };
    files("crate/src", &[".rs"])
        .into_iter()
        .map(|path| (name(&path), text(&path)))
        .collect()
}

fn upward_imports(file: &str, text: &str) -> Vec<String> {
    let module = module_of(file);
    let Some(row) = row_of(module) else {
        return vec![format!(
            "crate/src/{file}: `{module}` has no row in the layer table"
        )];
    };
    let joined = code(text)
        .into_iter()
        .map(|(_, line)| line)
        .collect::<Vec<_>>()
        .join("\n");
    // A word without a row is not a module (each file has a row) but a macro of the crate.
    let allowed = |named: &str| named == module || row_of(named).is_none_or(|lower| lower < row);
    let upward = modules_named(&joined)
        .into_iter()
        .filter(|named| !allowed(named));
    upward
        .map(|named| format!("crate/src/{file}: row {row} may not use crate::{named}"))
        .collect()
}

#[test]
fn layers_import_downwards_only() {
    let files = crate_files();
    let checked = files.iter().filter(|(file, _)| file != "lib.rs");
    none(
        checked
            .flat_map(|(file, text)| upward_imports(file, text))
            .collect(),
    );
}

#[test]
fn layers_find_a_planted_upward_import() {
    assert_eq!(
        upward_imports(
            "config/model.rs",
            "use crate::{Error, train::{Trainer, x}};"
        )
        .len(),
        1
    );
    assert_eq!(
        upward_imports("data/mod.rs", "fn f(s: &crate::schedule::S) {}").len(),
        1,
        "own row"
    );
    assert_eq!(upward_imports("stray.rs", "").len(), 1, "not in the table");
    assert!(
        upward_imports(
            "train/mod.rs",
            "use crate::train::report;\nuse crate::{Result, model};\n// crate::export\n"
        )
        .is_empty()
    );
}

#[test]
fn layers_keep_words_in_their_places() {
    let mut findings = Vec::new();
    for (file, text) in crate_files() {
        for (number, line) in code(&text) {
            for (word, reason, _) in PLACES
                .iter()
                .filter(|(word, _, allowed)| line.contains(word) && !allowed(&file))
            {
                findings.push(format!("crate/src/{file}:{number}: {word}: {reason}"));
            }
        }
    }
    none(findings);
}

#[test]
fn layers_have_no_panics_by_choice() {
    let mut findings = Vec::new();
    for path in [
        "crate/src",
        "native-runner/src",
        "web/border/src",
        "web/core/src",
    ]
    .iter()
    .flat_map(|folder| files(folder, &[".rs"]))
    {
        for (number, line) in code(&text(&path)) {
            for word in FORBIDDEN.iter().filter(|word| line.contains(**word)) {
                findings.push(format!("{}:{number}: {word}", shown(&path)));
            }
        }
    }
    none(findings);
}
