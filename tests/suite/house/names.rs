//! Names and lengths of files, and versions of packages that must agree.

use super::none;
use super::source::{files, root, shown, stem, text, without_tests};
use std::collections::BTreeMap;

const FOLDERS: [&str; 5] = ["crate", "native-runner", "shaders", "tests", "web"];
const EMPTY_WORDS: [&str; 8] = [
    "base", "utils", "helpers", "misc", "core", "manager", "types", "common",
];

#[test]
fn names_of_files_say_something() {
    let all = FOLDERS.iter().flat_map(|folder| {
        files(
            folder,
            &[".rs", ".ts", ".mjs", ".js", ".wgsl", ".py", ".css"],
        )
    });
    let empty = all.filter(|path| {
        EMPTY_WORDS.contains(&stem(path).as_str()) && shown(path) != "shaders/common.wgsl"
    });
    none(
        empty
            .map(|path| format!("{}: a name that says nothing", shown(&path)))
            .collect(),
    );
}

#[test]
fn names_belong_to_short_files() {
    let limits: [(&str, &str, usize); 11] = [
        ("crate/src", ".rs", 400),
        ("native-runner", ".rs", 400),
        ("tests/src", ".rs", 400),
        ("web/border/src", ".rs", 400),
        ("web/core/src", ".rs", 400),
        ("shaders", ".wgsl", 150),
        ("shaders", ".mjs", 300),
        ("web", ".ts", 300),
        ("web", ".mjs", 300),
        ("tests", ".mjs", 300),
        ("tests", ".ts", 300),
    ];
    let mut findings = Vec::new();
    for (folder, ending, limit) in limits {
        for path in files(folder, &[ending]) {
            let whole = text(&path);
            let lines = without_tests(&whole).lines().count();
            // Generated files are read in their source; a table has a line for each of its rows.
            let exempt =
                whole.starts_with("// Made by ") || shown(&path) == "crate/src/error/codes.rs";
            if lines > limit && !exempt {
                findings.push(format!(
                    "{}: {lines} lines, the limit is {limit}",
                    shown(&path)
                ));
            }
        }
    }
    none(findings);
}

/// Returns the packages of a lock file with their versions.
fn locked(path: &str) -> BTreeMap<String, Vec<String>> {
    let lock = text(&root().join(path));
    let value = |entry: &str, key: &str| {
        entry
            .lines()
            .find_map(|line| line.strip_prefix(key))
            .map(|word| word.trim_matches('"').to_owned())
    };
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in lock.split("[[package]]") {
        if let Some((name, version)) = value(entry, "name = ").zip(value(entry, "version = ")) {
            versions.entry(name).or_default().push(version);
        }
    }
    versions
}

#[test]
fn names_of_cubecl_crates_have_one_version_each() {
    for lock in ["Cargo.lock", "native-runner/cuda/Cargo.lock"] {
        let mut versions = locked(lock);
        versions.retain(|name, _| {
            name.starts_with("cubecl") || name.starts_with("burn") || name == "wasm-bindgen"
        });
        assert!(versions.contains_key("cubecl"), "{lock} has CubeCL");
        none(
            versions
                .into_iter()
                .filter(|(_, all)| all.len() != 1)
                .map(|(name, all)| format!("{lock}: {name}: {}", all.join(", ")))
                .collect(),
        );
    }
}

/// The packages of the CUDA witness are those that were reviewed for the main workspace; its build downloads nothing but crates.
#[test]
fn names_in_the_lock_of_the_cuda_workspace_are_those_of_the_main_one() {
    let (main, cuda) = (
        locked("Cargo.lock"),
        locked("native-runner/cuda/Cargo.lock"),
    );
    let known = |name: &str, version: &String| {
        main.get(name)
            .is_some_and(|versions| versions.contains(version))
    };
    let strangers = cuda
        .iter()
        .flat_map(|(name, versions)| versions.iter().map(move |version| (name, version)));
    let strangers =
        strangers.filter(|(name, version)| *name != "tabtune-cuda" && !known(name, version));
    none(
        strangers
            .map(|(name, version)| {
                format!("native-runner/cuda/Cargo.lock: {name} {version} is not in Cargo.lock")
            })
            .collect(),
    );
    let fetching = ["llvm-sys", "pliron-llvm", "tracel-llvm-bundler"];
    none(
        fetching
            .into_iter()
            .filter(|name| cuda.contains_key(*name))
            .map(|name| format!("{name} fetches LLVM"))
            .collect(),
    );
}

#[test]
fn names_of_machines_stay_out_of_the_lock() {
    let lock = text(&root().join("package-lock.json"));
    assert!(
        !lock.contains("\"resolved\""),
        "package-lock.json has download addresses; .npmrc leaves them out"
    );
}

#[test]
fn names_of_test_files_are_in_the_list() {
    let main = text(&root().join("tests/suite/main.rs"));
    let areas = files("tests/suite", &[".rs"])
        .into_iter()
        .filter(|path| shown(path).matches('/').count() == 2);
    let absent = areas
        .map(|path| stem(&path))
        .filter(|area| area != "main" && !main.lines().any(|line| line == format!("mod {area};")));
    none(
        absent
            .map(|area| format!("tests/suite/{area}.rs is not in main.rs, so it never runs"))
            .collect(),
    );
}
