//! The words of `tokenizer.ggml.pre`, by the rule that llama.cpp has for them (`src/llama-vocab.cpp`).

/// How a text of a byte-level vocabulary is split before tokens are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Split {
    /// GPT-2's expression.
    Gpt2,
    /// The same after each digit by itself.
    Digits,
    /// Words with one leading sign, and digits by themselves.
    Qwen2,
    /// Words with one leading sign, and digits by up to three.
    Llama3,
}

/// What a word says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pre {
    /// How the text is split.
    pub(super) split: Split,
    /// A word that is a token is never put together from parts, and a text begins with its own token unless the file says otherwise.
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
/// Llama 3's expression with GPT-2's way to join tokens.
const LLAMA3_JOINED: [&str; 4] = ["dbrx", "smaug-bpe", "glm4", "chatglm-bpe"];

impl Pre {
    /// The rule of the word `pre`; `None` for one of a rule that is not built.
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
