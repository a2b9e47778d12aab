//! The modules of a crate as syn parses them, with the paths that each names; what is in comments, texts and tests is not seen.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, File, ItemMod, ItemUse, Macro, UseTree, Visibility};

use super::source::{files, root, text};

/// A path of modules and items below the crate's root, such as `["formats", "json", "parse"]`.
pub type Path = Vec<String>;

/// The modules of a crate by path.
pub struct Modules(pub BTreeMap<Path, File>);

/// A name that a `use` brings into its module.
pub struct Import {
    /// Path of what is named, from the crate's root; its last part is `*` for all names.
    pub path: Path,
    /// Name in the module.
    pub name: String,
    pub public: bool,
    pub hidden: bool,
}

pub fn path(text: &str) -> Path {
    text.split("::").map(str::to_owned).collect()
}

/// Returns true for an item without a place in the documentation.
pub fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("doc")
            && attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|word| word == "hidden")
    })
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|word| word == "test")
    })
}

impl Modules {
    /// Reads the modules of the crate with this folder.
    pub fn of(folder: &str) -> Self {
        let below = root().join(folder);
        let read = |file: &std::path::PathBuf| {
            let shown = file.strip_prefix(&below).expect("listed below the folder");
            let shown = shown
                .with_extension("")
                .to_string_lossy()
                .replace('\\', "/");
            (
                shown.trim_end_matches("/mod").replace('/', "::"),
                text(file),
            )
        };
        Self::parsed(files(folder, &[".rs"]).iter().map(read))
    }

    /// Parses modules by the texts of their paths.
    pub fn parsed(modules: impl Iterator<Item = (String, String)>) -> Self {
        let parsed = |(name, code): (String, String)| {
            let file = syn::parse_file(&code).unwrap_or_else(|error| panic!("{name}: {error}"));
            (path(&name), file)
        };
        Self(modules.map(parsed).collect())
    }

    /// Returns the imports of a module, and the paths below the crate's root that its code names without them.
    pub fn named(&self, me: &Path) -> (Vec<Import>, Vec<Path>) {
        let mut named = Named {
            modules: self,
            me: me.clone(),
            imports: Vec::new(),
            paths: Vec::new(),
        };
        named.visit_file(&self.0[me]);
        (named.imports, named.paths)
    }
}

/// Names of a module, as they are found.
struct Named<'a> {
    modules: &'a Modules,
    me: Path,
    imports: Vec<Import>,
    paths: Vec<Path>,
}

impl Named<'_> {
    /// Returns a path as it is written here, from the crate's root; `None` for what is outside.
    fn absolute(&self, written: &[String]) -> Option<Path> {
        let (first, rest) = written.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([&self.me, rest].concat()),
            "super" => {
                let up = written.iter().take_while(|part| *part == "super").count();
                let above = &self.me[..self.me.len().checked_sub(up)?];
                Some([above, &written[up..]].concat())
            }
            _ => {
                let child = [self.me.as_slice(), std::slice::from_ref(first)].concat();
                let path = [self.me.as_slice(), written].concat();
                self.modules.0.contains_key(&child).then_some(path)
            }
        }
    }

    /// Adds the leaves of a `use` tree after a path: `a::{b, c::d}` is `a::b` and `a::c::d`.
    fn leaves(&mut self, item: &ItemUse, tree: &UseTree, mut before: Path) {
        let name = match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                return self.leaves(item, &path.tree, before);
            }
            UseTree::Group(group) => {
                let trees = group.items.iter();
                return trees.for_each(|tree| self.leaves(item, tree, before.clone()));
            }
            UseTree::Rename(rename) => {
                before.push(rename.ident.to_string());
                rename.rename.to_string()
            }
            UseTree::Name(name) if name.ident == "self" => {
                before.last().cloned().unwrap_or_default()
            }
            UseTree::Name(name) => {
                before.push(name.ident.to_string());
                name.ident.to_string()
            }
            UseTree::Glob(_) => {
                before.push("*".to_owned());
                "*".to_owned()
            }
        };
        self.imports
            .extend(self.absolute(&before).map(|path| Import {
                path,
                name,
                public: matches!(item.vis, Visibility::Public(_)),
                hidden: is_hidden(&item.attrs),
            }));
    }

    /// Adds a path that is written in code, if it begins at the root or at a module above.
    fn written(&mut self, path: &[String]) {
        if path.len() > 1 && ["crate", "super", "self"].contains(&path[0].as_str()) {
            self.paths.extend(self.absolute(path));
        }
    }

    /// Adds the paths in the tokens of a macro; one after `$` is that of the macro's crate.
    fn tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut colons, mut dollar) = (Path::new(), 0, false);
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons < 2 {
                        self.written(&std::mem::take(&mut path));
                    }
                    if !(dollar && path.is_empty()) {
                        path.push(ident.to_string());
                    }
                    (colons, dollar) = (0, false);
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                other => {
                    self.written(&std::mem::take(&mut path));
                    colons = 0;
                    dollar = matches!(&other, TokenTree::Punct(punct) if punct.as_char() == '$');
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.written(&path);
    }
}

impl<'a> Visit<'a> for Named<'_> {
    fn visit_item_use(&mut self, item: &'a ItemUse) {
        self.leaves(item, &item.tree, Path::new());
    }

    fn visit_item_mod(&mut self, item: &'a ItemMod) {
        if !is_test(&item.attrs) {
            self.me.push(item.ident.to_string());
            visit::visit_item_mod(self, item);
            self.me.pop();
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let parts = path.segments.iter();
        self.written(&parts.map(|part| part.ident.to_string()).collect::<Path>());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'a Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }

    fn visit_visibility(&mut self, _: &'a Visibility) {}

    fn visit_attribute(&mut self, _: &'a Attribute) {}
}
