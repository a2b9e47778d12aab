//! What is known of a tokenizer beside its assets.

use serde::{Deserialize, Serialize};

/// How a tokenizer makes tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenizerFamily {
    /// Merges of pairs, over bytes.
    BytePairEncoding,
    /// Pieces with a mark for a space.
    SentencePiece,
    /// Longest piece first.
    WordPiece,
    /// Most probable pieces.
    Unigram,
    /// One token a character.
    Character,
    /// Something else.
    Custom,
}

/// What a tokenizer's assets are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssetFormat {
    /// `tokenizer.json` and the documents beside it.
    TokenizerJson,
    /// Metadata of a GGUF file.
    GgufMetadata,
    /// SentencePiece's own file.
    SentencePieceModel,
    /// tabtune's list of characters.
    CharacterTable,
}

/// A tokenizer without its assets; every field is written, `null` where the file does not say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenizerRecord {
    /// How it makes tokens.
    pub family: TokenizerFamily,
    /// What its assets are.
    pub asset_format: AssetFormat,
    /// Version that the assets state.
    pub asset_version: String,
    /// Number of tokens.
    pub vocab_size: u64,
    /// Whether the token that begins a text is added.
    pub add_bos: Option<bool>,
    /// Whether the token that ends a text is added.
    pub add_eos: Option<bool>,
    /// Begins a text.
    pub bos: Option<u32>,
    /// End a text.
    pub eos: Vec<u32>,
    /// Fills up.
    pub pad: Option<u32>,
    /// Stands for what has no token.
    pub unk: Option<u32>,
}

/// Documents of a tokenizer for other programs, which go with the model.
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

/// Chat templates as older programs wrote them beside a processor.
pub(crate) const TEMPLATES: &str = "chat_template.json";
