//! Modules of a room form no circle of imports.

use std::collections::{BTreeMap, BTreeSet};

use super::none;
use super::source::{code, files, root, text};

/// A path of modules and items below the crate's root, such as `["formats", "json", "parse"]`.
pub type Path = Vec<String>;

/// The modules of a crate: path to code without comments.
pub struct Modules(pub BTreeMap<Path, String>);

/// Imports by module: those that it makes, and the names that it gives on, with where they come from.
#[derive(Default)]
struct Imports {
    used: Vec<Path>,
    given: BTreeMap<String, Path>,
}

pub fn path(text: &str) -> Path {
    text.split("::")
        .map(|part| part.trim().to_string())
        .collect()
}

/// The paths of a `use` tree: `a::{b, c::d}` is `a::b` and `a::c::d`.
pub fn leaves(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((before, group)) = tree
        .split_once('{')
        .and_then(|(before, rest)| Some((before, rest.strip_suffix('}')?)))
    else {
        return vec![tree.to_string()];
    };
    let (mut depth, mut member, mut found) = (0, String::new(), Vec::new());
    for c in group.chars().chain([',']) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let one = std::mem::take(&mut member);
                found.extend(
                    leaves(&one)
                        .into_iter()
                        .filter(|leaf| !leaf.is_empty())
                        .map(|leaf| format!("{before}{leaf}")),
                );
                continue;
            }
            _ => {}
        }
        member.push(c);
    }
    found
}

impl Modules {
    /// Reads the modules of the crate with this folder.
    pub fn of(folder: &str) -> Self {
        let below = root().join(folder);
        let name = |file: &std::path::Path| {
            let shown = file
                .strip_prefix(&below)
                .expect("listed below src")
                .with_extension("")
                .to_string_lossy()
                .replace('\\', "/");
            path(&shown.trim_end_matches("/mod").replace('/', "::"))
        };
        let lines = |text: &str| {
            code(text)
                .into_iter()
                .map(|(_, line)| line)
                .collect::<Vec<_>>()
                .join("\n")
        };
        Self(
            files(folder, &[".rs"])
                .iter()
                .map(|file| (name(file), lines(&text(file))))
                .collect(),
        )
    }

    /// A path as it is written in the module `me`, from the crate's root; `None` for what is outside.
    pub fn absolute(&self, me: &Path, written: &Path) -> Option<Path> {
        let (first, rest) = written.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([me, rest].concat()),
            "super" => {
                let up = written.iter().take_while(|part| *part == "super").count();
                Some([&me[..me.len().checked_sub(up)?], &written[up..]].concat())
            }
            _ => {
                let child = [me.as_slice(), std::slice::from_ref(first)].concat();
                self.0
                    .contains_key(&child)
                    .then(|| [me.as_slice(), written].concat())
            }
        }
    }

    /// The deepest module of a path, and what is left.
    fn deepest<'a>(&self, path: &'a [String]) -> Option<(Path, &'a [String])> {
        (1..=path.len())
            .rev()
            .find(|&n| self.0.contains_key(&path[..n]))
            .map(|n| (path[..n].to_vec(), &path[n..]))
    }

    fn imports(&self, me: &Path) -> Imports {
        let mut imports = Imports::default();
        let mut rest = String::new();
        let mut left = self.0[me].as_str();
        while let Some(at) = left.find("use ") {
            let starts_line = left[..at]
                .rsplit('\n')
                .next()
                .is_some_and(|before| before.trim().is_empty() || before.trim().starts_with("pub"));
            let (before, tail) = left.split_at(at);
            rest.push_str(before);
            let (tree, after) = tail["use ".len()..]
                .split_once(';')
                .unwrap_or((&tail["use ".len()..], ""));
            if !starts_line {
                rest.push_str("use ");
                left = &tail["use ".len()..];
                continue;
            }
            let public = before
                .rsplit('\n')
                .next()
                .is_some_and(|line| line.trim().starts_with("pub"));
            for leaf in leaves(tree) {
                let (written, alias) = leaf
                    .split_once(" as ")
                    .map_or((leaf.as_str(), None), |(path, alias)| {
                        (path, Some(alias.trim()))
                    });
                let written = path(written.trim_end_matches("::*").trim_end_matches("::self"));
                let Some(target) = self.absolute(me, &written) else {
                    continue;
                };
                if let Some(name) = alias
                    .map(str::to_string)
                    .or_else(|| written.last().cloned())
                {
                    imports.given.insert(name, target.clone());
                }
                if !public {
                    imports.used.push(target);
                }
            }
            left = after;
        }
        rest.push_str(left);
        for start in ["crate::", "super::", "self::"] {
            for (at, _) in rest.match_indices(start) {
                if rest[..at]
                    .chars()
                    .next_back()
                    .is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '$'))
                {
                    continue;
                }
                let written: String = rest[at..]
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':'))
                    .collect();
                imports
                    .used
                    .extend(self.absolute(me, &path(written.trim_end_matches(':'))));
            }
        }
        imports
    }

    /// The modules of its own room that each module imports from, its descendants aside; a crate without rooms is one. A name that is given on
    /// counts as where it is defined.
    fn edges(&self, rooms: bool) -> BTreeMap<Path, BTreeSet<Path>> {
        let imports: BTreeMap<&Path, Imports> =
            self.0.keys().map(|me| (me, self.imports(me))).collect();
        let home = |mut path: Path| {
            for _ in 0..8 {
                let (module, rest) = self.deepest(&path)?;
                let given = rest
                    .first()
                    .and_then(|name| imports.get(&module)?.given.get(name))
                    .filter(|target| **target != path);
                match given {
                    Some(target) => path = [target.as_slice(), &rest[1..]].concat(),
                    None => return Some(module),
                }
            }
            None
        };
        let of = |me: &Path, imports: &Imports| {
            let homes = imports.used.iter().filter_map(|path| home(path.clone()));
            homes
                .filter(|other| {
                    (!rooms || other[0] == me[0]) && other != me && !other.starts_with(me)
                })
                .collect()
        };
        imports
            .iter()
            .map(|(me, imports)| ((*me).clone(), of(me, imports)))
            .collect()
    }
}

