//! The vocabulary of a GGUF file.

/// The rule that turns text into tokens.
#[derive(Debug, Clone, PartialEq)]
pub enum PartsModel {
    /// `tokenizer.ggml.model` = `gpt2`: byte-level BPE.
    ByteLevelBpe {
        /// Merges `left right`, best first.
        merges: Vec<String>,
        /// Name of the split rule, `tokenizer.ggml.pre`: `gpt-2`, `smollm`, `llama-bpe`, `qwen2`, or another name of these rules in
        /// llama.cpp.
        pre: String,
    },
    /// `tokenizer.ggml.model` = `llama`: neighbouring pieces are joined by the best score.
    SentencePiece {
        /// Score of each token.
        scores: Vec<f32>,
        /// True if a space is put before the text, as is GGUF's default.
        add_space_prefix: bool,
    },
    /// `tokenizer.ggml.model` = `rwkv` where each token is one character: in every other model of llama.cpp some ids end a text.
    Characters,
}

/// A vocabulary as GGUF stores it.
#[derive(Debug, Clone, PartialEq)]
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
    /// Ids that end a text or a turn: eos, eot, eom without repeats.
    pub eos: Vec<u32>,
    /// Id that pads short sequences.
    pub pad: Option<u32>,
    /// Id for text without a token.
    pub unk: Option<u32>,
    /// True if a text begins with `bos`, `tokenizer.ggml.add_bos_token`; absent: yes for SentencePiece and the `llama-bpe` rules, else no.
    pub add_bos: Option<bool>,
    /// True if a text ends with the first `eos`, `tokenizer.ggml.add_eos_token`; absent: no.
    pub add_eos: Option<bool>,
    /// Chat template, `tokenizer.chat_template`.
    pub chat_template: Option<String>,
    /// Named chat templates, `tokenizer.chat_template.<name>`: name and text.
    pub named_templates: Vec<(String, String)>,
}

/// Hint for a vocabulary of a GGUF file whose rule is refused.
pub(crate) const TOKENIZER_JSON_SERVES: &str =
    "the model's tokenizer.json serves instead: give it together with the file, as a folder of both or, in a browser, as two files";

pub(super) const NORMAL: i32 = 1;
pub(super) const UNKNOWN: i32 = 2;
pub(super) const CONTROL: i32 = 3;
pub(super) const USER_DEFINED: i32 = 4;
pub(super) const UNUSED: i32 = 5;
pub(super) const BYTE: i32 = 6;

/// Llama 3: contractions, words with one leading sign, numbers of up to three digits, signs, line ends, spaces.
pub(super) const LLAMA_BPE: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// Qwen2: as Llama 3, but with single digits.
pub(super) const QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

impl TokenizerParts {
    /// Returns tokens and their ids. In a vocabulary of characters, rows without a character are not tokens.
    pub(super) fn listed(&self) -> impl Iterator<Item = (&str, usize)> {
        let all = self.model != PartsModel::Characters;
        let counted = self.tokens.iter().enumerate().filter(move |(id, _)| all || self.kind(*id) != UNUSED);
        counted.map(|(id, token)| (token.as_str(), id))
    }

    /// Returns the type of a token.
    pub(super) fn kind(&self, id: usize) -> i32 {
        self.types.get(id).copied().unwrap_or(NORMAL)
    }
}
