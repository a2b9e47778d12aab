//! The number of public items that the documentation of the crate shows is at most [`MOST`].
//!
//! Sources are read as rustfmt writes them: an item begins a line; its fields, variants and methods are four columns in, the fields of a variant
//! eight. Modules, types, fields, variants, functions, methods, constants, traits with their items, and macros count once each, if public modules
//! and re-exports without `#[doc(hidden)]` lead to them. Impls of traits and unnamed fields do not count. What a macro of the crate makes is not
//! seen: kernels and their parameters, all of which are in hidden modules.

use std::collections::{BTreeMap, BTreeSet};

use super::circles::{Modules, Path, leaves, path};

/// Maximum number of items.
const MOST: usize = 500;

/// Kinds of items, as they are written after `pub`.
const KINDS: [&str; 10] = [
    "const fn", "async fn", "fn", "struct", "enum", "trait", "type", "const", "static", "mod",
];

/// A public item, with the number of its members that are shown.
#[derive(Default)]
struct Item {
    hidden: bool,
    members: usize,
}

/// A `use`: its path from the crate's root.
struct Import {
    path: Path,
    public: bool,
    hidden: bool,
}

/// The contents of a module.
#[derive(Default)]
struct Contents {
    items: BTreeMap<String, Item>,
    /// Public modules in it; true for hidden ones.
    modules: BTreeMap<String, bool>,
    imports: Vec<Import>,
    /// Types, and the number of shown methods in one of their impls.
    impls: Vec<(String, usize)>,
    /// Shown macros, which are at the root whatever module they are in.
    macros: usize,
}

/// Part of a file that a line four or eight columns in belongs to.
enum Inside {
    Nothing,
    Struct(String),
    Enum(String, bool),
    Trait(String),
    Impl,
}

