//! Models by name: the copies that `huggingface_hub` keeps on this machine. Nothing is downloaded here.

use std::path::{Path, PathBuf};

use tabtune::formats::HubOrigin;

use crate::error::{Result, RunError};

/// Addresses that name the same as `hf:`.
const PAGES: [&str; 2] = ["https://huggingface.co/", "https://hf.co/"];

/// A repository of the hub, at a revision, and perhaps a file or folder in it.
#[derive(Debug, PartialEq)]
struct Name {
    repository: String,
    revision: String,
    inside: String,
}

impl Name {
    /// Reads `hf:owner/name[@revision][/file]`, or the address of a page or file of the hub; `None` for a path.
    fn of(text: &str) -> Option<Self> {
        let page = PAGES.iter().find_map(|page| text.strip_prefix(page));
        let rest = text.strip_prefix("hf:").or(page)?;
        let rest = rest.split(['?', '#']).next()?.trim_matches('/');
        let mut parts = rest.splitn(3, '/');
        let (owner, name) = (parts.next()?, parts.next()?);
        let inside = parts.next().unwrap_or_default();
        let (name, revision) = name.split_once('@').unwrap_or((name, "main"));
        let mut found = Self {
            repository: format!("{owner}/{name}"),
            revision: revision.to_owned(),
            inside: inside.to_owned(),
        };
        if page.is_some()
            && let Some((kind, rest)) = inside.split_once('/')
            && ["tree", "blob", "resolve"].contains(&kind)
        {
            let (revision, inside) = rest.split_once('/').unwrap_or((rest, ""));
            (found.revision, found.inside) = (revision.to_owned(), inside.to_owned());
        }
        Some(found)
    }

    /// Returns the place of the repository's newest copy of the revision below the cache, if it is there.
    fn in_cache(&self, cache: &Path) -> Option<PathBuf> {
        let folder = cache.join(format!("models--{}", self.repository.replace('/', "--")));
        let stated = std::fs::read_to_string(folder.join("refs").join(&self.revision));
        let commit = stated.unwrap_or_else(|_| self.revision.clone());
        let copy = folder.join("snapshots").join(commit.trim());
        let place = copy.join(&self.inside);
        place.exists().then_some(place)
    }
}

/// Returns the folder in which `huggingface_hub` keeps its copies, by its own variables.
fn cache() -> PathBuf {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = || {
        PathBuf::from(
            variable("HOME")
                .or(variable("USERPROFILE"))
                .unwrap_or_default(),
        )
    };
    let caches = || variable("XDG_CACHE_HOME").map_or_else(|| home().join(".cache"), PathBuf::from);
    let of_hub = || variable("HF_HOME").map_or_else(|| caches().join("huggingface"), PathBuf::from);
    variable("HF_HUB_CACHE").map_or_else(|| of_hub().join("hub"), PathBuf::from)
}

/// Returns the place of a model on this machine: a path as it is, the name of a repository by its copy.
///
/// # Errors
/// `cli.usage` with the command that fetches it, if there is no copy.
pub fn located(path: &Path) -> Result<PathBuf> {
    let Some(name) = path.to_str().and_then(Name::of) else {
        return Ok(path.to_path_buf());
    };
    let cache = cache();
    name.in_cache(&cache).ok_or_else(|| {
        let Name {
            repository,
            revision,
            inside,
        } = &name;
        let file = match inside.is_empty() {
            true => String::new(),
            false => format!(" {inside}"),
        };
        RunError::Usage(format!(
            "{}: there is no copy of it in {}; fetch it with: hf download {repository}{file} --revision {revision}",
            path.display(),
            cache.display()
        ))
    })
}

/// Returns the commit that a file belongs to, if it is in a copy of `huggingface_hub`.
pub(super) fn origin_of(path: &Path) -> Option<HubOrigin> {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    parts.windows(3).find_map(|parts| {
        let [folder, "snapshots", commit] = parts else {
            return None;
        };
        let (owner, name) = folder.strip_prefix("models--")?.split_once("--")?;
        Some(HubOrigin {
            repo: format!("{owner}/{name}"),
            revision: None,
            commit: (*commit).to_owned(),
        })
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Name, origin_of};

    #[test]
    fn a_copy_states_its_repository_and_commit() {
        let origin = origin_of(Path::new("/c/models--a--b--c/snapshots/0f1e/x/y.gguf"));
        let origin = origin.map(|origin| (origin.repo, origin.commit));
        assert_eq!(origin, Some(("a/b--c".into(), "0f1e".into())));
        assert_eq!(origin_of(Path::new("snapshots/0f1e/y.gguf")), None);
    }

    #[test]
    fn names_and_addresses_mean_the_same() {
        let name = |repository: &str, revision: &str, inside: &str| {
            Some(Name {
                repository: repository.into(),
                revision: revision.into(),
                inside: inside.into(),
            })
        };
        for (text, expected) in [
            ("hf:a/b", name("a/b", "main", "")),
            ("hf:a/b@v1", name("a/b", "v1", "")),
            ("hf:a/b@v1/x/y.gguf", name("a/b", "v1", "x/y.gguf")),
            ("https://huggingface.co/a/b", name("a/b", "main", "")),
            (
                "https://huggingface.co/a/b/tree/dev",
                name("a/b", "dev", ""),
            ),
            (
                "https://hf.co/a/b/blob/dev/y.gguf?show_file_info=y.gguf",
                name("a/b", "dev", "y.gguf"),
            ),
            ("models/a/b", None),
            ("hf:a", None),
        ] {
            assert_eq!(Name::of(text), expected, "{text}");
        }
    }
}
