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
    let (own, table) =
        names::embedding(architecture).split_at(names::embedding(architecture).find('.')? + 1);
    let plain: Vec<String> = tensors
        .iter()
        .map(|tensor| unwrapped(&tensor.name))
        .collect();
    let found = plain
        .iter()
        .enumerate()
        .filter_map(|(at, name)| Some((at, name.strip_suffix(table)?)));
    let mut found = found.filter(|(_, prefix)| prefix.is_empty() || prefix.ends_with('.'));
    let (Some((embedding, prefix)), None) = (found.next(), found.next()) else {
        return None;
    };
    let is_head = |name: &str| {
        name.strip_suffix(names::HEAD)
            .is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    let shared = |name: &String| {
        is_head(name) || name.starts_with(prefix) && !(prefix.is_empty() && name.starts_with(own))
    };
    if !plain.iter().all(shared) {
        return None;
    }
    let renamed = |name: &String| match name.strip_prefix(prefix) {
        _ if is_head(name) => names::HEAD.to_string(),
        Some(rest) => format!("{own}{rest}"),
        None => name.clone(),
    };
    let new: Vec<String> = plain.iter().map(renamed).collect();
    if new
        .iter()
        .zip(tensors.iter())
        .all(|(name, tensor)| *name == tensor.name)
    {
        return None;
    }
    let table = tensors.get(embedding);
    let found = table.map(|tensor| Warning::new(word!("model.tensor.prefix"), tensor.own_name()));
    for (tensor, name) in tensors.iter_mut().zip(new) {
        *tensor = tensor.clone().renamed(&name);
    }
    found
}

/// Returns the name without the parts of wrappers.
fn unwrapped(name: &str) -> String {
    name.split('.')
        .filter(|part| !WRAPPERS.contains(part))
        .collect::<Vec<_>>()
        .join(".")
}
