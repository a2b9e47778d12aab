//! Tensor names with a superfluous or missing prefix.

use serde_json::{Value, json};
use tabtune::bundle::{Bundle, open_bundle};
use tabtune::formats::safetensors_header;
use tabtune::model::open_model;

use super::files::{file, ramp};

const BODY: [&str; 11] = [
    "embed_tokens.weight",
    "layers.0.input_layernorm.weight",
    "layers.0.mlp.down_proj.weight",
    "layers.0.mlp.gate_proj.weight",
    "layers.0.mlp.up_proj.weight",
    "layers.0.post_attention_layernorm.weight",
    "layers.0.self_attn.k_proj.weight",
    "layers.0.self_attn.o_proj.weight",
    "layers.0.self_attn.q_proj.weight",
    "layers.0.self_attn.v_proj.weight",
    "norm.weight",
];

/// Opens a Llama whose sizes are all 4 except for its 3 rows, with the tensor names in `names`.
fn opened(
    names: &[String],
    config: &Value,
    open: impl Fn(Vec<std::rc::Rc<dyn tabtune::formats::ByteSource>>) -> tabtune::Result<Bundle>,
) -> tabtune::Result<Bundle> {
    let shape = |name: &str| match name {
        _ if name.ends_with("norm.weight") || name.ends_with(".bias") => vec![4],
        _ if name.ends_with("embed_tokens.weight")
            || name.ends_with("lm_head.weight")
            || name.ends_with("wte.weight") =>
        {
            vec![3, 4]
        }
        _ => vec![4, 4],
    };
    let mut sorted = names.to_vec();
    sorted.sort();
    let entries: Vec<_> = sorted
        .iter()
        .map(|name| (name.clone(), "F32", shape(name)))
        .collect();
    let (mut bytes, _) = safetensors_header(&entries, &std::collections::BTreeMap::new()).unwrap();
    let values = entries
        .iter()
        .flat_map(|(name, _, shape)| ramp(shape.iter().product(), name.len() as f32));
    bytes.extend(values.flat_map(f32::to_le_bytes));
    open(vec![
        file("a.jinja", "x"),
        file("config.json", config.to_string()),
        file("model.safetensors", bytes),
    ])
}

fn llama(tied: bool) -> Value {
    json!({"model_type": "llama", "vocab_size": 3, "hidden_size": 4, "intermediate_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1,
        "max_position_embeddings": 8, "rms_norm_eps": 1e-5, "rope_theta": 1e4, "tie_word_embeddings": tied})
}

fn told(bundle: &Bundle) -> Vec<(&'static str, &str)> {
    bundle
        .warnings
        .iter()
        .map(|warning| (warning.code, warning.subject.as_str()))
        .collect()
}

#[test]
fn one_common_prefix_too_many_or_too_few_is_accepted_and_reported_once() {
    let of = |body: &str, head: Option<&str>| {
        BODY.iter()
            .map(|name| format!("{body}{name}"))
            .chain(head.map(String::from))
            .collect::<Vec<_>>()
    };
    let own: Vec<String> = BODY.iter().map(|name| format!("model.{name}")).collect();
    let cases = [
        ("", None),
        ("", Some("lm_head.weight")),
        ("module.model.", Some("module.lm_head.weight")),
        ("module.", None),
        ("_orig_mod.model.", Some("_orig_mod.lm_head.weight")),
        ("model._orig_mod.", Some("lm_head.weight")),
        ("module._orig_mod.model.", None),
        (
            "base_model.model.model.",
            Some("base_model.model.lm_head.weight"),
        ),
        ("model.model.", Some("model.lm_head.weight")),
        ("policy.net.model.", Some("policy.net.lm_head.weight")),
    ];
    for (body, head) in cases {
        let names = of(body, head);
        let bundle = opened(&names, &llama(head.is_none()), open_model)
            .unwrap_or_else(|error| panic!("{body}: {error}"));
        let mut expected = own.clone();
        expected.extend(head.map(|_| "lm_head.weight".to_string()));
        expected.sort();
        assert_eq!(bundle.names(), expected, "{body}");
        assert_eq!(
            told(&bundle),
            [("model.tensor.prefix", names[0].as_str())],
            "{body}"
        );
        let norm = format!("{body}norm.weight");
        assert_eq!(
            bundle.read_f32("model.norm.weight").unwrap(),
            ramp(4, norm.len() as f32),
            "{body}"
        );
    }
    assert!(
        opened(&own, &llama(true), open_model)
            .unwrap()
            .warnings
            .is_empty()
    );
}

#[test]
fn wrappers_of_single_blocks_are_left_out_of_their_names() {
    let names: Vec<String> = BODY
        .iter()
        .map(|name| format!("model.{}", name.replace("layers.0.", "layers.0._orig_mod.")))
        .collect();
    let bundle = opened(&names, &llama(true), open_model).unwrap();
    assert_eq!(
        told(&bundle),
        [("model.tensor.prefix", "model.embed_tokens.weight")]
    );
}

#[test]
fn a_gpt2_within_wrappers_has_its_names() {
    let config = json!({"model_type": "gpt2", "vocab_size": 3, "n_embd": 4, "n_layer": 1, "n_head": 1, "n_positions": 8,
        "layer_norm_epsilon": 1e-5});
    for prefix in ["module.transformer.", "_orig_mod.transformer.", "module."] {
        let names = [
            "wte.weight",
            "wpe.weight",
            "ln_f.bias",
            "h.0.attn.c_attn.weight",
        ]
        .map(|name| format!("{prefix}{name}"));
        let bundle = opened(&names, &config, open_bundle).unwrap();
        let own = [
            "h.0.attn.c_attn.weight",
            "ln_f.bias",
            "wpe.weight",
            "wte.weight",
        ]
        .map(|name| format!("transformer.{name}"));
        assert_eq!(bundle.names(), own, "{prefix}");
        assert_eq!(told(&bundle)[0].0, "model.tensor.prefix");
    }
}

#[test]
fn names_without_a_common_prefix_stay() {
    let mut names: Vec<String> = BODY
        .iter()
        .map(|name| format!("module.model.{name}"))
        .collect();
    names[10] = "other.norm.weight".to_string();
    let error = opened(&names, &llama(true), open_model).unwrap_err();
    assert_eq!(error.code(), "model.tensor.missing");
    let text = error.to_string();
    assert!(
        text.starts_with("model.safetensors: ")
            && text.contains("module.model.embed_tokens.weight")
            && text.contains("3 more tensors"),
        "{text}"
    );
    // With two embeddings, neither is used as the model's.
    let mut twice: Vec<String> = BODY.iter().map(|name| format!("a.model.{name}")).collect();
    twice.push("b.model.embed_tokens.weight".to_string());
    assert_eq!(
        opened(&twice, &llama(true), open_model).unwrap_err().code(),
        "model.tensor.missing"
    );
}