/// The circles of a graph, each as the modules on it: those that reach one another.
fn circles(edges: &BTreeMap<Path, BTreeSet<Path>>) -> Vec<BTreeSet<Path>> {
    let reach = |from: &Path| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(one) = next.pop() {
            next.extend(
                edges
                    .get(one)
                    .into_iter()
                    .flatten()
                    .filter(|other| seen.insert((*other).clone())),
            );
        }
        seen
    };
    let reached: BTreeMap<&Path, BTreeSet<Path>> = edges.keys().map(|me| (me, reach(me))).collect();
    let on = reached.iter().filter(|(me, seen)| seen.contains(**me));
    let found: BTreeSet<BTreeSet<Path>> = on
        .map(|(me, seen)| {
            seen.iter()
                .filter(|other| reached[other].contains(*me))
                .cloned()
                .collect()
        })
        .collect();
    found.into_iter().collect()
}

#[test]
fn circles_of_modules_are_absent() {
    let shown = |circle: &BTreeSet<Path>| {
        circle
            .iter()
            .map(|path| path.join("::"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let found = |folder, rooms| {
        circles(&Modules::of(folder).edges(rooms))
            .iter()
            .map(shown)
            .collect::<Vec<_>>()
    };
    let crates = [
        "web/border/src",
        "web/core/src",
        "native-runner/src",
        "native-runner/dev",
        "native-runner/witness/src",
    ];
    let others = crates.into_iter().flat_map(|folder| found(folder, false));
    none(found("crate/src", true).into_iter().chain(others).collect());
}

#[test]
fn circles_that_are_planted_are_found() {
    let planted = [
        ("room", "pub use a::A;\npub use b::B;"),
        ("room::a", "use super::B;\nuse crate::other::Thing;"),
        ("room::b", "use crate::room::{c, d::D};"),
        ("room::c", "fn f() -> crate::room::A {}"),
        ("room::d", "use std::rc::Rc;"),
        ("other", "use crate::room::A;"),
    ];
    let modules = Modules(
        planted
            .into_iter()
            .map(|(name, code)| (path(name), code.to_string()))
            .collect(),
    );
    let found = circles(&modules.edges(true));
    let expected: BTreeSet<Path> = ["room::a", "room::b", "room::c"].map(path).into();
    assert_eq!(
        found,
        [expected],
        "by the front door, by a module, and by a path within code"
    );
}
