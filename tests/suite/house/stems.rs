//! One kernel, one stem, four places: shader, module, test, row of shaders/README.md. Variants (`linear_forward_bf16`) may share the
//! module and the tests of their family; the header of each shader names the file of its twin.

use super::none;
use super::source::{files, root, shown, stem, text};
use std::path::Path;

/// Returns the file that a shader's header names: `// … Twin: optim/adamw/kernel.rs`.
fn twin_of(shader: &str) -> Option<String> {
    let header: Vec<&str> = shader
        .lines()
        .take_while(|line| line.starts_with("//"))
        .collect();
    let (_, rest) = header
        .join("\n")
        .split_once("Twin: ")
        .map(|(before, after)| (before.to_owned(), after.to_owned()))?;
    rest.split_whitespace()
        .next()
        .map(|path| path.trim_end_matches('.').to_owned())
}

/// Returns the part of a twin's path by which a test names it: `ops/linear/kernels.rs` → `linear`.
fn family_of(twin: &str) -> &str {
    twin.split('/')
        .nth(1)
        .unwrap_or(twin)
        .trim_end_matches(".rs")
}

fn missing(shader: &Path, source: &str, tests: &str, readme: &str) -> Vec<String> {
    let name = stem(shader);
    let place = |what: &str| format!("{}: {what}", shown(shader));
    let Some(twin) = twin_of(source) else {
        return vec![place("its header names no twin")];
    };
    let module = root().join("crate/src").join(&twin);
    let folder = Path::new("shaders").join(&twin);
    let held = module.exists() && text(&module).contains(&name);
    let row = format!("| `{name}` |");
    let mut findings = Vec::new();
    if shown(shader) != shown(&folder.with_file_name(format!("{name}.wgsl"))) {
        findings.push(place("its folder is not that of its twin"));
    }
    if !held {
        findings.push(place(&format!("crate/src/{twin} does not have it")));
    }
    if !tests.contains(family_of(&twin)) {
        findings.push(place("no test of gpu, ops or optim names it or its family"));
    }
    if !readme
        .lines()
        .any(|line| line.starts_with(&row) && line.contains(&twin))
    {
        findings.push(place(&format!("no row in shaders/README.md with {twin}")));
    }
    findings
}

#[test]
fn stems_stand_in_all_four_places() {
    let tests: String = ["gpu", "ops", "optim"]
        .iter()
        .flat_map(|room| files(&format!("tests/suite/{room}"), &[".rs"]))
        .map(|path| text(&path))
        .collect();
    let no_kernel = |path: &Path| {
        stem(path) == "common"
            || path
                .parent()
                .is_some_and(|folder| folder.ends_with("chunks"))
    };
    let shaders: Vec<_> = files("shaders", &[".wgsl"])
        .into_iter()
        .filter(|path| !no_kernel(path))
        .collect();
    let readme = text(&root().join("shaders/README.md"));
    none(
        shaders
            .iter()
            .flat_map(|shader| missing(shader, &text(shader), &tests, &readme))
            .collect(),
    );
}

#[test]
fn stems_in_the_readme_are_shaders() {
    let path = root().join("shaders/README.md");
    if !path.exists() {
        return;
    }
    let known: Vec<String> = files("shaders", &[".wgsl"])
        .iter()
        .map(|path| stem(path))
        .collect();
    let readme = text(&path);
    let first_cells = readme
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| line.split('`').next());
    none(
        first_cells
            .filter(|name| !known.iter().any(|stem| stem == name))
            .map(|name| format!("shaders/README.md: `{name}` is no shader"))
            .collect(),
    );
}

#[test]
fn stems_find_what_is_missing() {
    let source = "// y = x. x, y [n].\n// Twin: ops/linear/kernels.rs\nstruct Params {}";
    assert_eq!(twin_of(source).as_deref(), Some("ops/linear/kernels.rs"));
    assert_eq!(family_of("ops/linear/kernels.rs"), "linear");
    let shader = Path::new("shaders/nothing_at_all.wgsl");
    assert_eq!(missing(shader, source, "", "").len(), 4);
    assert_eq!(
        missing(shader, "// y = x", "", "").len(),
        1,
        "no twin in the header"
    );
}
