//! One kernel, one stem, four places: shader, module, test, row of shaders/README.md. A variant (`linear_forward_bf16`) may live in
//! the module and the test of its family (`linear`).

use super::none;
use super::source::{files, root, shown, stem, text};
use std::path::Path;

/// Whether a module or test of this stem may hold a shader: the same stem, or the first words of it.
fn holds(family: &str, shader: &str) -> bool {
    shader.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

fn missing(shader: &Path, modules: &[(String, String)], tests: &[(String, String)], readme: &str) -> Vec<String> {
    let name = stem(shader);
    let place = |what: &str| format!("{}: {what}", shown(shader));
    let included = modules.iter().any(|(module, text)| holds(module, &name) && text.contains(&format!("{name}.wgsl")));
    let tested = tests
        .iter()
        .any(|(test, text)| holds(test, &name) && (*test == name || text.contains(&name) || text.contains(&name.to_uppercase())));
    let row = readme.lines().any(|line| line.starts_with('|') && line.contains(&format!("`{name}`")));
    let mut findings = Vec::new();
    if !included {
        findings.push(place("no module of its stem in crate/src/kernels includes it"));
    }
    if !tested {
        findings.push(place("no test of its stem in tests/suite/kernels names it"));
    }
    if !row {
        findings.push(place("no row in shaders/README.md"));
    }
    findings
}

fn stems_and_texts(folder: &str) -> Vec<(String, String)> {
    files(folder, &[".rs"]).iter().map(|path| (stem(path), text(path))).collect()
}

#[test]
fn stems_stand_in_all_four_places() {
    let modules = stems_and_texts("crate/src/kernels");
    let tests = stems_and_texts("tests/suite/kernels");
    let shaders: Vec<_> = files("shaders", &[".wgsl"]).into_iter().filter(|path| stem(path) != "common").collect();
    let readme = if shaders.is_empty() { String::new() } else { text(&root().join("shaders/README.md")) };
    none(shaders.iter().flat_map(|shader| missing(shader, &modules, &tests, &readme)).collect());
}

#[test]
fn stems_in_the_readme_are_shaders() {
    let path = root().join("shaders/README.md");
    if !path.exists() {
        return;
    }
    let known: Vec<String> = files("shaders", &[".wgsl"]).iter().map(|path| stem(path)).collect();
    let readme = text(&path);
    let first_cells = readme.lines().filter_map(|line| line.strip_prefix("| `")).filter_map(|line| line.split('`').next());
    none(
        first_cells
            .filter(|name| !known.iter().any(|stem| stem == name))
            .map(|name| format!("shaders/README.md: `{name}` is no shader"))
            .collect(),
    );
}

#[test]
fn stems_of_variants_belong_to_their_family() {
    assert!(holds("adamw", "adamw") && holds("adamw", "adamw_bf16") && holds("linear", "linear_backward_weight_any"));
    assert!(!holds("adam", "adamw") && !holds("adamw_bf16", "adamw"));
    let nothing = missing(Path::new("shaders/adamw.wgsl"), &[], &[], "");
    assert_eq!(nothing.len(), 3);
}
