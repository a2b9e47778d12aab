//! Names of the tensors in an adapter's file.

/// Names of the two factors of a pair, for a matrix and for a table of embeddings.
pub(crate) const PAIRS: [[&str; 2]; 2] = [
    ["lora_A", "lora_B"],
    ["lora_embedding_A", "lora_embedding_B"],
];
/// Wrappers of PEFT around a module that is stored in full.
const WRAPPERS: [&str; 3] = [
    ".modules_to_save.default.",
    ".modules_to_save.",
    ".base_layer.",
];

/// Returns module, kind and side of a factor of a pair: `<module>.lora_A.weight`, with or without the adapter's name `default`.
pub(crate) fn half(name: &str) -> Option<(&str, usize, usize)> {
    PAIRS
        .iter()
        .enumerate()
        .flat_map(|(kind, words)| {
            words
                .iter()
                .enumerate()
                .map(move |(side, word)| (kind, side, *word))
        })
        .find_map(|(kind, side, word)| {
            let (module, end) = name.rsplit_once(word)?;
            matches!(end, "" | ".weight" | ".default" | ".default.weight").then_some((
                module.strip_suffix('.')?,
                kind,
                side,
            ))
        })
}

/// Returns whether this is the base's copy of a tensor that was trained in full, which PEFT stores where a vocabulary was resized.
pub(crate) fn is_original(name: &str) -> bool {
    name.contains(".original_module.")
}

/// Returns the base's name of a tensor that is stored in full.
pub(crate) fn plain(name: &str) -> String {
    let found = WRAPPERS
        .iter()
        .find_map(|wrapper| name.rsplit_once(wrapper));
    found.map_or_else(
        || name.to_string(),
        |(module, end)| format!("{module}.{end}"),
    )
}
