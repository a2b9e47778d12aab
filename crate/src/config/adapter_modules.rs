//! The modules of a model, as an adapter's settings see them.

use std::borrow::Cow;
use std::collections::BTreeSet;

/// Kind of a module with weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModuleKind {
    /// A weight matrix of a linear layer.
    Matrix,
    /// A norm.
    Norm,
    /// An embedding table.
    Embedding,
    /// The output head.
    Head,
}

/// A module of a model that has weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Full name in Hugging Face's layout, without `.weight`: `model.layers.0.self_attn.q_proj`, `transformer.h.0.attn.c_attn`.
    pub name: String,
    /// Number of the block that contains it; `None` outside the blocks.
    pub block: Option<usize>,
    /// Rows and columns of its matrix, `[out, in]`; for a norm, its width and 1.
    pub shape: [usize; 2],
    /// Kind of the module.
    pub kind: ModuleKind,
    /// True if embedding and head are one matrix.
    pub tied: bool,
    /// True if the base stores the matrix as `[in, out]`; the factors have the same shapes in either case.
    pub fan_in_fan_out: bool,
}

/// Names by which PEFT knows the modules of a family.
#[derive(Debug, PartialEq, Eq)]
pub struct PeftNames {
    /// Targets of an adapter whose settings name none.
    pub targets: &'static [&'static str],
    /// Module without weights outside the blocks, as transformers names it.
    pub outside: &'static str,
    /// Modules without weights inside a block.
    pub inside: &'static [&'static str],
}

/// A name that PEFT sees in a model: a module with weights, one without, or a container of modules.
pub(super) struct Known<'a> {
    pub name: Cow<'a, str>,
    pub module: Option<&'a Module>,
}

impl Known<'_> {
    pub fn kind(&self) -> Option<ModuleKind> {
        self.module.map(|module| module.kind)
    }

    /// Describes the module for a message.
    pub fn what(&self) -> &'static str {
        match self.kind() {
            Some(ModuleKind::Matrix) => "a matrix",
            Some(ModuleKind::Norm) => "a norm",
            Some(ModuleKind::Embedding) => "an embedding",
            Some(ModuleKind::Head) => "the head",
            None => "a module without weights of its own",
        }
    }
}

/// The modules, followed by the other names that PEFT sees in the model, since PEFT also refuses a pattern that matches one of
/// these. Names of modules without weights are those of transformers.
pub(super) fn known<'a>(names: &PeftNames, modules: &'a [Module]) -> Vec<Known<'a>> {
    let mut others = BTreeSet::from([names.outside.to_string()]);
    for module in modules {
        others.extend(
            module
                .name
                .match_indices('.')
                .map(|(at, _)| module.name[..at].to_string()),
        );
        let number = module.block.map(|block| format!(".{block}."));
        if let Some((before, _)) = number
            .as_ref()
            .and_then(|number| module.name.split_once(number.as_str()))
        {
            let block = module.block.unwrap_or_default();
            others.extend(
                names
                    .inside
                    .iter()
                    .map(|name| format!("{before}.{block}.{name}")),
            );
        }
    }
    let own = modules.iter().map(|module| Known {
        name: Cow::Borrowed(module.name.as_str()),
        module: Some(module),
    });
    own.chain(others.into_iter().map(|name| Known {
        name: Cow::Owned(name),
        module: None,
    }))
    .collect()
}

/// Groups names that differ only in their numbers: returns the first of each group, its value and the size of the group.
pub(super) fn once_a_block<'a, T>(
    names: impl Iterator<Item = (&'a str, T)>,
) -> Vec<(&'a str, T, usize)> {
    let without_numbers = |name: &str| -> Vec<String> {
        let part = |part: &str| {
            if part.bytes().all(|byte| byte.is_ascii_digit()) {
                String::new()
            } else {
                part.to_string()
            }
        };
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
