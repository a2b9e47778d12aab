//! Names, shapes and dtypes compared with the model's: every finding is reported at once.

use tabtune::Error;
use tabtune::bundle::{Bundle, open_bundle};

use super::files::{Meta, Tensor, file, gguf, ramp, safetensors};

/// Makes a part of a model's plan.
fn plan(names: &[(&str, &[usize])]) -> Vec<(String, Vec<usize>)> {
    names
        .iter()
        .map(|(name, shape)| (name.to_string(), shape.to_vec()))
        .collect()
}

const PLAN: [(&str, &[usize]); 3] = [
    ("model.embed_tokens.weight", &[3, 4]),
    ("model.norm.weight", &[4]),
    ("model.layers.0.mlp.up_proj.weight", &[4, 4]),
];

fn folder(tensors: &[Tensor]) -> Bundle {
    let config = r#"{"model_type": "llama", "vocab_size": 3, "hidden_size": 4, "intermediate_size": 4, "num_hidden_layers": 1,
        "num_attention_heads": 1, "max_position_embeddings": 8, "rms_norm_eps": 1e-5, "rope_theta": 1e4, "tie_word_embeddings": true}"#;
    open_bundle(vec![
        file("config.json", config),
        file("model.safetensors", safetensors(tensors)),
    ])
    .unwrap()
}

fn of(name: &'static str, shape: &[usize]) -> Tensor {
    (name, shape.to_vec(), ramp(shape.iter().product(), 0.0))
}

