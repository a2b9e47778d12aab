//! The number of public items that the documentation of the crate shows is at most [`MOST`], and each has an example or a link to one.
//!
//! Modules, types, fields, variants, functions, methods, constants, traits with their items, and macros count once each, if public modules and
//! re-exports without `#[doc(hidden)]` lead to them. Impls of traits and unnamed fields do not count. What a macro of the crate makes is not
//! seen: kernels and their parameters, all of which are in hidden modules.

use std::collections::{BTreeMap, BTreeSet};

use syn::{
    Attribute, Expr, ExprLit, Field, Fields, ImplItem, Item as Code, Lit, Meta,
    MetaNameValue as Named, TraitItem, Type, Visibility,
};

use super::modules::{Import, Modules, Path, is_hidden, path};

/// Maximum number of items. Three in eight are a model as plain data: manifests, groups, requests, plans and receipts with their parts, each
/// a field of a document that people read and write.
const MOST: usize = 900;

/// A public item, with the number of its members that are shown.
#[derive(Default)]
struct Item {
    hidden: bool,
    members: usize,
    /// Its documentation and that of its members.
    docs: String,
}

/// The contents of a module.
#[derive(Default)]
struct Contents {
    items: BTreeMap<String, Item>,
    /// Public modules in it; true for hidden ones.
    modules: BTreeMap<String, bool>,
    imports: Vec<Import>,
    /// Types, and the number of shown methods in one of their impls, with their documentation.
    impls: Vec<(String, usize, String)>,
    /// True for a module whose own page has an example.
    shows: bool,
    /// Shown macros, which are at the root whatever module they are in.
    macros: usize,
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Counts members by their attributes: those with a place in the documentation.
fn shown<'a>(members: impl Iterator<Item = &'a Vec<Attribute>>) -> usize {
    members.filter(|attributes| !is_hidden(attributes)).count()
}

/// Joins the documentation of members that are shown.
fn docs<'a>(members: impl Iterator<Item = &'a Vec<Attribute>>) -> String {
    let shown = members.filter(|attributes| !is_hidden(attributes));
    shown.map(|attributes| documentation(attributes)).collect()
}

/// Returns the documentation of an item.
fn documentation(attributes: &[Attribute]) -> String {
    let line = |attribute: &Attribute| match &attribute.meta {
        Meta::NameValue(Named {
            value:
                Expr::Lit(ExprLit {
                    lit: Lit::Str(text),
                    ..
                }),
            path,
            ..
        }) if path.is_ident("doc") => Some(text.value() + "\n"),
        _ => None,
    };
    attributes.iter().filter_map(line).collect()
}

/// Returns the attributes of the named fields that `counts` selects.
fn fields(fields: &Fields, counts: fn(&Field) -> bool) -> impl Iterator<Item = &Vec<Attribute>> {
    let named = fields.iter().filter(|field| field.ident.is_some());
    named
        .filter(move |field| counts(field))
        .map(|field| &field.attrs)
}

impl Contents {
    fn read(code: &[Code], imports: Vec<Import>) -> Self {
        let mut contents = Self {
            imports,
            ..Self::default()
        };
        code.iter().for_each(|code| contents.add(code));
        contents
    }

    fn add(&mut self, code: &Code) {
        let mut text = String::new();
        let (visibility, attributes, name, members) = match code {
            Code::Mod(module) if is_public(&module.vis) => {
                let hidden = is_hidden(&module.attrs);
                self.modules.insert(module.ident.to_string(), hidden);
                return;
            }
            Code::Macro(made) => {
                let exported = made
                    .attrs
                    .iter()
                    .any(|one| one.path().is_ident("macro_export"));
                self.macros += usize::from(exported && !is_hidden(&made.attrs));
                return;
            }
            Code::Impl(block) if block.trait_.is_none() => {
                if let (Type::Path(path), false) = (&*block.self_ty, is_hidden(&block.attrs)) {
                    let name = path
                        .path
                        .segments
                        .last()
                        .expect("a path has a name")
                        .ident
                        .to_string();
                    let members = block.items.iter().filter_map(|item| match item {
                        ImplItem::Fn(item) if is_public(&item.vis) => Some(&item.attrs),
                        ImplItem::Const(item) if is_public(&item.vis) => Some(&item.attrs),
                        _ => None,
                    });
                    let members: Vec<_> = members.collect();
                    let docs = docs(members.iter().copied());
                    self.impls.push((name, shown(members.into_iter()), docs));
                }
                return;
            }
            Code::Struct(item) => {
                let public = |field: &Field| is_public(&field.vis);
                text = docs(fields(&item.fields, public));
                let members = shown(fields(&item.fields, public));
                (&item.vis, &item.attrs, &item.ident, members)
            }
            Code::Enum(item) => {
                let variants = item.variants.iter().filter(|one| !is_hidden(&one.attrs));
                let members = variants.map(|one| 1 + shown(fields(&one.fields, |_| true)));
                (&item.vis, &item.attrs, &item.ident, members.sum())
            }
            Code::Trait(item) => {
                let members = || {
                    item.items.iter().filter_map(|item| match item {
                        TraitItem::Fn(item) => Some(&item.attrs),
                        TraitItem::Const(item) => Some(&item.attrs),
                        TraitItem::Type(item) => Some(&item.attrs),
                        _ => None,
                    })
                };
                text = docs(members());
                (&item.vis, &item.attrs, &item.ident, shown(members()))
            }
            Code::Fn(item) => (&item.vis, &item.attrs, &item.sig.ident, 0),
            Code::Type(item) => (&item.vis, &item.attrs, &item.ident, 0),
            Code::Const(item) => (&item.vis, &item.attrs, &item.ident, 0),
            Code::Static(item) => (&item.vis, &item.attrs, &item.ident, 0),
            _ => return,
        };
        if is_public(visibility) {
            let hidden = is_hidden(attributes);
            let docs = documentation(attributes) + &text;
            let item = Item {
                hidden,
                members,
                docs,
            };
            self.items.insert(name.to_string(), item);
        }
    }
}

