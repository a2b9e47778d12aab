//! Classes of tokenizers in transformers that state more than the files of a folder do.

use serde_json::Value;

/// A class, and what it states by default (transformers 5.24 and 4.57, `tokenization_<model>.py` and `tokenization_<model>_fast.py`).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TokenizerClass {
    /// Names in `tokenizer_class`, without `Fast` at the end.
    names: &'static [&'static str],
    /// Words with which `model_type` begins if it implies the class.
    model_types: &'static [&'static str],
    /// Special tokens by their keys.
    pub tokens: &'static [(&'static str, &'static str)],
    pub framing: Framing,
    /// True if the class counts for vocabularies of SentencePiece only.
    pub of_pieces: bool,
}

/// Source of the tokens around a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// The post-processor.
    Processor,
    /// `add_bos_token` and `add_eos_token`, else the post-processor; if neither says how a text begins, it begins with `bos_token`.
    Begun,
    /// `add_bos_token` and `add_eos_token` alone.
    Keys,
}

/// The token that ends a text in GPT-2 and in new models.
pub(super) const END: &str = "<|endoftext|>";

/// A class that states nothing.
const PLAIN: TokenizerClass = TokenizerClass {
    names: &[],
    model_types: &[],
    tokens: &[],
    framing: Framing::Processor,
    of_pieces: false,
};

static LLAMA: TokenizerClass = TokenizerClass {
    names: &["LlamaTokenizer", "CodeLlamaTokenizer"],
    tokens: &[
        ("bos_token", "<s>"),
        ("eos_token", "</s>"),
        ("unk_token", "<unk>"),
    ],
    framing: Framing::Begun,
    of_pieces: true,
    ..PLAIN
};
static GEMMA: TokenizerClass = TokenizerClass {
    names: &["GemmaTokenizer"],
    tokens: &[
        ("bos_token", "<bos>"),
        ("eos_token", "<eos>"),
        ("unk_token", "<unk>"),
        ("pad_token", "<pad>"),
        ("mask_token", "<mask>"),
    ],
    framing: Framing::Begun,
    ..PLAIN
};
static COHERE: TokenizerClass = TokenizerClass {
    names: &["CohereTokenizer"],
    tokens: &[
        ("bos_token", "<BOS_TOKEN>"),
        ("eos_token", "<|END_OF_TURN_TOKEN|>"),
        ("unk_token", "<UNK>"),
        ("sep_token", "<SEP>"),
        ("pad_token", "<PAD>"),
        ("cls_token", "<CLS>"),
        ("mask_token", "<MASK_TOKEN>"),
    ],
    framing: Framing::Begun,
    ..PLAIN
};
pub(super) static GPT2: TokenizerClass = TokenizerClass {
    names: &["GPT2Tokenizer"],
    model_types: &["gpt2"],
    tokens: &[("bos_token", END), ("eos_token", END), ("unk_token", END)],
    ..PLAIN
};
pub(super) static QWEN2: TokenizerClass = TokenizerClass {
    names: &["Qwen2Tokenizer"],
    model_types: &["qwen"],
    tokens: &[("eos_token", END), ("unk_token", END), ("pad_token", END)],
    ..PLAIN
};
static GPT_NEOX: TokenizerClass = TokenizerClass {
    names: &["GPTNeoXTokenizer"],
    model_types: &["gpt_neox"],
    tokens: &[
        ("bos_token", END),
        ("eos_token", END),
        ("unk_token", END),
        ("pad_token", "<|padding|>"),
    ],
    framing: Framing::Keys,
    ..PLAIN
};

/// Its lower case, accents and Chinese characters are those of `tokenizer_config.json`, not of tokenizer.json.
pub(super) static BERT: TokenizerClass = TokenizerClass {
    names: &["BertTokenizer"],
    tokens: &[
        ("unk_token", "[UNK]"),
        ("sep_token", "[SEP]"),
        ("pad_token", "[PAD]"),
        ("cls_token", "[CLS]"),
        ("mask_token", "[MASK]"),
    ],
    ..PLAIN
};

impl TokenizerClass {
    /// Returns the class that `tokenizer_config.json` names, else the one that `config.json` names or implies by the type of the model.
    pub fn of(settings: &Value, config: &Value) -> Option<&'static Self> {
        let all = [&LLAMA, &GEMMA, &COHERE, &GPT2, &QWEN2, &GPT_NEOX, &BERT];
        let key = "tokenizer_class";
        let mut all = all.into_iter();
        if let Some(name) = settings[key].as_str().or_else(|| config[key].as_str()) {
            let name = name.strip_suffix("Fast").unwrap_or(name);
            return all.find(|class| class.names.contains(&name));
        }
        let model_type = config["model_type"].as_str().unwrap_or_default();
        all.find(|class| {
            class
                .model_types
                .iter()
                .any(|word| model_type.starts_with(word))
        })
    }

    /// Returns true if the class counts for a `tokenizer.json`: transformers takes byte-level ones of Llama's class as they are.
    pub fn rules(&self, document: &[u8]) -> bool {
        const WORD: &[u8] = b"\"ByteLevel\"";
        !self.of_pieces || !document.windows(WORD.len()).any(|found| found == WORD)
    }
}
