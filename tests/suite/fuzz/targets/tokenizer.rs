//! Target: the tokenizer in the metadata of a GGUF file.

use tabtune::bundle::{FileFormat, open_bundle};

use super::super::mutation::mutated;
use super::{Target, in_short, inspected};
use crate::bundle::files::{Meta, Tensor, file, gguf, ramp};
use crate::hostile::{bytes_of, cases};

const TOKENIZER_WORDS: [&str; 14] = [
    "tokenizer.ggml.model",
    "tokenizer.ggml.tokens",
    "tokenizer.ggml.merges",
    "tokenizer.ggml.scores",
    "tokenizer.ggml.token_type",
    "tokenizer.ggml.eos_token_id",
    "tokenizer.ggml.bos_token_id",
    "tokenizer.ggml.pre",
    "tokenizer.chat_template",
    "\u{4}\0\0\0\0\0\0\0gpt2",
    "<0x41>",
    "<0xFF>",
    "\u{2581}",
    "Ġ",
];

/// Makes a model with the tokenizer's keys.
fn tokenizer_file(keys: Vec<(&'static str, Meta)>, rows: usize) -> Vec<u8> {
    let counts = [
        ("llama.context_length", 16),
        ("llama.embedding_length", 4),
        ("llama.block_count", 1),
        ("llama.feed_forward_length", 4),
        ("llama.attention.head_count", 1),
    ];
    let mut metadata = vec![
        ("general.architecture", Meta::Text("llama")),
        ("llama.attention.layer_norm_rms_epsilon", Meta::F32(1e-5)),
    ];
    metadata.extend(counts.map(|(key, n)| (key, Meta::U32(n))));
    metadata.extend(keys);
    let embedding: Tensor = ("token_embd.weight", vec![rows, 4], ramp(4 * rows, 0.0));
    gguf(&metadata, &[embedding])
}

fn tokenizer_seeds() -> Vec<Vec<u8>> {
    let texts = |list: &[&str]| Meta::Texts(list.iter().map(|text| (*text).to_string()).collect());
    let pieces = || {
        texts(&[
            "<unk>",
            "<s>",
            "</s>",
            "<0x41>",
            "\u{2581}",
            "a",
            "b",
            "ab",
            "\u{2581}a",
        ])
    };
    let sentence = vec![
        ("tokenizer.ggml.model", Meta::Text("llama")),
        ("tokenizer.ggml.tokens", pieces()),
        (
            "tokenizer.ggml.scores",
            Meta::F32s((0..9).map(|n| -(n as f32)).collect()),
        ),
        (
            "tokenizer.ggml.token_type",
            Meta::I32s(vec![2, 3, 3, 6, 1, 1, 1, 1, 1]),
        ),
        ("tokenizer.ggml.bos_token_id", Meta::U32(1)),
        ("tokenizer.ggml.eos_token_id", Meta::U32(2)),
        ("tokenizer.ggml.unknown_token_id", Meta::U32(0)),
        (
            "tokenizer.chat_template",
            Meta::Text("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"),
        ),
    ];
    let bytes = vec![
        ("tokenizer.ggml.model", Meta::Text("gpt2")),
        ("tokenizer.ggml.pre", Meta::Text("gpt-2")),
        (
            "tokenizer.ggml.tokens",
            texts(&["a", "b", "Ġ", "ab", "Ġa", "<|end|>"]),
        ),
        (
            "tokenizer.ggml.token_type",
            Meta::I32s(vec![1, 1, 1, 1, 1, 3]),
        ),
        ("tokenizer.ggml.merges", texts(&["a b", "Ġ a"])),
        ("tokenizer.ggml.eos_token_id", Meta::U32(5)),
    ];
    let characters = vec![
        ("tokenizer.ggml.model", Meta::Text("rwkv")),
        (
            "tokenizer.ggml.tokens",
            texts(&["a", "b", " ", "\\n", "\\\\"]),
        ),
    ];
    let mut seeds: Vec<Vec<u8>> = cases()
        .iter()
        .filter(|case| case["id"].as_str().unwrap().starts_with('T'))
        .map(bytes_of)
        .collect();
    seeds.extend([
        tokenizer_file(sentence, 9),
        tokenizer_file(bytes, 6),
        tokenizer_file(characters, 5),
    ]);
    seeds
}

/// A tokenizer that opens encodes and decodes a text, and renders a chat or refuses to.
fn tokenizer_answer(file_bytes: &[u8]) -> String {
    let report = in_short(&inspected(FileFormat::Gguf, file_bytes));
    let bundle = match open_bundle(vec![file("m.gguf", file_bytes)]) {
        Ok(bundle) => bundle,
        Err(error) => return format!("{report} {}", error.code()),
    };
    let Some(tokenizer) = &bundle.tokenizer else {
        return format!(
            "{report} {:?}",
            bundle.tokenizer_refused().map(tabtune::Error::code)
        );
    };
    let ids = match tokenizer.encode("ab a\n\u{1f600}b <s>") {
        Ok(ids) => ids,
        Err(error) => return format!("{report} encode {}", error.code()),
    };
    assert!(
        ids.iter()
            .all(|&id| (id as usize) < bundle.config.vocab_size),
        "ids beyond the embedding"
    );
    format!(
        "{report} {:?}",
        tokenizer
            .decode(&ids)
            .map(|_| ())
            .map_err(|error| error.code())
    )
}

pub const TOKENIZER: Target = Target {
    name: "tokenizer-metadata",
    seeds: tokenizer_seeds,
    words: &TOKENIZER_WORDS,
    change: mutated,
    answer: tokenizer_answer,
    answers: 90,
};