/// Returns the identifier that a text begins with.
fn word(text: &str) -> String {
    text.chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

/// Returns kind and name of the public item that begins in a line.
fn declared(line: &str) -> Option<(&'static str, String)> {
    let rest = line.strip_prefix("pub ")?;
    KINDS
        .iter()
        .find_map(|kind| Some((*kind, word(rest.strip_prefix(kind)?.strip_prefix(' ')?))))
}

/// Returns the type of an impl without a trait.
fn implemented(line: &str) -> Option<String> {
    let rest = line
        .strip_prefix("impl")
        .filter(|_| !line.contains(" for "))?;
    let mut depth = 0;
    let end = rest.char_indices().find(|&(at, c)| {
        depth += i32::from(c == '<') - i32::from(c == '>' && !rest[..at].ends_with('-'));
        c == ' ' && depth == 0
    });
    Some(word(&rest[end?.0 + 1..]))
}

/// Returns the number of fields of a variant that is written in one line.
fn fields(line: &str) -> usize {
    line.split_once(" {")
        .map_or(0, |(_, inner)| inner.matches(": ").count())
}

impl Contents {
    fn read(text: &str, absolute: impl Fn(&Path) -> Option<Path>) -> Self {
        let mut contents = Self::default();
        let (mut inside, mut hidden, mut exported, mut attribute, mut statement) =
            (Inside::Nothing, false, false, false, String::new());
        for line in text.lines() {
            let (code, columns) = (line.trim(), line.len() - line.trim_start().len());
            if attribute || code.starts_with("#[") {
                hidden |= code.contains("doc(hidden)");
                exported |= code == "#[macro_export]";
                attribute = !code.ends_with(']');
                continue;
            }
            let is_use = columns == 0
                && ["use ", "pub use ", "pub(crate) use ", "pub(super) use "]
                    .iter()
                    .any(|start| code.starts_with(start));
            if is_use || !statement.is_empty() {
                statement.push_str(code);
                let Some(whole) = statement.strip_suffix(';') else {
                    continue;
                };
                let (visibility, tree) = whole.split_once("use ").expect("a use");
                for leaf in leaves(tree) {
                    let written = path(leaf.split(" as ").next().expect("one part"));
                    contents
                        .imports
                        .extend(absolute(&written).map(|path| Import {
                            path,
                            public: visibility == "pub ",
                            hidden,
                        }));
                }
                statement.clear();
            } else if columns == 0 && !code.is_empty() {
                inside = contents.item(code, hidden, exported);
            } else if columns == 4 {
                contents.member(&mut inside, code, hidden);
            } else if columns == 8
                && let Inside::Enum(name, true) = &inside
                && code.starts_with(|c: char| c.is_lowercase())
                && code.contains(": ")
            {
                contents.grow(name, usize::from(!hidden));
            }
            if !code.is_empty() {
                (hidden, exported) = (false, false);
            }
        }
        contents
    }

    /// Reads a line that is not indented; returns what the next lines belong to.
    fn item(&mut self, code: &str, hidden: bool, exported: bool) -> Inside {
        self.macros += usize::from(exported && !hidden && code.starts_with("macro_rules!"));
        if let Some(name) = implemented(code) {
            self.impls.push((name, 0));
            return if hidden {
                Inside::Nothing
            } else {
                Inside::Impl
            };
        }
        let Some((kind, name)) = declared(code) else {
            return Inside::Nothing;
        };
        if kind == "mod" {
            self.modules.insert(name, hidden);
            return Inside::Nothing;
        }
        self.items.insert(name.clone(), Item { hidden, members: 0 });
        match kind {
            _ if !code.ends_with('{') => Inside::Nothing,
            "struct" => Inside::Struct(name),
            "enum" => Inside::Enum(name, false),
            "trait" => Inside::Trait(name),
            _ => Inside::Nothing,
        }
    }

    /// Reads a line that is indented once.
    fn member(&mut self, inside: &mut Inside, code: &str, hidden: bool) {
        let shown = usize::from(!hidden);
        match inside {
            Inside::Struct(name) if code.starts_with("pub ") => self.grow(name, shown),
            Inside::Enum(name, open) if code.starts_with(char::is_uppercase) => {
                *open = !hidden && code.ends_with('{');
                self.grow(name, if hidden { 0 } else { 1 + fields(code) });
            }
            Inside::Trait(name)
                if ["fn ", "async fn ", "const ", "type "]
                    .iter()
                    .any(|start| code.starts_with(start)) =>
            {
                self.grow(name, shown);
            }
            Inside::Impl if declared(code).is_some() => {
                self.impls.last_mut().expect("it was just read").1 += shown
            }
            _ => {}
        }
    }

    fn grow(&mut self, name: &str, by: usize) {
        self.items.get_mut(name).expect("it was just read").members += by;
    }
}

/// All modules of a crate.
struct Surface(BTreeMap<Path, Contents>);

impl Surface {
    fn of(modules: &Modules) -> Self {
        let read = |(me, text): (&Path, &String)| {
            (
                me.clone(),
                Contents::read(text, |written| modules.absolute(me, written)),
            )
        };
        let mut surface = Self(modules.0.iter().map(read).collect());
        let impls: Vec<_> = surface
            .0
            .iter_mut()
            .flat_map(|(me, contents)| contents.impls.drain(..).map(|found| (me.clone(), found)))
            .collect();
        for (me, (name, methods)) in impls {
            if let Some((module, name)) = surface.home([me, vec![name]].concat(), 8) {
                surface
                    .0
                    .get_mut(&module)
                    .expect("a module")
                    .grow(&name, methods);
            }
        }
        surface
    }

    /// Returns the module in which the public item with this path is defined, and its name there.
    fn home(&self, path: Path, steps: usize) -> Option<(Path, String)> {
        let (name, module) = path.split_last()?;
        let contents = self.0.get(module).filter(|_| steps > 0)?;
        if contents.items.contains_key(name) {
            return Some((module.to_vec(), name.clone()));
        }
        contents
            .imports
            .iter()
            .find_map(|import| match import.path.split_last()? {
                (last, target) if last == "*" => {
                    self.home([target, std::slice::from_ref(name)].concat(), steps - 1)
                }
                (last, _) if last == name => self.home(import.path.clone(), steps - 1),
                _ => None,
            })
    }

    /// Adds the items that `module` shows to `seen`; returns how many items they are with their members.
    fn shown(&self, module: &[String], seen: &mut BTreeSet<(Path, String)>) -> usize {
        let Some(contents) = self.0.get(module) else {
            return 0;
        };
        let own = contents
            .items
            .keys()
            .map(|name| (module.to_vec(), name.clone()));
        let given = contents
            .imports
            .iter()
            .filter(|import| import.public && !import.hidden)
            .flat_map(|import| match import.path.split_last() {
                Some((last, target)) if last == "*" => self
                    .0
                    .get(target)
                    .into_iter()
                    .flat_map(|from| {
                        from.items
                            .keys()
                            .map(|name| (target.to_vec(), name.clone()))
                    })
                    .collect(),
                _ => self
                    .home(import.path.clone(), 8)
                    .into_iter()
                    .collect::<Vec<_>>(),
            });
        let count = |(module, name): (Path, String)| {
            let item = &self.0[&module].items[&name];
            if item.hidden || !seen.insert((module, name)) {
                0
            } else {
                1 + item.members
            }
        };
        let items: usize = own.chain(given).map(count).sum();
        let below = contents.modules.iter().filter(|(_, hidden)| !**hidden);
        items
            + below
                .map(|(name, _)| {
                    1 + self.shown(&[module, std::slice::from_ref(name)].concat(), seen)
                })
                .sum::<usize>()
    }

    /// Returns the number of items by room; what is at the root has an empty name.
    fn rooms(&self) -> BTreeMap<String, usize> {
        let mut seen = BTreeSet::new();
        let root = path("lib");
        let modules = self.0[&root].modules.iter().filter(|(_, hidden)| !**hidden);
        let mut rooms: BTreeMap<String, usize> = modules
            .map(|(name, _)| {
                (
                    name.clone(),
                    1 + self.shown(std::slice::from_ref(name), &mut seen),
                )
            })
            .collect();
        rooms.insert(
            String::new(),
            self.0.values().map(|contents| contents.macros).sum(),
        );
        rooms
    }
}

#[test]
fn surface_has_no_more_items_than_a_user_can_survey() {
    let rooms = Surface::of(&Modules::of("crate/src")).rooms();
    let total: usize = rooms.values().sum();
    let listed: Vec<String> = rooms
        .iter()
        .map(|(room, items)| format!("{room} {items}"))
        .collect();
    println!("{total} public items: {}", listed.join(", "));
    assert!(
        total <= MOST,
        "{total} public items, at most {MOST}: {}. Hide what no user needs (crate/src/lib.rs)",
        listed.join(", ")
    );
}

#[test]
fn surface_counts_what_is_shown() {
    let planted = [
        (
            "lib",
            "pub mod room;\n#[doc(hidden)]\npub mod workshop;\nmod inner;\npub use room::Given;",
        ),
        (
            "room",
            "mod a;\npub use a::*;\npub use crate::inner::{Shown, Unseen};\n#[doc(hidden)]\npub use crate::inner::Other;",
        ),
        (
            "room::a",
            "pub enum Kind {\n    One,\n    #[error(\n        \"x\"\n    )]\n    Two {\n        size: u8,\n    },\n    #[doc(hidden)]\n    Three,\n}",
        ),
        (
            "inner",
            "pub struct Shown {\n    pub x: u8,\n    y: u8,\n}\nimpl<T: Into<u8>> Shown {\n    pub const fn new() {}\n    fn own() {}\n}\n\
             impl Clone for Shown {\n    pub fn clone() {}\n}\n#[doc(hidden)]\nimpl Shown {\n    pub fn inside() {}\n}\n\
             #[doc(hidden)]\npub struct Unseen {\n    pub x: u8,\n}\npub struct Other {\n    pub x: u8,\n}",
        ),
        (
            "workshop",
            "pub struct Tool;\n#[macro_export]\nmacro_rules! made {\n}",
        ),
    ];
    let modules = Modules(
        planted
            .into_iter()
            .map(|(name, code)| (path(name), code.to_string()))
            .collect(),
    );
    let rooms = Surface::of(&modules).rooms();
    // The room, `Kind` with two variants and a field, `Shown` with a field and a method; the macro.
    assert_eq!(
        rooms,
        BTreeMap::from([(String::new(), 1), ("room".to_string(), 1 + 4 + 3)])
    );
}
