//! Tensors read piece by piece: the pieces join to the whole in Hugging Face's layout, for every length of a piece.

use std::rc::Rc;

use tabtune::Error;
use tabtune::bundle::{Bundle, PIECE_ELEMENTS, open_bundle};
use tabtune::formats::{ByteSource, MemorySource, read_whole, truncated};
use tabtune::state::refuse_non_finite;

use super::files::{Meta, Tensor, file, gguf, ramp, safetensors};

/// Returns the metadata of a Llama with 4 query heads of 6 and 2 key heads, or of a GPT-2, of width 24.
fn metadata(family: &'static str) -> Vec<(&'static str, Meta)> {
    let key = |key: &str| &*Box::leak(format!("{family}.{key}").into_boxed_str());
    let mut metadata = vec![("general.architecture", Meta::Text(family))];
    let counts = [
        ("context_length", 16),
        ("embedding_length", 24),
        ("block_count", 1),
        ("feed_forward_length", 8),
    ];
    metadata.extend(counts.map(|(name, count)| (key(name), Meta::U32(count))));
    metadata.extend([
        (key("attention.head_count"), Meta::U32(4)),
        (
            key("attention.head_count_kv"),
            Meta::U32(if family == "gpt2" { 4 } else { 2 }),
        ),
    ]);
    metadata.extend(
        ["layer_norm_rms_epsilon", "layer_norm_epsilon"]
            .map(|name| (key(&format!("attention.{name}")), Meta::F32(1e-5))),
    );
    metadata
}

fn open(family: &'static str, tensors: &[Tensor]) -> Bundle {
    open_bundle(vec![file("m.gguf", gguf(&metadata(family), tensors))]).unwrap()
}

/// Reads in pieces of all kinds of lengths and compares with `expected`.
fn joins(bundle: &Bundle, name: &str, expected: &[f32]) {
    for limit in [
        1,
        2,
        3,
        5,
        23,
        24,
        25,
        48,
        72,
        143,
        144,
        145,
        288,
        10_000,
        usize::MAX,
    ] {
        let mut found = Vec::new();
        let mut pieces = bundle.pieces(name, limit).unwrap();
        while let Some((offset, values)) = pieces.next_piece().unwrap() {
            assert_eq!(offset, found.len() as u64, "{name}, pieces of {limit}");
            assert!(
                (1..=limit.min(PIECE_ELEMENTS)).contains(&values.len()),
                "{name}, pieces of {limit}: {}",
                values.len()
            );
            found.extend_from_slice(values);
        }
        assert_eq!(pieces.non_finite(), 0);
        assert_eq!(found, expected, "{name}, pieces of {limit}");
    }
    assert_eq!(bundle.read_f32(name).unwrap(), expected);
}

#[test]
fn pieces_of_plain_rows_join() {
    let tensors = [
        ("token_embd.weight", vec![7, 24], ramp(168, 3.0)),
        ("blk.0.attn_norm.weight", vec![24], ramp(24, 1.0)),
    ];
    let bundle = open("llama", &tensors);
    joins(&bundle, "model.embed_tokens.weight", &ramp(168, 3.0));
    joins(
        &bundle,
        "model.layers.0.input_layernorm.weight",
        &ramp(24, 1.0),
    );
}

#[test]
fn pieces_of_paired_rows_join_in_the_order_of_hugging_face() {
    // Row 2j + p of a head of six rows is row 3p + j of the model.
    let order = [0, 2, 4, 1, 3, 5];
    let expected = |heads: usize, width: usize| -> Vec<f32> {
        let rows = (0..heads).flat_map(|head| order.map(|row| 6 * head + row));
        rows.flat_map(|row| (0..width).map(move |column| (row * width + column) as f32))
            .collect()
    };
    let tensors = [
        ("token_embd.weight", vec![3, 24], ramp(72, 0.0)),
        ("blk.0.attn_q.weight", vec![24, 24], ramp(576, 0.0)),
        ("blk.0.attn_k.weight", vec![12, 24], ramp(288, 0.0)),
        ("blk.0.attn_q.bias", vec![24], ramp(24, 0.0)),
    ];
    let bundle = open("llama", &tensors);
    joins(
        &bundle,
        "model.layers.0.self_attn.q_proj.weight",
        &expected(4, 24),
    );
    joins(
        &bundle,
        "model.layers.0.self_attn.k_proj.weight",
        &expected(2, 24),
    );
    joins(
        &bundle,
        "model.layers.0.self_attn.q_proj.bias",
        &expected(4, 1),
    );
}

#[test]
fn pieces_of_transposed_matrices_join() {
    let tensors = [
        ("token_embd.weight", vec![3, 24], ramp(72, 0.0)),
        ("blk.0.attn_qkv.weight", vec![72, 24], ramp(1728, 0.0)),
    ];
    let bundle = open("gpt2", &tensors);
    let expected: Vec<f32> = (0..24)
        .flat_map(|row| (0..72).map(move |column| (column * 24 + row) as f32))
        .collect();
    joins(&bundle, "transformer.h.0.attn.c_attn.weight", &expected);
}

