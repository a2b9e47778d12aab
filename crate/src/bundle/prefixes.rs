//! Corrects tensor names with one common prefix too many or too few, as left by wrappers of training programs and bare inner models.

use crate::config::Architecture;
use crate::error::{Warning, word};
use crate::families::names;
use crate::state::Tensor;

/// Parts of a name that only wrappers add: those of parallel and compiled models, and of blocks that are computed twice or in shards.
const WRAPPERS: [&str; 5] = [
    "module",
    "_orig_mod",
    "_forward_module",
    "_fsdp_wrapped_module",
    "_checkpoint_wrapped_module",
];

/// Gives the tensors of a folder the names of their family where theirs differ only by a common prefix, and returns one warning with the stored
/// name of the input embedding. The embedding shows the prefix; if it occurs twice or not at all, or other names do not share its prefix, every
/// name stays.
pub(super) fn settle_prefix(tensors: &mut [Tensor], architecture: Architecture) -> Option<Warning> {
    let embedding = names::embedding(architecture);
    let (own, table) = embedding.split_at(embedding.find('.')? + 1);
    let plain: Vec<String> = tensors.iter().map(|one| unwrapped(&one.name)).collect();
    let before = |name: &'_ str, end: &str| {
        let before = name.strip_suffix(end)?;
        (before.is_empty() || before.ends_with('.')).then_some(before.len())
    };
    let mut tables = (0..plain.len()).filter(|&at| before(&plain[at], table).is_some());
    let (Some(embedding), None) = (tables.next(), tables.next()) else {
        return None;
    };
    let prefix = &plain[embedding][..before(&plain[embedding], table)?];
    // Every name begins with the prefix and the head has one of its own, else every name stays.
    let renamed = |name: &String| {
        if before(name, names::HEAD).is_some() {
            return Some(names::HEAD.to_string());
        }
        let rest = name.strip_prefix(prefix)?;
        (!prefix.is_empty() || !name.starts_with(own)).then(|| format!("{own}{rest}"))
    };
    let new = plain.iter().map(renamed).collect::<Option<Vec<_>>>()?;
    if tensors.iter().map(|tensor| &tensor.name).eq(&new) {
        return None;
    }
    let warning = Warning::new(word!("model.tensor.prefix"), tensors[embedding].own_name());
    for (tensor, name) in tensors.iter_mut().zip(new) {
        *tensor = tensor.clone().renamed(&name);
    }
    Some(warning)
}

/// Removes the parts of wrappers from a name.
fn unwrapped(name: &str) -> String {
    name.split('.')
        .filter(|part| !WRAPPERS.contains(part))
        .collect::<Vec<_>>()
        .join(".")
}
