//! The names of `tokenizer.ggml.pre`, by the rule that llama.cpp applies for them (`src/llama-vocab.cpp`).

/// Rule by which a text is split before it is divided into byte-level tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Split {
    /// GPT-2's expression.
    Gpt2,
    /// GPT-2's expression, after each digit was split off.
    Digits,
    /// Words with one leading sign, and single digits.
    Qwen2,
    /// Words with one leading sign, and groups of up to three digits.
    Llama3,
}

/// The meaning of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pre {
    /// Rule by which the text is split.
    pub(super) split: Split,
    /// True if a word that is a token is never built by merges, and a text begins with its own token by default.
    pub(super) whole: bool,
}

const GPT2: [&str; 19] = [
    "gpt-2",
    "phi-2",
    "jina-es",
    "jina-de",
    "jina-v1-en",
    "jina-v2-es",
    "jina-v2-de",
    "jina-v2-code",
    "roberta-bpe",
    "gigachat",
    "a.x-4.0",
    "mellum",
    "modern-bert",
    "mpt",
    "olmo",
    "jais",
    "trillion",
    "granite-docling",
    "exaone4",
];
const DIGITS: [&str; 7] = ["smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"];
const QWEN2: [&str; 9] = ["qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2", "hunyuan", "solar-open", "grok-2"];
const LLAMA3: [&str; 9] = ["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"];
/// Llama 3's expression, but tokens are joined as in GPT-2.
const LLAMA3_JOINED: [&str; 4] = ["dbrx", "smaug-bpe", "glm4", "chatglm-bpe"];

impl Pre {
    /// Returns the rule of the name `pre`; `None` if its rule is refused.
    pub(super) fn of(pre: &str) -> Option<Self> {
        let lists: [(&[&str], Split, bool); 5] = [
            (&GPT2, Split::Gpt2, false),
            (&DIGITS, Split::Digits, false),
            (&QWEN2, Split::Qwen2, false),
            (&LLAMA3, Split::Llama3, true),
            (&LLAMA3_JOINED, Split::Llama3, false),
        ];
        let (_, split, whole) = lists.into_iter().find(|(words, ..)| words.contains(&pre))?;
        Some(Self { split, whole })
    }
}
