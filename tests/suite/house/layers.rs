//! Dependencies that are allowed between modules.

use std::collections::BTreeSet;

use super::modules::{Modules, Path, path};
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

/// Returns the imports of a module from its own row or a higher one.
fn upward_imports(modules: &Modules, me: &Path) -> Vec<String> {
    let shown = me.join("::");
    let Some(row) = row_of(&me[0]) else {
        return vec![format!("`{shown}` has no row in the layer table")];
    };
    let (imports, paths) = modules.named(me);
    let targets = imports.into_iter().map(|import| import.path).chain(paths);
    let named: BTreeSet<String> = targets.filter_map(|path| path.into_iter().next()).collect();
    // A word without a row is not a module (each file has a row) but a macro of the crate.
    let allowed = |named: &String| *named == me[0] || row_of(named).is_none_or(|lower| lower < row);
    let upward = named.into_iter().filter(|named| !allowed(named));
    upward
        .map(|named| format!("{shown}: row {row} may not use crate::{named}"))
        .collect()
}

#[test]
fn layers_import_downwards_only() {
    let modules = Modules::of("crate/src");
    let checked = modules.0.keys().filter(|me| me[0] != "lib");
    none(
        checked
            .flat_map(|me| upward_imports(&modules, me))
            .collect(),
    );
}

#[test]
fn layers_find_a_planted_upward_import() {
    let planted = [
        (
            "config::model",
            "use crate::{Error, train::{Trainer, x}};",
            1,
        ),
        ("data", "fn f(s: &crate::schedule::S) {}", 1),
        (
            "gpu::copy",
            "fn f() { print!(\"{}\", crate::optim::X); }",
            1,
        ),
        ("optim::sgd", "use super::super::model::Model;", 1),
        ("stray", "", 1),
        (
            "train",
            "use crate::train::report;\nuse crate::{Result, model};\n// crate::export\nconst A: &str = \"crate::export\";",
            0,
        ),
    ];
    let texts = planted.map(|(name, code, _)| (name.to_owned(), code.to_owned()));
    let modules = Modules::parsed(texts.into_iter());
    for (name, _, found) in planted {
        assert_eq!(upward_imports(&modules, &path(name)).len(), found, "{name}");
    }
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