fn findings(mut bundle: Bundle) -> Vec<(&'static str, String)> {
    match bundle.check_tensors(&plan(&PLAN)) {
        Err(Error::Refused(list)) => list
            .into_iter()
            .map(|refusal| (refusal.code, refusal.subject.unwrap_or_default()))
            .collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn findings_are_listed_all_at_once() {
    let tensors = [
        of("model.embed_tokens.weight", &[3, 5]),
        of("model.layers.0.mlp.up_proj.weight", &[2, 4]),
        of("model.layers.0.mlp.gate.weight", &[4]),
        of("model.layers.0.mlp.experts.weight", &[4]),
        of("model.layers.7.mlp.gate.weight", &[4]),
    ];
    let expected = [
        ("model.tensor.missing", "model.norm.weight"),
        (
            "model.tensor.unexpected",
            "model.layers.0.mlp.experts.weight",
        ),
        ("model.tensor.unexpected", "model.layers.0.mlp.gate.weight"),
        ("model.tensor.shape", "model.embed_tokens.weight"),
        ("model.tensor.shape", "model.layers.0.mlp.up_proj.weight"),
    ];
    assert_eq!(
        findings(folder(&tensors)),
        expected.map(|(code, name)| (code, name.to_string()))
    );
    let Err(Error::Refused(list)) = folder(&tensors).check_tensors(&plan(&PLAN)) else {
        panic!("not refused")
    };
    assert_eq!(
        (list[3].expected.as_deref(), list[3].found.as_deref()),
        (Some("[3, 4]"), Some("[3, 5]"))
    );
    assert_eq!(
        list[0].artifact, "model.safetensors",
        "a finding is about the file that lists the tensors"
    );
    assert_eq!(list[3].artifact, "model.safetensors");
}

/// Every layer except the first is absent, and one name is spelled differently.
#[test]
fn absent_tensors_are_listed_eight_long_with_the_nearest_names() {
    let parts = ["gate", "up", "down"];
    let layers: Vec<(String, Vec<usize>)> = (0..4)
        .flat_map(|layer| {
            parts.map(|part| {
                (
                    format!("model.layers.{layer}.mlp.{part}_proj.weight"),
                    vec![4, 4],
                )
            })
        })
        .collect();
    let mut bundle = folder(&[
        of("model.embed_tokens.weight", &[3, 4]),
        of("model.decoder.1.mlp.up_proj.weight", &[4, 4]),
    ]);
    let Err(Error::Refused(list)) = bundle.check_tensors(&layers) else {
        panic!("not refused")
    };
    assert_eq!(list.len(), 9);
    assert!(
        list.iter()
            .all(|refusal| refusal.code == "model.tensor.missing"
                && refusal.artifact == "model.safetensors")
    );
    assert_eq!(
        list[7].subject.as_deref(),
        Some("model.layers.2.mlp.gate_proj.weight"),
        "in the order of the names"
    );
    assert_eq!(
        (list[8].subject.as_deref(), list[8].expected.as_deref()),
        (None, Some("4 more tensors of the model"))
    );
    let up = list
        .iter()
        .find(|refusal| refusal.subject.as_deref() == Some("model.layers.1.mlp.up_proj.weight"))
        .unwrap();
    assert_eq!(
        up.hint.as_deref(),
        Some("the nearest name there is model.decoder.1.mlp.up_proj.weight")
    );
}

#[test]
fn tensors_outside_the_blocks_are_left_out_with_a_warning() {
    let mut tensors: Vec<Tensor> = PLAN.iter().map(|(name, shape)| of(name, shape)).collect();
    let extra = [
        "model.layers.1.mlp.up_proj.weight",
        "vision_tower.weight",
        "score.weight",
    ];
    tensors.extend(extra.map(|name| of(name, &[2])));
    // Buffers of rotary positions contain nothing trained.
    tensors.push(of("model.layers.0.self_attn.rotary_emb.inv_freq", &[2]));
    let mut bundle = folder(&tensors);
    bundle.check_tensors(&plan(&PLAN)).unwrap();
    let found: Vec<_> = bundle
        .warnings
        .iter()
        .map(|warning| (warning.code, warning.subject.as_str()))
        .collect();
    assert_eq!(
        found,
        [extra[0], extra[2], extra[1]].map(|name| ("model.tensor.extra", name))
    );
    assert_eq!(bundle.names().len(), 3);
    assert!(bundle.warnings[0].message().contains("left out"));
}

#[test]
fn tensors_outside_the_blocks_that_a_model_computes_with_are_refused() {
    for name in ["lm_head.bias", "model.norm.bias"] {
        let mut tensors: Vec<Tensor> = PLAN.iter().map(|(name, shape)| of(name, shape)).collect();
        tensors.push(of(name, &[4]));
        assert_eq!(
            findings(folder(&tensors)),
            [("model.tensor.unexpected", name.to_string())]
        );
    }
}

#[test]
fn dtypes_without_a_decoder_count_where_the_model_uses_them() {
    let metadata = || {
        let mut metadata = vec![("general.architecture", Meta::Text("llama"))];
        let counts = [
            ("llama.context_length", 16),
            ("llama.embedding_length", 4),
            ("llama.block_count", 1),
            ("llama.feed_forward_length", 4),
        ];
        metadata.extend(counts.map(|(key, count)| (key, Meta::U32(count))));
        metadata.extend([
            ("llama.attention.head_count", Meta::U32(1)),
            ("llama.attention.layer_norm_rms_epsilon", Meta::F32(1e-5)),
        ]);
        metadata
    };
    let tensors = [
        of("token_embd.weight", &[3, 4]),
        of("output_norm.weight", &[4]),
        of("blk.0.ffn_up.weight", &[4, 4]),
        of("x.weight", &[4]),
    ];
    let opaque = |name: &str| {
        let mut bytes = gguf(&metadata(), &tensors);
        let at = bytes
            .windows(name.len())
            .position(|window| window == name.as_bytes())
            .unwrap()
            + name.len();
        let rank = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        // The type follows the dimensions; 9999 is not a type.
        bytes[at + 4 + 8 * rank..][..4].copy_from_slice(&9999u32.to_le_bytes());
        open_bundle(vec![file("m.gguf", bytes)]).unwrap()
    };
    assert_eq!(
        findings(opaque("output_norm.weight")),
        [("gguf.tensor.type-unknown", "model.norm.weight".to_string())]
    );
    let mut unused = opaque("x.weight");
    unused.check_tensors(&plan(&PLAN)).unwrap();
    assert_eq!(unused.warnings[0].code, "model.tensor.extra");
    let inside = [&tensors[..3], &[of("blk.0.ffn_gate_inp.weight", &[4])]].concat();
    let bundle = open_bundle(vec![file("m.gguf", gguf(&metadata(), &inside))]).unwrap();
    assert_eq!(
        findings(bundle),
        [(
            "model.tensor.unexpected",
            "blk.0.ffn_gate_inp.weight".to_string()
        )]
    );
}
