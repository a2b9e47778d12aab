//! Names of the documents that a tokenizer is made of.

pub(crate) const TOKENIZER_FILE: &str = "tokenizer.json";
pub(crate) const CONFIG_FILE: &str = "tokenizer_config.json";
pub(crate) const TEMPLATE_FILE: &str = "chat_template.jinja";
pub(crate) const SPECIALS_FILE: &str = "special_tokens_map.json";
pub(crate) const ADDED_FILE: &str = "added_tokens.json";
pub(super) const VOCAB: &str = "vocab.json";
pub(super) const MERGES: &str = "merges.txt";
/// Beginning of the names of chat templates other than the main one.
pub const MORE_TEMPLATES: &str = "additional_chat_templates/";
pub(super) const MODEL_FILE: &str = "config.json";

/// Documents that a tokenizer is made of; a chat template of another name lies in [`MORE_TEMPLATES`].
pub(crate) const READ_FILES: [&str; 8] = [
    TOKENIZER_FILE,
    CONFIG_FILE,
    TEMPLATE_FILE,
    SPECIALS_FILE,
    ADDED_FILE,
    VOCAB,
    MERGES,
    MODEL_FILE,
];
