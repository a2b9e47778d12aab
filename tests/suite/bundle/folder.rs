//! Hugging Face folders.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::json;
use tabtune::bundle::open_bundle;
use tabtune::formats::{ByteSource, safetensors_header};
use tabtune::state::SourceFormat;

use super::files::{Tensor, file, ramp, safetensors};

fn config(tied: bool) -> String {
    json!({"model_type": "llama", "vocab_size": 3, "hidden_size": 4, "intermediate_size": 4, "num_hidden_layers": 1,
        "num_attention_heads": 1, "max_position_embeddings": 8, "rms_norm_eps": 1e-5, "rope_theta": 1e4, "tie_word_embeddings": tied})
    .to_string()
}

fn embedding(from: f32) -> Tensor {
    ("model.embed_tokens.weight", vec![3, 4], ramp(12, from))
}

fn open(tied: bool, tensors: &[Tensor]) -> tabtune::Result<tabtune::bundle::Bundle> {
    open_bundle(vec![
        file("model.safetensors", safetensors(tensors)),
        file("config.json", config(tied)),
    ])
}

#[test]
fn folder_opens_and_reads() {
    let bundle = open(true, &[embedding(1.0)]).unwrap();
    assert_eq!(bundle.names(), ["model.embed_tokens.weight"]);
    assert_eq!(bundle.shape("model.embed_tokens.weight"), Some(vec![3, 4]));
    assert_eq!(
        bundle.dtype("model.embed_tokens.weight").as_deref(),
        Some("F32")
    );
    assert_eq!(
        bundle.read_f32("model.embed_tokens.weight").unwrap(),
        ramp(12, 1.0)
    );
    assert_eq!(bundle.source_format, SourceFormat::HfFolder);
    assert_eq!(bundle.config_json.as_deref(), Some(config(true).as_bytes()));
    assert_eq!(
        bundle.read_f32("absent").unwrap_err().code(),
        "model.tensor.missing"
    );
}

#[test]
fn equal_head_of_a_tied_model_is_left_out_and_another_is_refused() {
    let bundle = open(
        true,
        &[
            embedding(1.0),
            ("lm_head.weight", vec![3, 4], ramp(12, 1.0)),
        ],
    )
    .unwrap();
    assert_eq!(bundle.names(), ["model.embed_tokens.weight"]);
    assert_eq!(bundle.warnings[0].code, "model.tied.copy");
    let error = open(
        true,
        &[
            embedding(1.0),
            ("lm_head.weight", vec![3, 4], ramp(12, 2.0)),
        ],
    )
    .unwrap_err();
    assert_eq!(error.code(), "model.tied.conflict");
    let untied = open(
        false,
        &[
            embedding(1.0),
            ("lm_head.weight", vec![3, 4], ramp(12, 2.0)),
        ],
    )
    .unwrap();
    assert_eq!(
        untied.names(),
        ["lm_head.weight", "model.embed_tokens.weight"]
    );
}

/// Small whole numbers are the same in F32, F16 and BF16.
#[test]
fn a_head_of_another_dtype_with_the_same_numbers_is_a_copy() {
    let open = |dtype: &'static str, values: Vec<u16>| {
        let entries = [
            ("lm_head.weight".to_string(), dtype, vec![3, 4]),
            ("model.embed_tokens.weight".to_string(), "F32", vec![3, 4]),
        ];
        let (mut bytes, _) = safetensors_header(&entries, &BTreeMap::new()).unwrap();
        bytes.extend(
            values
                .into_iter()
                .flat_map(u16::to_le_bytes)
                .chain(ramp(12, 1.0).into_iter().flat_map(f32::to_le_bytes)),
        );
        open_bundle(vec![
            file("config.json", config(true)),
            file("model.safetensors", bytes),
        ])
    };
    let bf16 = || {
        ramp(12, 1.0)
            .into_iter()
            .map(|value| (value.to_bits() >> 16) as u16)
            .collect::<Vec<_>>()
    };
    let bundle = open("BF16", bf16()).unwrap();
    assert_eq!(
        (bundle.names(), bundle.warnings[0].code),
        (
            vec!["model.embed_tokens.weight".to_string()],
            "model.tied.copy"
        )
    );
    // 1 to 12 as halves; an exponent field of 15 is 1.
    let halves = [
        0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700, 0x4800, 0x4880, 0x4900, 0x4980,
        0x4a00,
    ];
    assert_eq!(
        open("F16", halves.to_vec()).unwrap().warnings[0].code,
        "model.tied.copy"
    );
    let mut other = bf16();
    other[11] += 1;
    assert_eq!(
        open("BF16", other).unwrap_err().code(),
        "model.tied.conflict"
    );
}

#[test]
fn embedding_rows_are_compared_with_the_vocabulary() {
    let error = open(
        true,
        &[("model.embed_tokens.weight", vec![2, 4], ramp(8, 0.0))],
    )
    .unwrap_err();
    assert_eq!(error.code(), "model.vocab.rows");
    let padded = open(
        true,
        &[("model.embed_tokens.weight", vec![5, 4], ramp(20, 0.0))],
    )
    .unwrap();
    assert_eq!(
        (padded.config.vocab_size, padded.warnings[0].code),
        (5, "model.vocab.padded")
    );
}