/// All modules of a crate.
struct Surface(BTreeMap<Path, Contents>);

impl Surface {
    fn of(modules: &Modules) -> Self {
        let read = |(me, file): (&Path, &syn::File)| {
            let contents = Contents::read(&file.items, modules.named(me).0);
            let shows = documentation(&file.attrs).contains("```");
            (me.clone(), Contents { shows, ..contents })
        };
        let mut surface = Self(modules.0.iter().map(read).collect());
        let impls: Vec<_> = surface
            .0
            .iter_mut()
            .flat_map(|(me, contents)| contents.impls.drain(..).map(|found| (me.clone(), found)))
            .collect();
        for (me, (name, methods, docs)) in impls {
            if let Some((module, name)) = surface.home([me, vec![name]].concat(), 8) {
                let items = &mut surface.0.get_mut(&module).expect("a module").items;
                let item = items.get_mut(&name).expect("its home");
                item.members += methods;
                item.docs += &docs;
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

    /// Returns the shown items that have no example, and link to none.
    fn without_example(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let modules = &self.0[&path("lib")].modules;
        for (name, _) in modules.iter().filter(|(_, hidden)| !**hidden) {
            self.shown(std::slice::from_ref(name), &mut seen);
        }
        let item = |(module, name): &(Path, String)| &self.0[module].items[name];
        let shows = |docs: &str| docs.contains("```");
        let items = seen.iter().filter(|of| shows(&item(of).docs));
        let pages = self.0.iter().filter(|(_, contents)| contents.shows);
        let pages = pages.filter_map(|(module, _)| module.last());
        let with: BTreeSet<&str> = items
            .map(|(_, name)| name)
            .chain(pages)
            .map(String::as_str)
            .collect();
        let links = |docs: &str| {
            // A link names its target in brackets, or in parentheses after them.
            let targets = docs.split("[`").skip(1).chain(docs.split("](").skip(1));
            let mut words = targets.flat_map(|text| {
                let end = text.find([']', ')']).unwrap_or(0);
                text[..end].split(|c: char| !c.is_alphanumeric() && c != '_')
            });
            let pages = ["](crate#", "](crate)", "](crate::kernel)"];
            pages.iter().any(|page| docs.contains(page)) || words.any(|word| with.contains(word))
        };
        seen.iter()
            .filter(|of| !shows(&item(of).docs) && !links(&item(of).docs))
            .map(|(module, name)| format!("{}::{name}", module.join("::")))
            .collect()
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
fn every_public_item_has_an_example_or_a_link_to_one() {
    let without = Surface::of(&Modules::of("crate/src")).without_example();
    assert!(without.is_empty(), "{} items: {without:#?}", without.len());
}

#[test]
fn examples_and_links_to_them_are_found() {
    let room = "/// Has one:\n///\n/// ```\n/// ```\npub struct Shown;\n/// Part of a [`Shown`].\npub struct Part;\n\
        /// Nothing.\npub struct Bare {\n    /// Two.\n    pub x: u8,\n}\n/// Makes a [thing](Bare).\npub fn vain() {}\n\
        /// Has a method.\npub struct Made;\nimpl Made {\n    /// As in [the front page](crate#made).\n    pub fn new() {}\n}\n";
    let planted = [("lib", "pub mod room;"), ("room", room)];
    let planted = planted.map(|(name, code)| (name.to_owned(), code.to_owned()));
    let surface = Surface::of(&Modules::parsed(planted.into_iter()));
    assert_eq!(surface.without_example(), ["room::Bare", "room::vain"]);
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
            "pub struct Tool;\n#[macro_export]\nmacro_rules! made {\n    () => {};\n}",
        ),
    ];
    let planted = planted.map(|(name, code)| (name.to_owned(), code.to_owned()));
    let rooms = Surface::of(&Modules::parsed(planted.into_iter())).rooms();
    // The room, `Kind` with two variants and a field, `Shown` with a field and a method; the macro.
    assert_eq!(
        rooms,
        BTreeMap::from([(String::new(), 1), ("room".to_string(), 1 + 4 + 3)])
    );
}
