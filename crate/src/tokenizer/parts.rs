//! The vocabulary of a GGUF file.

use super::coverage::{byte_of, byte_token};

/// The rule that turns text into tokens.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum PartsModel {
    /// `tokenizer.ggml.model` = `gpt2`: byte-level BPE.
    ByteLevelBpe {
        /// Merges `left right`, best first.
        merges: Vec<String>,
        /// Name of the split rule, `tokenizer.ggml.pre`: one of llama.cpp's words, such as `gpt-2` or `llama-bpe`.
        pre: String,
    },
    /// `tokenizer.ggml.model` = `llama`: neighbouring pieces are joined by the best score.
    SentencePiece {
        /// Score of each token. Empty = all equal.
        scores: Vec<f32>,
        /// True if a space is put before the text, as is GGUF's default.
        add_space_prefix: bool,
    },
    /// `tokenizer.ggml.model` = `rwkv` where each token is one character: in every other model of llama.cpp some ids end a text.
    #[default]
    Characters,
}

/// A vocabulary as GGUF stores it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TokenizerParts {
    /// Rule of the vocabulary.
    pub model: PartsModel,
    /// Texts of the tokens, `tokenizer.ggml.tokens`.
    pub tokens: Vec<String>,
    /// Types of the tokens, `tokenizer.ggml.token_type`: 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte. Empty = all
    /// normal.
    pub types: Vec<i32>,
    /// Id that begins a text.
    pub bos: Option<u32>,
    /// Ids that end a text or a turn, that of the text first, without repeats.
    pub eos: Vec<u32>,
    /// Id that pads short sequences.
    pub pad: Option<u32>,
    /// Id for text without a token.
    pub unk: Option<u32>,
    /// True if a text begins with `bos`, `tokenizer.ggml.add_bos_token`; absent: yes for SentencePiece and some byte-level rules, such as
    /// `llama-bpe`, else no.
    pub add_bos: Option<bool>,
    /// True if a text ends with the first `eos`, `tokenizer.ggml.add_eos_token`; absent: no.
    pub add_eos: Option<bool>,
    /// Chat template, `tokenizer.chat_template`.
    pub chat_template: Option<String>,
    /// Named chat templates, `tokenizer.chat_template.<name>`: name and text.
    pub named_templates: Vec<(String, String)>,
    /// Ids of the tokens that take the spaces before them.
    pub lstrip: Vec<u32>,
    /// Ids of the tokens that take the spaces after them.
    pub rstrip: Vec<u32>,
}

/// Hint for a vocabulary of a GGUF file whose rule is refused.
pub(crate) const TOKENIZER_JSON_SERVES: &str = "the model's tokenizer.json serves instead: give it together with the file, as a folder of both or, in a browser, as two files";

pub(super) const NORMAL: i32 = 1;
pub(super) const UNKNOWN: i32 = 2;
pub(super) const CONTROL: i32 = 3;
pub(super) const USER_DEFINED: i32 = 4;
pub(super) const UNUSED: i32 = 5;
pub(super) const BYTE: i32 = 6;

impl TokenizerParts {
    /// Returns tokens and their ids. In a vocabulary of characters, rows without a character are not tokens.
    pub(super) fn listed(&self) -> impl Iterator<Item = (&str, usize)> {
        let all = self.model != PartsModel::Characters;
        let tokens = self.tokens.iter().enumerate();
        let counted = tokens.filter(move |(id, _)| all || self.kind(*id) != UNUSED);
        counted.map(|(id, token)| (token.as_str(), id))
    }

    /// The text of a token.
    pub(super) fn text(&self, id: u32) -> Option<&str> {
        self.tokens.get(id as usize).map(String::as_str)
    }

    /// Returns the type of a token.
    pub(super) fn kind(&self, id: usize) -> i32 {
        self.types.get(id).copied().unwrap_or(NORMAL)
    }

    /// Returns true for a token that is found in a text before its rule is applied.
    pub(super) fn is_marked(&self, id: usize) -> bool {
        matches!(self.kind(id), UNKNOWN | CONTROL | USER_DEFINED)
    }

    /// Returns true if the pieces of a text can be joined to this token: those that are found before have no place in a text, unless spaces
    /// are part of them, which are replaced later.
    pub(super) fn is_piece(&self, id: usize, token: &str) -> bool {
        !self.is_marked(id) || token.contains('▁')
    }
}

/// Returns true if a text represents one byte: `<0x0A>`.
pub(super) fn is_byte(text: &str) -> bool {
    byte_of(text).is_some_and(|byte| byte_token(byte) == text)
}

/// A merge and the values that determine its rank: score, id of the result, ids of its parts.
pub(super) type Ranked<'a> = (f32, usize, usize, usize, (&'a str, &'a str));
