//! Facts about a tokenizer other than its assets.

use serde::{Deserialize, Serialize};

/// Method by which a tokenizer makes tokens ([example](crate::portable)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenizerFamily {
    /// Byte-level merges of pairs.
    BytePairEncoding,
    /// Pieces with a mark for a space.
    SentencePiece,
    /// Longest matching piece first.
    WordPiece,
    /// Most probable segmentation into pieces.
    Unigram,
    /// One token for each character.
    Character,
    /// Another method.
    Custom,
}

/// Kind of a tokenizer's assets ([example](crate::portable)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssetFormat {
    /// `tokenizer.json` and the documents next to it.
    TokenizerJson,
    /// Metadata of a GGUF file.
    GgufMetadata,
    /// SentencePiece's own file.
    SentencePieceModel,
    /// tabtune's list of characters.
    CharacterTable,
}

/// A tokenizer without its assets; every field is written, and is `null` where the file does not state it ([example](crate::portable)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenizerRecord {
    /// Method by which it makes tokens.
    pub family: TokenizerFamily,
    /// Kind of its assets.
    pub asset_format: AssetFormat,
    /// Version that the assets state.
    pub asset_version: String,
    /// Number of tokens.
    pub vocab_size: u64,
    /// True if the token that begins a text is added.
    pub add_bos: Option<bool>,
    /// True if the token that ends a text is added.
    pub add_eos: Option<bool>,
    /// Id of the token that begins a text.
    pub bos: Option<u32>,
    /// Ids of the tokens that end a text.
    pub eos: Vec<u32>,
    /// Id of the padding token.
    pub pad: Option<u32>,
    /// Id of the token for text that has none.
    pub unk: Option<u32>,
}

/// Tokenizer documents for other programs, which are kept with the model.
pub const CARRIED_FILES: [&str; 11] = [
    "tokenizer.model",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model.v3",
    "tekken.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "qwen.tiktoken",
    "vocab.txt",
    TEMPLATES,
];

/// File of chat templates that older programs wrote for a processor.
pub(crate) const TEMPLATES: &str = "chat_template.json";
