//! LoRA adapters merged into a base (tests/suite/portable/README.md, line 40). The reference is W + scale·(B·A) in f64.

use std::rc::Rc;

use safetensors::Dtype;
use safetensors::tensor::{TensorView, serialize};
use serde_json::{Value, json};
use tabtune::bundle::{Bundle, OpenOptions, open_bundle, open_bundle_with};
use tabtune::formats::ByteSource;

use super::files::{Meta, file, gguf, ramp};

/// A tensor: name, dtype, shape, values.
pub type Stored = (String, Dtype, Vec<usize>, Vec<f32>);

/// Returns pseudo-random numbers between −1/2 and 1/2.
pub fn noise(seed: u32, count: usize) -> Vec<f32> {
    let scatter = |n: u32| {
        (n.wrapping_add(1).wrapping_mul(2_654_435_761) ^ seed.wrapping_mul(40_503))
            .wrapping_mul(2_246_822_519)
            >> 8
    };
    (0..count as u32)
        .map(|n| scatter(n) as f32 / (1 << 24) as f32 - 0.5)
        .collect()
}

fn bytes_of(dtype: Dtype, values: &[f32]) -> Vec<u8> {
    match dtype {
        Dtype::F16 => values
            .iter()
            .flat_map(|v| half::f16::from_f32(*v).to_le_bytes())
            .collect(),
        Dtype::BF16 => values
            .iter()
            .flat_map(|v| half::bf16::from_f32(*v).to_le_bytes())
            .collect(),
        _ => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
    }
}

/// Serializes a safetensors file with the reference implementation.
pub fn written(tensors: &[Stored]) -> Vec<u8> {
    let bytes: Vec<Vec<u8>> = tensors
        .iter()
        .map(|(_, dtype, _, values)| bytes_of(*dtype, values))
        .collect();
    let views = tensors
        .iter()
        .zip(&bytes)
        .map(|((name, dtype, shape, _), bytes)| {
            (
                name.clone(),
                TensorView::new(*dtype, shape.clone(), bytes).unwrap(),
            )
        });
    serialize(views, None).unwrap()
}

pub fn f32s(name: &str, shape: &[usize], seed: u32) -> Stored {
    (
        name.to_string(),
        Dtype::F32,
        shape.to_vec(),
        noise(seed, shape.iter().product()),
    )
}

pub const Q: &str = "model.layers.0.self_attn.q_proj";
pub const DOWN: &str = "model.layers.1.mlp.down_proj";

/// Makes a Llama of width 8 with some of its tensors, in `dtype`.
pub fn llama(dtype: Dtype, tied: bool) -> Vec<Rc<dyn ByteSource>> {
    let config = json!({"model_type": "llama", "vocab_size": 5, "hidden_size": 8, "intermediate_size": 6, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 16, "rms_norm_eps": 1e-5, "rope_theta": 1e4,
        "tie_word_embeddings": tied});
    let mut shapes = vec![
        ("model.embed_tokens".to_string(), vec![5, 8]),
        ("model.norm".to_string(), vec![8]),
    ];
    for layer in 0..2 {
        shapes.push((format!("model.layers.{layer}.self_attn.q_proj"), vec![8, 8]));
        shapes.push((format!("model.layers.{layer}.mlp.down_proj"), vec![8, 6]));
    }
    shapes.extend((!tied).then(|| ("lm_head".to_string(), vec![5, 8])));
    let tensors: Vec<Stored> = shapes
        .into_iter()
        .zip(0..)
        .map(|((name, shape), seed)| {
            let values = noise(seed, shape.iter().product());
            (format!("{name}.weight"), dtype, shape, values)
        })
        .collect();
    vec![
        file("config.json", config.to_string()),
        file("model.safetensors", written(&tensors)),
    ]
}

/// Makes PEFT's pair of factors for a matrix [out, input].
pub fn pair(module: &str, rank: usize, [out, input]: [usize; 2]) -> Vec<Stored> {
    let seed = module.bytes().map(u32::from).sum::<u32>();
    let name = |side: &str| format!("base_model.model.{module}.lora_{side}.weight");
    vec![
        f32s(&name("A"), &[rank, input], seed),
        f32s(&name("B"), &[out, rank], seed + 1),
    ]
}