#[test]
fn gpt2_names_get_their_prefix_and_masks_are_left_out() {
    let config = json!({"model_type": "gpt2", "vocab_size": 3, "n_embd": 4, "n_layer": 1, "n_head": 1, "n_positions": 8}).to_string();
    let tensors = [
        ("wte.weight", vec![3, 4], ramp(12, 0.0)),
        ("h.0.attn.bias", vec![1, 1, 2, 2], ramp(4, 0.0)),
        ("h.0.attn.c_attn.weight", vec![4, 12], ramp(48, 7.0)),
    ];
    let bundle = open_bundle(vec![
        file("config.json", config),
        file("model.safetensors", safetensors(&tensors)),
    ])
    .unwrap();
    assert_eq!(
        bundle.names(),
        [
            "transformer.h.0.attn.c_attn.weight",
            "transformer.wte.weight"
        ]
    );
    assert_eq!(
        bundle
            .read_f32("transformer.h.0.attn.c_attn.weight")
            .unwrap(),
        ramp(48, 7.0)
    );
}

#[test]
fn shards_are_found_by_their_index() {
    let index = json!({"metadata": {"total_size": 64}, "weight_map": {"model.embed_tokens.weight": "a.safetensors", "model.norm.weight": "b.safetensors"}});
    let shards = |norm: &'static str| {
        vec![
            file("config.json", config(true)),
            file("a.safetensors", safetensors(&[embedding(1.0)])),
            file(
                "b.safetensors",
                safetensors(&[(norm, vec![4], ramp(4, 9.0))]),
            ),
            file("model.safetensors.index.json", index.to_string()),
        ]
    };
    let bundle = open_bundle(shards("model.norm.weight")).unwrap();
    assert_eq!(bundle.read_f32("model.norm.weight").unwrap(), ramp(4, 9.0));
    assert!(bundle.warnings.is_empty());
    assert_eq!(
        open_bundle(shards("other")).unwrap_err().code(),
        "index.tensor.missing"
    );
}

#[test]
fn files_that_are_no_model_are_distinguished() {
    let code = |files: Vec<Rc<dyn ByteSource>>| open_bundle(files).unwrap_err().code();
    assert_eq!(code(vec![]), "bundle.empty");
    assert_eq!(code(vec![file("notes.txt", "hello")]), "format.unsupported");
    assert_eq!(
        code(vec![file(
            "model.safetensors",
            safetensors(&[embedding(0.0)])
        )]),
        "bundle.config.missing"
    );
    assert_eq!(
        code(vec![file("config.json", config(true))]),
        "bundle.weights.missing"
    );
    assert_eq!(
        code(vec![
            file("config.json", "{"),
            file("model.safetensors", "")
        ]),
        "bundle.config.json"
    );
    assert_eq!(
        code(vec![
            file("config.json", config(true)),
            file("pytorch_model.bin", *b"PK\x03\x04....")
        ]),
        "format.unsupported"
    );
    for (name, program) in [
        ("tf_model.h5", "TensorFlow"),
        ("flax_model.msgpack", "Flax"),
        ("model.onnx", "ONNX"),
        ("w.npz", "NumPy"),
    ] {
        let error = open_bundle(vec![
            file("config.json", config(true)),
            file(name, "weights"),
        ])
        .unwrap_err();
        assert!(
            error.code() == "format.unsupported" && error.to_string().contains(program),
            "{name}: {error}"
        );
    }
    assert_eq!(
        code(vec![
            file("config.json", config(true)),
            file("model.safetensors", "")
        ]),
        "safetensors.header.truncated"
    );
    let shards = [1, 2].map(|n| {
        file(
            &format!("model-0000{n}-of-00002.safetensors"),
            safetensors(&[embedding(0.0)]),
        )
    });
    let error = open_bundle(
        shards
            .into_iter()
            .chain([file("config.json", config(true))])
            .collect(),
    )
    .unwrap_err();
    assert!(
        error.code() == "bundle.weights.missing"
            && error.to_string().contains("model.safetensors.index.json"),
        "{error}"
    );
    let empty = || super::files::gguf(&[], &[]);
    assert_eq!(
        code(vec![file("a.gguf", empty()), file("b.gguf", empty())]),
        "bundle.ambiguous"
    );
}

/// A source that counts the bytes that are read.
struct Counting {
    inner: Rc<dyn ByteSource>,
    read: std::rc::Rc<std::cell::Cell<u64>>,
}

impl ByteSource for Counting {
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> tabtune::Result<()> {
        self.read.set(self.read.get() + buf.len() as u64);
        self.inner.read_at(offset, buf)
    }
}

#[test]
fn opening_reads_the_header_and_a_tensor_reads_its_span() {
    let bytes = safetensors(&[embedding(1.0), ("model.norm.weight", vec![4], ramp(4, 0.0))]);
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap());
    let read = std::rc::Rc::new(std::cell::Cell::new(0));
    let source = Counting {
        inner: file("model.safetensors", bytes),
        read: read.clone(),
    };
    let bundle = open_bundle(vec![Rc::new(source), file("config.json", config(true))]).unwrap();
    assert_eq!(read.get(), header);
    bundle.read_f32("model.norm.weight").unwrap();
    assert_eq!(read.get(), header + 16);
}
