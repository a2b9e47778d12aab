//! The modules of a model, for the settings of an adapter.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::model::Architecture;

/// What a module with weights is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModuleKind {
    /// A matrix that multiplies.
    Matrix,
    /// A norm.
    Norm,
    /// A table of embeddings.
    Embedding,
    /// The head.
    Head,
}

/// A module of a model that has weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Name in Hugging Face's layout without `.weight`: `model.layers.0.self_attn.q_proj`, `transformer.h.0.attn.c_attn`.
    pub name: String,
    /// The block that it stands in.
    pub block: Option<usize>,
    /// Rows and columns of its matrix, `[out, in]`; of a norm its width and 1.
    pub shape: [usize; 2],
    /// What it is.
    pub kind: ModuleKind,
    /// Embedding and head are one matrix.
    pub tied: bool,
    /// The base stores the matrix as `[in, out]`; factors have the same shapes all the same.
    pub fan_in_fan_out: bool,
}

/// A name that PEFT meets in a model: of a module with weights, of one without, or of what holds modules.
pub(super) struct Known<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) module: Option<&'a Module>,
}

impl Known<'_> {
    pub(super) fn kind(&self) -> Option<ModuleKind> {
        self.module.map(|module| module.kind)
    }

    /// What it is in words.
    pub(super) fn what(&self) -> &'static str {
        match self.kind() {
            Some(ModuleKind::Matrix) => "a matrix",
            Some(ModuleKind::Norm) => "a norm",
            Some(ModuleKind::Embedding) => "an embedding",
            Some(ModuleKind::Head) => "the head",
            None => "a module without weights of its own",
        }
    }
}

/// The modules, and then what PEFT meets besides: a pattern that matches it is refused there too. Names without weights are those of
/// transformers.
pub(super) fn known(architecture: Architecture, modules: &[Module]) -> Vec<Known<'_>> {
    let (outside, inside): (&str, &[&str]) = match architecture {
        Architecture::Llama => ("model.rotary_emb", &["mlp.act_fn"]),
        Architecture::Gpt2 => ("transformer.drop", &["attn.attn_dropout", "attn.resid_dropout", "mlp.act", "mlp.dropout"]),
    };
    let mut others = BTreeSet::from([outside.to_string()]);
    for module in modules {
        others.extend(module.name.match_indices('.').map(|(at, _)| module.name[..at].to_string()));
        let number = module.block.map(|block| format!(".{block}."));
        if let Some((before, _)) = number.as_ref().and_then(|number| module.name.split_once(number.as_str())) {
            let block = module.block.unwrap_or_default();
            others.extend(inside.iter().map(|name| format!("{before}.{block}.{name}")));
        }
    }
    let own = modules.iter().map(|module| Known { name: Cow::Borrowed(module.name.as_str()), module: Some(module) });
    own.chain(others.into_iter().map(|name| Known { name: Cow::Owned(name), module: None })).collect()
}

/// Of names that differ only in their numbers the first, with what belongs to it and how many they are.
pub(super) fn once_a_block<'a, T>(names: impl Iterator<Item = (&'a str, T)>) -> Vec<(&'a str, T, usize)> {
    let without_numbers = |name: &str| -> Vec<String> {
        let part = |part: &str| if part.bytes().all(|byte| byte.is_ascii_digit()) { String::new() } else { part.to_string() };
        name.split('.').map(part).collect()
    };
    let mut keys: Vec<Vec<String>> = Vec::new();
    let mut found: Vec<(&str, T, usize)> = Vec::new();
    for (name, of) in names {
        let key = without_numbers(name);
        match keys.iter().position(|known| *known == key) {
            Some(at) => found[at].2 += 1,
            None => {
                keys.push(key);
                found.push((name, of, 1));
            }
        }
    }
    found
}
