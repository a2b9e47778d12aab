//! Names of the tensors in an adapter's file.

/// The two matrices of a pair, of a matrix and of a table of embeddings.
pub(crate) const PAIRS: [[&str; 2]; 2] = [["lora_A", "lora_B"], ["lora_embedding_A", "lora_embedding_B"]];
/// Wrappers of PEFT around a module that is stored in full.
const WRAPPERS: [&str; 3] = [".modules_to_save.default.", ".modules_to_save.", ".base_layer."];

/// Module, kind and side of a matrix of a pair: `<module>.lora_A.weight`, with or without the name `default` of the adapter.
pub(crate) fn half(name: &str) -> Option<(&str, usize, usize)> {
    PAIRS.iter().enumerate().flat_map(|(kind, words)| words.iter().enumerate().map(move |(side, word)| (kind, side, *word))).find_map(
        |(kind, side, word)| {
            let (module, end) = name.rsplit_once(word)?;
            matches!(end, "" | ".weight" | ".default" | ".default.weight").then_some((module.strip_suffix('.')?, kind, side))
        },
    )
}

/// Whether this is the base's tensor beside one that was trained in full, which PEFT stores where a vocabulary was resized.
pub(crate) fn is_original(name: &str) -> bool {
    name.contains(".original_module.")
}

/// The base's name of a tensor that is stored in full.
pub(crate) fn plain(name: &str) -> String {
    let found = WRAPPERS.iter().find_map(|wrapper| name.rsplit_once(wrapper));
    found.map_or_else(|| name.to_string(), |(module, end)| format!("{module}.{end}"))
}