/// Makes the pair of factors for a table [rows, width].
fn embedding_pair(module: &str, rank: usize, [rows, width]: [usize; 2]) -> Vec<Stored> {
    let name = |side: &str| format!("base_model.model.{module}.lora_embedding_{side}");
    vec![
        f32s(&name("A"), &[rank, rows], 71),
        f32s(&name("B"), &[width, rank], 72),
    ]
}

/// Returns the configuration of an adapter of rank 4 and alpha 8 for q and down, with changes.
pub fn settings(change: Value) -> Value {
    let mut config = json!({"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "down_proj"]});
    config
        .as_object_mut()
        .unwrap()
        .extend(change.as_object().unwrap().clone());
    config
}

pub fn adapter(config: &Value, tensors: &[Stored]) -> OpenOptions {
    let files = vec![
        file("adapter_config.json", config.to_string()),
        file("adapter_model.safetensors", written(tensors)),
    ];
    OpenOptions {
        adapter: Some(files),
        ..OpenOptions::default()
    }
}

/// Compares every merged value of `name` with base + scale·(B·A); `turned` transposes the product.
#[track_caller]
fn merges(merged: &Bundle, base: &[f32], name: &str, pair: &[Stored], scale: f64, turned: bool) {
    let (found, rank) = (merged.read_f32(name).unwrap(), pair[0].2[0]);
    let (inner, width) = (pair[0].2[1], merged.shape(name).unwrap()[1]);
    // Half a unit in the last place, relative; for subnormal halves absolute.
    let (unit, least) = match merged.dtype(name).unwrap().as_str() {
        "F16" => (2f64.powi(-11), 2f64.powi(-25)),
        "BF16" => (2f64.powi(-8), 0.0),
        _ => (2f64.powi(-24), 0.0),
    };
    let mut largest = 0.0f64;
    for (at, (&found, &base)) in found.iter().zip(base).enumerate() {
        let (row, column) = if turned {
            (at % width, at / width)
        } else {
            (at / width, at % width)
        };
        let terms = (0..rank).map(|k| {
            f64::from(pair[1].3[row * rank + k]) * f64::from(pair[0].3[k * inner + column])
        });
        let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term| {
            (sum + term, size + term.abs())
        });
        let exact = f64::from(base) + scale * sum;
        // The sum itself is f32: one rounding for each of its terms.
        let bound = exact.abs() * unit
            + least
            + (rank + 2) as f64 * 2f64.powi(-24) * (f64::from(base).abs() + scale * size);
        assert!(
            (f64::from(found) - exact).abs() <= bound,
            "{name}[{at}]: {found} is not {exact}, off by more than {bound}"
        );
        largest = largest.max((exact - f64::from(base)).abs());
    }
    assert!(
        found.len() == base.len() && largest > 0.1,
        "{name} hardly changes: {largest}"
    );
}

#[test]
fn pairs_merge_within_one_rounding_of_the_reference() {
    for dtype in [Dtype::F32, Dtype::BF16, Dtype::F16] {
        let (q, down) = (pair(Q, 4, [8, 8]), pair(DOWN, 4, [8, 6]));
        let options = adapter(&settings(json!({})), &[q.clone(), down.clone()].concat());
        let (base, merged) = (
            open_bundle(llama(dtype, true)).unwrap(),
            open_bundle_with(llama(dtype, true), options).unwrap(),
        );
        let names = [format!("{Q}.weight"), format!("{DOWN}.weight")];
        assert_eq!(
            (merged.names(), merged.dtype(&names[0])),
            (base.names(), base.dtype(&names[0]))
        );
        for name in base
            .names()
            .into_iter()
            .filter(|name| !names.contains(name))
        {
            assert_eq!(
                merged.read_f32(&name).unwrap(),
                base.read_f32(&name).unwrap(),
                "{name}"
            );
        }
        for (name, pair) in names.iter().zip([&q, &down]) {
            merges(
                &merged,
                &base.read_f32(name).unwrap(),
                name,
                pair,
                2.0,
                false,
            );
            let values = merged.read_f32(name).unwrap();
            assert_eq!(
                bytes_of(dtype, &values).len(),
                dtype.bitsize() / 8 * values.len()
            );
            let rounded: Vec<f32> = match dtype {
                Dtype::F16 => values
                    .iter()
                    .map(|v| half::f16::from_f32(*v).to_f32())
                    .collect(),
                Dtype::BF16 => values
                    .iter()
                    .map(|v| half::bf16::from_f32(*v).to_f32())
                    .collect(),
                _ => values.clone(),
            };
            assert_eq!(values, rounded, "{name} is of its dtype");
        }
        assert_eq!(
            merged.sources().map(|(name, _)| name).collect::<Vec<_>>(),
            ["config.json", "model.safetensors"]
        );
    }
}

#[test]
fn scale_follows_rank_alpha_and_patterns() {
    let base = open_bundle(llama(Dtype::F32, true)).unwrap();
    let q1 = "model.layers.1.self_attn.q_proj";
    for (change, rank, scales) in [
        (json!({"use_rslora": true}), 4, [4.0, 4.0]),
        (json!({"lora_alpha": 3}), 4, [0.75, 0.75]),
        (
            json!({"alpha_pattern": {"layers.0.self_attn.q_proj": 2, "q_proj": 6}}),
            4,
            [0.5, 1.5],
        ),
        (
            json!({"rank_pattern": {"q_proj": 3, "x": 9}}),
            3,
            [8.0 / 3.0, 8.0 / 3.0],
        ),
        (
            json!({"alpha_pattern": {".*\\.0\\..*": 1.5}, "rank_pattern": {r"model\.layers\.\d\.self_attn\.q_proj": 2}}),
            2,
            [0.75, 4.0],
        ),
        (
            json!({"alpha_pattern": {"proj": 2, "ers.0.self_attn.q_proj": 3}, "use_rslora": true}),
            4,
            [4.0, 4.0],
        ),
    ] {
        let mut config = settings(json!({"target_modules": ["q_proj"]}));
        config
            .as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        let pairs = [pair(Q, rank, [8, 8]), pair(q1, rank, [8, 8])];
        let merged =
            open_bundle_with(llama(Dtype::F32, true), adapter(&config, &pairs.concat())).unwrap();
        for ((module, pair), scale) in [Q, q1].into_iter().zip(&pairs).zip(scales) {
            let name = format!("{module}.weight");
            merges(
                &merged,
                &base.read_f32(&name).unwrap(),
                &name,
                pair,
                scale,
                false,
            );
        }
    }
}

#[test]
fn small_pieces_have_the_bits_of_the_whole() {
    for dtype in [Dtype::F32, Dtype::BF16] {
        let options = adapter(
            &settings(json!({})),
            &[pair(Q, 4, [8, 8]), pair(DOWN, 4, [8, 6])].concat(),
        );
        let merged = open_bundle_with(llama(dtype, true), options).unwrap();
        for name in [Q, DOWN].map(|module| format!("{module}.weight")) {
            let whole: Vec<u32> = merged
                .read_f32(&name)
                .unwrap()
                .into_iter()
                .map(f32::to_bits)
                .collect();
            for limit in [1, 2, 3, 5, 7, 8, 9, 16, 47, 64] {
                let mut found = Vec::new();
                let mut pieces = merged.pieces(&name, limit).unwrap();
                while let Some((at, values)) = pieces.next_piece().unwrap() {
                    assert_eq!(at, found.len() as u64);
                    found.extend(values.iter().map(|value| value.to_bits()));
                }
                assert_eq!(pieces.non_finite(), 0);
                assert_eq!(found, whole, "{name} by {limit}");
            }
        }
    }
}

#[test]
fn blocks_of_a_gguf_merge_in_the_order_of_hugging_face() {
    // 24 rows of 64 in Q8_0 with d = 1/64 and 32 signed bytes; written as F32 of as many bytes, then given their real type.
    let byte = |n: usize| (n * 7 % 251) as u8;
    let blocks: Vec<u8> = (0..48)
        .flat_map(|block| {
            [0x00, 0x24]
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
    let (name, module) = ("blk.0.attn_q.weight", Q);
    let mut metadata = vec![("general.architecture", Meta::Text("llama"))];
    let counts = [
        ("llama.context_length", 16),
        ("llama.embedding_length", 24),
        ("llama.block_count", 1),
        ("llama.feed_forward_length", 8),
    ];
    metadata.extend(counts.map(|(key, count)| (key, Meta::U32(count))));
    metadata.extend([
        ("llama.attention.head_count", Meta::U32(4)),
        ("llama.attention.layer_norm_rms_epsilon", Meta::F32(1e-5)),
    ]);
    let mut bytes = gguf(
        &metadata,
        &[
            ("token_embd.weight", vec![3, 24], ramp(72, 0.0)),
            (name, vec![17, 24], words),
        ],
    );
    let at = bytes
        .windows(name.len())
        .position(|window| window == name.as_bytes())
        .unwrap()
        + name.len()
        + 4;
    bytes[at..at + 8].copy_from_slice(&64u64.to_le_bytes());
    bytes[at + 8..at + 16].copy_from_slice(&24u64.to_le_bytes());
    bytes[at + 16..at + 20].copy_from_slice(&8u32.to_le_bytes());
    let pair = pair(module, 4, [24, 64]);
    let options = adapter(&settings(json!({"target_modules": r".*\.q_proj"})), &pair);
    let merged = open_bundle_with(vec![file("m.gguf", bytes)], options).unwrap();
    let hf = format!("{module}.weight");
    assert_eq!(
        merged.dtype(&hf).as_deref(),
        Some("F32"),
        "blocks that are merged into are f32"
    );
    // Row 2j + p of a head of six rows is row 3p + j of the model.
    let rows = (0..4).flat_map(|head| [0, 2, 4, 1, 3, 5].map(|row| 6 * head + row));
    let base: Vec<f32> = rows
        .flat_map(|row| (0..64).map(move |column| f32::from(byte(64 * row + column) as i8) / 64.0))
        .collect();
    merges(&merged, &base, &hf, &pair, 2.0, false);
    let whole = merged.read_f32(&hf).unwrap();
    for limit in [1, 31, 32, 100, 384, 1000] {
        let mut found = Vec::new();
        let mut pieces = merged.pieces(&hf, limit).unwrap();
        while let Some((_, values)) = pieces.next_piece().unwrap() {
            found.extend_from_slice(values);
        }
        assert_eq!(found, whole, "by {limit}");
    }
}

#[test]
fn matrices_of_gpt2_are_turned_whatever_the_file_calls_them() {
    let config = json!({"model_type": "gpt2", "vocab_size": 5, "n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 16});
    let shapes = [
        ("wte", vec![5, 8]),
        ("h.0.attn.c_attn", vec![8, 24]),
        ("h.0.mlp.c_proj", vec![32, 8]),
        ("h.0.attn.c_proj", vec![8, 8]),
    ];
    for start in ["", "transformer."] {
        let tensors: Vec<Stored> = shapes
            .iter()
            .zip(0..)
            .map(|((name, shape), seed)| f32s(&format!("{start}{name}.weight"), shape, seed))
            .collect();
        let files = || {
            vec![
                file("config.json", config.to_string()),
                file("model.safetensors", written(&tensors)),
            ]
        };
        let base = open_bundle(files()).unwrap();
        for own in ["", "transformer."] {
            let pairs = [
                (
                    "attn.c_attn",
                    pair(&format!("{own}h.0.attn.c_attn"), 4, [24, 8]),
                ),
                (
                    "mlp.c_proj",
                    pair(&format!("{own}h.0.mlp.c_proj"), 4, [8, 32]),
                ),
                (
                    "attn.c_proj",
                    pair(&format!("{own}h.0.attn.c_proj"), 4, [8, 8]),
                ),
            ];
            let all: Vec<Stored> = pairs.iter().flat_map(|(_, pair)| pair.clone()).collect();
            let change =
                settings(json!({"target_modules": ["c_attn", "c_proj"], "fan_in_fan_out": true}));
            let merged = open_bundle_with(files(), adapter(&change, &all)).unwrap();
            for (module, pair) in &pairs {
                let name = format!("transformer.h.0.{module}.weight");
                merges(
                    &merged,
                    &base.read_f32(&name).unwrap(),
                    &name,
                    pair,
                    2.0,
                    true,
                );
            }
        }
    }
}

#[test]
fn embeddings_merge_and_a_tied_head_stays_what_it_was() {
    let table = "model.embed_tokens.weight";
    let pair = embedding_pair("model.embed_tokens", 4, [5, 8]);
    let own_copy = (
        "base_model.model.model.embed_tokens.base_layer.weight".to_string(),
        Dtype::F32,
        vec![5, 8],
        noise(0, 40),
    );
    for (tied, extra) in [(false, vec![]), (true, vec![]), (true, vec![own_copy])] {
        let base = open_bundle(llama(Dtype::F32, tied)).unwrap();
        let config = settings(json!({"target_modules": ["embed_tokens"]}));
        let merged = open_bundle_with(
            llama(Dtype::F32, tied),
            adapter(&config, &[pair.clone(), extra].concat()),
        )
        .unwrap();
        merges(
            &merged,
            &base.read_f32(table).unwrap(),
            table,
            &pair,
            2.0,
            true,
        );
        let head = if tied { table } else { "lm_head.weight" };
        assert_eq!(
            merged.read_f32("lm_head.weight").unwrap(),
            base.read_f32(head).unwrap()
        );
        assert!(!merged.config.tie_word_embeddings);
        let codes: Vec<_> = merged
            .warnings
            .iter()
            .map(|warning| (warning.code, warning.subject.as_str()))
            .collect();
        assert_eq!(
            codes,
            if tied {
                vec![("adapter.untied", "lm_head.weight")]
            } else {
                vec![]
            }
        );
    }
    let together =
        settings(json!({"target_modules": ["embed_tokens"], "ensure_weight_tying": true}));
    let merged = open_bundle_with(llama(Dtype::F32, true), adapter(&together, &pair)).unwrap();
    assert!(
        merged.config.tie_word_embeddings
            && merged.shape("lm_head.weight").is_none()
            && merged.warnings.is_empty()
    );
}

#[test]
fn saved_modules_replace_the_base() {
    let base = open_bundle(llama(Dtype::F16, true)).unwrap();
    let norm = f32s("base_model.model.model.norm.weight", &[8], 90);
    let head = f32s(
        "base_model.model.lm_head.modules_to_save.default.weight",
        &[5, 8],
        91,
    );
    let config =
        settings(json!({"target_modules": ["q_proj"], "modules_to_save": ["norm", "lm_head"]}));
    let tensors = [pair(Q, 4, [8, 8]), vec![norm.clone(), head.clone()]].concat();
    let merged = open_bundle_with(llama(Dtype::F16, true), adapter(&config, &tensors)).unwrap();
    assert_eq!(merged.read_f32("model.norm.weight").unwrap(), norm.3);
    assert_eq!(merged.read_f32("lm_head.weight").unwrap(), head.3);
    assert_eq!(
        merged.read_f32("model.embed_tokens.weight").unwrap(),
        base.read_f32("model.embed_tokens.weight").unwrap()
    );
    assert_eq!(
        merged.dtype("model.norm.weight").as_deref(),
        Some("F32"),
        "stored values are not rounded"
    );
    let q = format!("{Q}.weight");
    let before = |name: &str| match name {
        "lm_head.weight" => base.read_f32("model.embed_tokens.weight").unwrap(),
        name => base.read_f32(name).unwrap(),
    };
    let mut changed = merged.names();
    changed.retain(|name| merged.read_f32(name).unwrap() != before(name));
    assert_eq!(changed, ["lm_head.weight", &q, "model.norm.weight"]);
    let exact = OpenOptions {
        exact: true,
        ..adapter(&config, &tensors)
    };
    let exact = open_bundle_with(llama(Dtype::F16, true), exact).unwrap();
    let rounding = |name: &str| {
        let sums = exact.read_f32(name).unwrap().into_iter();
        sums.zip(merged.read_f32(name).unwrap())
            .map(|(sum, rounded)| (sum - rounded).abs())
            .fold(0.0, f32::max)
    };
    let errors = changed.iter().map(|name| rounding(name));
    let errors: Vec<f32> = errors.collect();
    assert!(
        errors[1] > 0.0 && errors[1] <= 2f32.powi(-11) * 4.0,
        "{errors:?}"
    );
    assert_eq!([errors[0], errors[2]], [0.0, 0.0]);
    assert_eq!(
        merged.merged_adapter().unwrap().file,
        "adapter_model.safetensors"
    );
    assert!(base.merged_adapter().is_none());
}
