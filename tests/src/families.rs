//! The golden models of every family, which every test of families takes: `golden/models` has a folder for each, and the same weights as GGUF.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::OnceLock;

use tabtune::formats::{ByteSource, MemorySource};

/// A golden model.
pub struct Family {
    /// Name of its folder.
    pub name: &'static str,
    /// Names of its GGUF files: one, or its parts in order.
    pub gguf: Vec<&'static str>,
}

impl Family {
    /// Returns the files of its folder that make a model.
    pub fn folder(&self) -> Vec<Rc<dyn ByteSource>> {
        ["config.json", "model.safetensors"]
            .map(|name| source(name, golden(&format!("{}/{name}", self.name))))
            .into()
    }

    /// Returns its GGUF files.
    pub fn gguf_files(&self) -> Vec<Rc<dyn ByteSource>> {
        self.gguf
            .iter()
            .map(|name| source(name, golden(name)))
            .collect()
    }

    /// Returns its `config.json`.
    pub fn config(&self) -> serde_json::Value {
        serde_json::from_slice(&golden(&format!("{}/config.json", self.name)))
            .expect("a golden is JSON")
    }
}

fn source(name: &str, bytes: Vec<u8>) -> Rc<dyn ByteSource> {
    Rc::new(MemorySource::new(name, bytes))
}

fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/models")
}

/// Reads a file below `golden/models`.
pub fn golden(path: &str) -> Vec<u8> {
    let path = models().join(path);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Lists the golden models by name.
pub fn families() -> &'static [Family] {
    static FAMILIES: OnceLock<Vec<Family>> = OnceLock::new();
    FAMILIES.get_or_init(|| {
        let names = std::fs::read_dir(models()).expect("the goldens can be listed");
        let mut names: Vec<String> = names
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .into_string()
                    .expect("a name in UTF-8")
            })
            .collect();
        names.sort();
        let names: Vec<&'static str> = names.into_iter().map(|name| &*name.leak()).collect();
        let is_file_of = |file: &str, model: &str| {
            file.ends_with(".gguf")
                && file
                    .strip_prefix(model)
                    .is_some_and(|rest| rest.starts_with(['.', '-']))
        };
        let of = |name| Family {
            name,
            gguf: names
                .iter()
                .copied()
                .filter(|file| is_file_of(file, name))
                .collect(),
        };
        names
            .iter()
            .copied()
            .filter(|name| !name.contains('.'))
            .map(of)
            .collect()
    })
}

/// Lists the golden models that GGUF can describe.
pub fn gguf_families() -> impl Iterator<Item = &'static Family> {
    families().iter().filter(|family| !family.gguf.is_empty())
}

/// Returns the golden model of this name.
pub fn family(name: &str) -> &'static Family {
    families()
        .iter()
        .find(|family| family.name == name)
        .unwrap_or_else(|| panic!("no golden model is called {name}"))
}