#[test]
fn pieces_count_what_is_not_finite() {
    let config = r#"{"model_type": "llama", "vocab_size": 3, "hidden_size": 4, "intermediate_size": 4, "num_hidden_layers": 1,
        "num_attention_heads": 1, "max_position_embeddings": 8, "tie_word_embeddings": true}"#;
    let mut values = ramp(12, 0.0);
    values[1] = f32::NAN;
    values[7] = f32::INFINITY;
    values[11] = f32::NEG_INFINITY;
    let tensors = [
        ("model.embed_tokens.weight", vec![3, 4], values),
        ("model.norm.weight", vec![4], ramp(4, 0.0)),
    ];
    let bundle = open_bundle(vec![
        file("config.json", config),
        file("model.safetensors", safetensors(&tensors)),
    ])
    .unwrap();
    assert_eq!(bundle.non_finite("model.embed_tokens.weight").unwrap(), 3);
    assert_eq!(bundle.non_finite("model.norm.weight").unwrap(), 0);
    let mut pieces = bundle.pieces("model.embed_tokens.weight", 6).unwrap();
    assert_eq!((pieces.elements(), pieces.non_finite()), (12, 0));
    pieces.next_piece().unwrap();
    assert_eq!(pieces.non_finite(), 1, "counted as they come");
    assert_eq!(
        bundle.non_finite("absent").unwrap_err().code(),
        "model.tensor.missing"
    );
}

#[test]
fn pieces_of_blocks_join_wherever_they_are_cut() {
    // Rows of 64 in Q8_0: d = 1 and 32 signed bytes, twice per row. Written as F32 of as many bytes, then given their real type.
    let byte = |n: usize| (n * 7 % 251) as u8;
    let blocks: Vec<u8> = (0..48)
        .flat_map(|block| {
            [0x00, 0x3c]
                .into_iter()
                .chain((0..32).map(move |n| byte(32 * block + n)))
        })
        .collect();
    let words: Vec<f32> = blocks
        .as_chunks()
        .0
        .iter()
        .map(|bytes| f32::from_le_bytes(*bytes))
        .collect();
    let name = "blk.0.attn_q.weight";
    let tensors = [
        ("token_embd.weight", vec![3, 24], ramp(72, 0.0)),
        (name, vec![17, 24], words),
    ];
    let mut bytes = gguf(&metadata("llama"), &tensors);
    let at = bytes
        .windows(name.len())
        .position(|window| window == name.as_bytes())
        .unwrap()
        + name.len()
        + 4;
    bytes[at..at + 8].copy_from_slice(&64u64.to_le_bytes());
    bytes[at + 8..at + 16].copy_from_slice(&24u64.to_le_bytes());
    bytes[at + 16..at + 20].copy_from_slice(&8u32.to_le_bytes());
    let bundle = open_bundle(vec![file("m.gguf", bytes)]).unwrap();
    assert_eq!(
        bundle
            .dtype("model.layers.0.self_attn.q_proj.weight")
            .as_deref(),
        Some("GGML:Q8_0")
    );
    let rows = (0..4).flat_map(|head| [0, 2, 4, 1, 3, 5].map(|row| 6 * head + row));
    let expected: Vec<f32> = rows
        .flat_map(|row| (0..64).map(move |column| f32::from(byte(64 * row + column) as i8)))
        .collect();
    joins(&bundle, "model.layers.0.self_attn.q_proj.weight", &expected);
}

/// A source that claims to have more bytes than it has.
struct Lying(Vec<u8>, u64);

impl ByteSource for Lying {
    fn name(&self) -> &str {
        "model.safetensors"
    }
    fn len(&self) -> u64 {
        self.1
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> tabtune::Result<()> {
        let from = usize::try_from(offset).unwrap().min(self.0.len());
        let have = &self.0[from..];
        let filled = have
            .get(..buf.len())
            .map(|bytes| buf.copy_from_slice(bytes));
        filled.ok_or_else(|| truncated(self.name(), offset, buf.len() as u64, have.len() as u64))
    }
}

#[test]
fn sources_that_end_early_or_pass_memory_have_their_words() {
    let bytes = safetensors(&[("model.embed_tokens.weight", vec![3, 4], ramp(12, 0.0))]);
    let said = bytes.len() as u64;
    let config = r#"{"model_type": "llama", "vocab_size": 3, "hidden_size": 4, "intermediate_size": 4, "num_hidden_layers": 1,
        "num_attention_heads": 1, "max_position_embeddings": 8, "tie_word_embeddings": true}"#;
    let short = Lying(bytes[..bytes.len() - 4].to_vec(), said);
    let bundle = open_bundle(vec![file("config.json", config), Rc::new(short)]).unwrap();
    let error = bundle.read_f32("model.embed_tokens.weight").unwrap_err();
    assert_eq!(
        (error.code(), error.kind()),
        ("source.truncated", "BAD_MODEL_FILE")
    );
    assert_eq!(
        MemorySource::new("a", *b"abc")
            .read_at(2, &mut [0; 2])
            .unwrap_err()
            .code(),
        "source.truncated"
    );
    for claim in [1 << 60, u64::MAX] {
        let error = read_whole(&Lying(Vec::new(), claim)).unwrap_err();
        assert_eq!(
            (error.code(), error.kind()),
            ("source.too-large", "LIMIT_EXCEEDED"),
            "{claim}"
        );
    }
    assert_eq!(read_whole(&Lying(b"abc".to_vec(), 3)).unwrap(), b"abc");
}

#[test]
fn weights_that_are_not_finite_are_refused_by_name_and_number() {
    let counts = [
        ("a".to_string(), 2),
        ("b".to_string(), 0),
        ("c".to_string(), 7),
    ];
    let Err(Error::Refused(list)) = refuse_non_finite(&counts) else {
        panic!("not refused")
    };
    let found: Vec<_> = list
        .iter()
        .map(|r| {
            (
                r.code,
                r.subject.as_deref().unwrap(),
                r.found.as_deref().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("model.non-finite", "a", "2 NaN or infinite"),
            ("model.non-finite", "c", "7 NaN or infinite")
        ]
    );
    assert_eq!(Error::Refused(list).kind(), "NON_FINITE");
    assert!(refuse_non_finite(&counts[1..2]).is_ok());
}
