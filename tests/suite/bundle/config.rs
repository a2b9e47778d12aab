//! `config.json` ⇄ ModelConfig.

use serde_json::{Value, json};
use tabtune::bundle::open_bundle;
use tabtune::config::{
    Activation, Architecture, Attention, Mixer, NormKind, NormPlaces, QkNorm, QueryGrowth, Rope,
    RopeScaling, Stack,
};
use tabtune::families::{check_stack, config_from_hf, config_to_hf, stack};

use tabtune_tests::{families, family};

use super::files::{file, safetensors};

fn llama() -> Value {
    json!({"model_type": "llama", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 5e5})
}

fn with(mut value: Value, key: &str, setting: Value) -> Value {
    value[key] = setting;
    value
}

#[test]
fn llama_config_is_read() {
    let config = config_from_hf(&llama()).unwrap();
    assert_eq!(
        (
            config.head_dim,
            config.num_key_value_heads,
            config.rope_theta
        ),
        (4, 2, 5e5)
    );
    assert!(!config.tie_word_embeddings && !config.attention_bias && !config.qk_norm);
    let wide = config_from_hf(&with(llama(), "head_dim", json!(8))).unwrap();
    assert_eq!(wide.head_dim, 8);
}

/// The defaults are those of transformers 4.57, and apply only to models with weights: a new model states its context.
#[test]
fn a_context_that_is_not_stated_is_that_of_the_publication() {
    let gpt2 = json!({"model_type": "gpt2", "vocab_size": 3, "n_embd": 4, "n_layer": 1, "n_head": 1, "layer_norm_epsilon": 1e-5});
    let mut early = llama();
    early
        .as_object_mut()
        .unwrap()
        .remove("max_position_embeddings");
    let qwen = with(early.clone(), "model_type", json!("qwen2"));
    let mistral = with(
        with(early.clone(), "model_type", json!("mistral")),
        "sliding_window",
        Value::Null,
    );
    let olmo2 = with(early.clone(), "model_type", json!("olmo2"));
    let cases = [
        (early.clone(), "max_position_embeddings", 2048),
        (
            with(early, "max_position_embeddings", Value::Null),
            "max_position_embeddings",
            2048,
        ),
        (qwen, "max_position_embeddings", 32_768),
        (olmo2, "max_position_embeddings", 2048),
        (mistral, "max_position_embeddings", 131_072),
        (gpt2, "n_positions", 1024),
    ];
    for (config, key, context) in cases {
        let files = || {
            vec![
                file("config.json", config.to_string()),
                file("model.safetensors", safetensors(&[])),
            ]
        };
        let bundle = open_bundle(files()).unwrap();
        assert_eq!(bundle.config.max_position_embeddings, context);
        assert_eq!(
            (bundle.warnings[0].code, &bundle.warnings[0].subject),
            ("model.config.default", &format!("{key}: {context}"))
        );
        assert!(bundle.warnings[0].message().contains("usual value"));
        assert_eq!(
            config_from_hf(&config).unwrap_err().code(),
            "bundle.config.key-missing"
        );
    }
}

/// Opens a folder with this configuration, and returns the subjects of its warnings about absent keys.
fn taken(config: &Value) -> (f64, f64, Vec<String>) {
    let files = vec![
        file("config.json", config.to_string()),
        file("model.safetensors", safetensors(&[])),
    ];
    let bundle = open_bundle(files).unwrap();
    assert!(
        bundle
            .warnings
            .iter()
            .all(|warning| warning.code == "model.config.default"),
        "{:?}",
        bundle.warnings
    );
    (
        bundle.config.norm_eps,
        bundle.config.rope_theta,
        bundle
            .warnings
            .into_iter()
            .map(|warning| warning.subject)
            .collect(),
    )
}

/// A new model may leave these constants out, as its files will state them.
#[test]
fn constants_that_are_not_stated_are_those_of_the_publication() {
    let without = |key: &str| {
        let mut config = llama();
        config.as_object_mut().unwrap().remove(key);
        config
    };
    assert_eq!(taken(&llama()), (1e-5, 5e5, vec![]));
    assert_eq!(
        taken(&without("rms_norm_eps")),
        (1e-6, 5e5, vec!["rms_norm_eps: 0.000001".to_string()])
    );
    let early = without("rope_theta");
    assert_eq!(
        taken(&early),
        (1e-5, 1e4, vec!["rope_theta: 10000".to_string()])
    );
    assert_eq!(
        taken(&with(
            early.clone(),
            "rope_parameters",
            json!({"rope_type": "default"})
        ))
        .2,
        ["rope_theta: 10000"]
    );
    assert_eq!(
        taken(&with(
            early.clone(),
            "rope_parameters",
            json!({"rope_theta": 7e4})
        )),
        (1e-5, 7e4, vec![])
    );
    assert_eq!(config_from_hf(&early).unwrap().rope_theta, 1e4);
    let gpt2 = json!({"model_type": "gpt2", "vocab_size": 3, "n_embd": 4, "n_layer": 1, "n_head": 1, "n_positions": 8});
    assert_eq!(
        taken(&gpt2),
        (1e-5, 1e4, vec!["layer_norm_epsilon: 0.00001".to_string()])
    );
}

/// Files of transformers 5 may state the values once for each type of layer.
#[test]
fn rope_parameters_by_layer_type_are_one_set_or_refused() {
    let linear = json!({"rope_type": "linear", "factor": 4.0, "rope_theta": 2e4});
    let both = json!({"full_attention": linear, "sliding_attention": linear});
    for nested in [json!({"full_attention": linear}), both.clone()] {
        let config = config_from_hf(&with(llama(), "rope_parameters", nested)).unwrap();
        assert_eq!(
            (config.rope_scaling, config.rope_theta),
            (RopeScaling::Linear { factor: 4.0 }, 2e4)
        );
    }
    let other = with(both, "sliding_attention", json!({"rope_type": "default"}));
    for nested in [
        other,
        json!({"full_attention": linear, "sliding_attention": null}),
        json!({"full_attention": linear, "rope_theta": 1e4}),
    ] {
        let error = config_from_hf(&with(llama(), "rope_parameters", nested.clone())).unwrap_err();
        assert_eq!(error.code(), "model.config.unsupported", "{nested}");
        assert!(error.to_string().contains("rope_parameters."), "{error}");
    }
}

#[test]
fn rope_scaling_is_read_in_old_and_new_words() {
    let linear = config_from_hf(&with(
        llama(),
        "rope_scaling",
        json!({"type": "linear", "factor": 2.0}),
    ))
    .unwrap();
    assert_eq!(linear.rope_scaling, RopeScaling::Linear { factor: 2.0 });
    let scaling = json!({"rope_type": "llama3", "rope_theta": 1e6, "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
        "original_max_position_embeddings": 32});
    let llama3 = config_from_hf(&with(llama(), "rope_parameters", scaling)).unwrap();
    assert_eq!(llama3.rope_theta, 1e6);
    let expected = RopeScaling::Llama3 {
        factor: 8.0,
        low_freq_factor: 1.0,
        high_freq_factor: 4.0,
        original_max_position_embeddings: 32,
    };
    assert_eq!(llama3.rope_scaling, expected);
}

#[test]
fn smollm3_leaves_out_rotary_positions_in_the_layers_of_its_list() {
    let smollm3 = |changes: &[(&str, Value)]| {
        let config = with(llama(), "model_type", json!("smollm3"));
        let config = with(config, "num_hidden_layers", json!(5));
        let change = |config, (key, value): &(&str, Value)| with(config, key, value.clone());
        config_from_hf(&changes.iter().fold(config, change))
    };
    let unrotated = |changes: &[(&str, Value)]| -> Vec<usize> {
        let config = smollm3(changes).unwrap();
        let layers = stack(&config).unwrap().layers;
        (0..layers.len())
            .filter(|&index| layers[index].mixer.attention().unwrap().rope.is_none())
            .collect()
    };
    // In the list, 1 is a layer with rotary positions.
    assert_eq!(
        unrotated(&[("no_rope_layers", json!([0, 1, 1, 0, 0]))]),
        [0, 3, 4]
    );
    assert_eq!(unrotated(&[]), [3]);
    assert_eq!(unrotated(&[("no_rope_layer_interval", json!(2))]), [1, 3]);
    let written = config_to_hf(&smollm3(&[("no_rope_layer_interval", json!(2))]).unwrap());
    assert_eq!(written["no_rope_layers"], json!([1, 0, 1, 0, 1]));
    let mut bare = with(llama(), "model_type", json!("smollm3"));
    bare = with(bare, "num_attention_heads", json!(8));
    for key in ["rope_theta", "rms_norm_eps", "num_key_value_heads"] {
        bare.as_object_mut().unwrap().remove(key);
    }
    let bare = config_from_hf(&bare).unwrap();
    let published = (bare.rope_theta, bare.norm_eps, bare.num_key_value_heads);
    assert_eq!(published, (2e6, 1e-6, 4));
    for (key, value, code) in [
        ("no_rope_layers", json!([1, 1, 1, 0]), "model.config.type"),
        (
            "no_rope_layers",
            json!([1, 1, 2, 0, 1]),
            "model.config.type",
        ),
        (
            "no_rope_layer_interval",
            json!(0),
            "model.config.unsupported",
        ),
        ("attention_bias", json!(true), "model.config.unsupported"),
        ("mlp_bias", json!(true), "model.config.unsupported"),
    ] {
        assert_eq!(smollm3(&[(key, value)]).unwrap_err().code(), code, "{key}");
    }
    let window = [
        ("use_sliding_window", json!(true)),
        ("sliding_window", json!(4)),
    ];
    // The window is that of the layers without rotary positions.
    let windowed = smollm3(&window).unwrap();
    assert_eq!(
        (windowed.sliding_window, windowed.window_layers),
        (Some(4), vec![3])
    );
    // Other families refuse the list.
    let of_llama = config_from_hf(&with(llama(), "no_rope_layers", json!([1, 0])));
    assert_eq!(of_llama.unwrap_err().code(), "model.config.unsupported");
}

#[test]
fn families_differ_in_biases_and_norms() {
    let of = |name: &str| config_from_hf(&with(llama(), "model_type", json!(name))).unwrap();
    assert!(of("qwen2").attention_bias && !of("qwen2").qk_norm);
    assert!(of("qwen3").qk_norm && !of("qwen3").attention_bias);
    let mut olmo2 = with(llama(), "model_type", json!("olmo2"));
    olmo2.as_object_mut().unwrap().remove("rms_norm_eps");
    olmo2.as_object_mut().unwrap().remove("rope_theta");
    let config = config_from_hf(&olmo2).unwrap();
    assert_eq!(
        (config.architecture, config.norm_eps, config.rope_theta),
        (Architecture::Olmo2, 1e-5, 1e4)
    );
    let layer = stack(&config).unwrap().layers[1].clone();
    assert_eq!(
        (
            layer.attention_norms,
            layer.mlp_norms,
            layer.mixer.attention().unwrap().qk_norm
        ),
        (NormPlaces::AFTER, NormPlaces::AFTER, QkNorm::All)
    );
    assert_eq!(
        config_from_hf(&with(olmo2, "attention_bias", json!(true)))
            .unwrap_err()
            .code(),
        "model.config.unsupported"
    );
}

#[test]
fn layers_that_no_family_has_are_refused() {
    let described = stack(&config_from_hf(&llama()).unwrap()).unwrap();
    check_stack(&described).unwrap();
    let attention = described.layers[1].mixer.attention().unwrap().clone();
    let rope = attention.rope.clone().unwrap();
    let turned = |rope: &Rope| {
        let rope = Some(rope.clone());
        let attention = attention.clone();
        Mixer::Attention(Attention { rope, ..attention })
    };
    let wider = Rope {
        rotated: rope.rotated + 2,
        ..rope.clone()
    };
    let growing = Rope {
        rotated: rope.rotated - 2,
        query_growth: Some(QueryGrowth {
            beta: 0.1,
            original: 8,
        }),
        ..rope
    };
    let changes: [&dyn Fn(&mut Stack); 5] = [
        &|stack| {
            stack.last_norm.kind = NormKind::Layer;
            stack.last_norm.offset = 1.0;
        },
        &|stack| stack.layers[1].mlp_norms.before = false,
        &|stack| stack.layers[1].mixer = turned(&wider),
        &|stack| stack.layers[1].mixer = turned(&growing),
        &|stack| {
            stack.layers[1].mlp.fused = true;
            stack.layers[1].mlp.activation = Activation::GeGlu;
        },
    ];
    for (at, change) in changes.iter().enumerate() {
        let mut changed = described.clone();
        change(&mut changed);
        assert_eq!(
            check_stack(&changed).unwrap_err().code(),
            "model.config.unsupported",
            "change {at}"
        );
    }
}

#[test]
fn gpt2_config_is_read() {
    let value = json!({"model_type": "gpt2", "vocab_size": 50, "n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": 16,
        "n_inner": null, "layer_norm_epsilon": 1e-5, "attn_pdrop": 0.1});
    let config = config_from_hf(&value).unwrap();
    assert_eq!(config.architecture, Architecture::Gpt2);
    assert_eq!(
        (
            config.intermediate_size,
            config.head_dim,
            config.max_position_embeddings
        ),
        (48, 4, 16)
    );
    assert!(config.tie_word_embeddings);
    assert_eq!(config_from_hf(&config_to_hf(&config)).unwrap(), config);
}

#[test]
fn written_config_reads_back_equal() {
    for family in families() {
        let config = config_from_hf(&family.config()).unwrap();
        let again = config_from_hf(&config_to_hf(&config)).unwrap();
        assert_eq!(again, config, "{}", family.name);
    }
}

#[test]
fn config_of_a_gguf_has_the_keys_that_libraries_need() {
    let written =
        |name: &str| config_to_hf(&open_bundle(family(name).gguf_files()).unwrap().config);
    let phi3 = written("phi3");
    let keys: Vec<&String> = phi3["rope_scaling"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["type", "short_factor", "long_factor"]);
    assert_eq!(phi3["original_max_position_embeddings"], 16);
    let ministral3 = written("ministral3");
    assert_eq!(ministral3["rope_parameters"]["rope_theta"], 500.0);
    assert_eq!(ministral3["rope_parameters"]["llama_4_scaling_beta"], 0.1);
    assert!(ministral3.get("rope_scaling").is_none() && ministral3.get("rope_theta").is_none());
    let exaone4 = written("exaone4");
    for key in ["rope_scaling", "sliding_window_pattern"] {
        assert_eq!(exaone4.get(key), Some(&Value::Null), "{key}");
    }
    let mut windowed = family("exaone4").config();
    (windowed["num_hidden_layers"], windowed["sliding_window"]) = (json!(9), json!(4));
    let windowed = config_to_hf(&config_from_hf(&windowed).unwrap());
    assert_eq!(windowed["sliding_window_pattern"], "LLLG");
    assert_eq!(written("lfm2")["block_dim"], 16);
}

#[test]
fn what_is_not_built_is_refused_by_name() {
    let cases = [
        (
            with(llama(), "model_type", json!("mamba")),
            "model.arch.unsupported",
            "model_type",
        ),
        (
            with(llama(), "hidden_act", json!("gelu")),
            "model.config.unsupported",
            "hidden_act",
        ),
        (
            with(llama(), "sliding_window", json!(32)),
            "model.config.unsupported",
            "sliding_window",
        ),
        (
            with(llama(), "num_local_experts", json!(8)),
            "model.config.unsupported",
            "num_local_experts",
        ),
        (
            with(llama(), "mlp_bias", json!(true)),
            "model.config.unsupported",
            "mlp_bias",
        ),
        (
            with(llama(), "attention_bias", json!(true)),
            "model.config.unsupported",
            "attention_bias",
        ),
        (
            with(
                llama(),
                "rope_scaling",
                json!({"type": "longrope", "factor": 4}),
            ),
            "model.config.unsupported",
            "rope_scaling.rope_type",
        ),
        (
            with(llama(), "quantization_config", json!({"bits": 4})),
            "model.config.unsupported",
            "quantization_config",
        ),
        (
            with(llama(), "layer_types", json!(["sliding_attention"])),
            "model.config.unsupported",
            "layer_types",
        ),
        (
            with(llama(), "is_causal", json!(false)),
            "model.config.unsupported",
            "is_causal",
        ),
        (
            with(llama(), "use_bidirectional_attention", json!("all")),
            "model.config.unsupported",
            "use_bidirectional_attention",
        ),
        (
            with(llama(), "attention_multiplier", json!(0.1)),
            "model.config.unsupported",
            "attention_multiplier",
        ),
        (
            with(llama(), "residual_multiplier", json!(0.5)),
            "model.config.unsupported",
            "residual_multiplier",
        ),
        (
            with(llama(), "clip_qkv", json!(8)),
            "model.config.unsupported",
            "clip_qkv",
        ),
        (
            with(llama(), "hidden_size", json!("16")),
            "model.config.type",
            "hidden_size",
        ),
        (
            with(llama(), "hidden_size", json!(18)),
            "model.config.heads",
            "num_attention_heads",
        ),
        (
            with(llama(), "num_key_value_heads", json!(3)),
            "model.config.kv-heads",
            "num_key_value_heads",
        ),
        (
            with(llama(), "num_hidden_layers", json!(513)),
            "model.config.layers",
            "num_hidden_layers",
        ),
        (
            with(llama(), "max_position_embeddings", json!(0)),
            "model.config.context",
            "max_position_embeddings",
        ),
        (
            with(llama(), "head_dim", json!(5)),
            "model.config.rope",
            "head_dim",
        ),
    ];
    for (value, code, key) in cases {
        let error = config_from_hf(&value).unwrap_err();
        assert_eq!(error.code(), code, "{key}");
        assert!(error.to_string().contains(key), "{key}: {error}");
    }
    let whole = with(
        with(llama(), "model_type", json!("mistral")),
        "sliding_window",
        json!(64),
    );
    assert!(
        config_from_hf(&whole).is_ok(),
        "a window as long as the context changes nothing"
    );
    for (key, neutral) in [
        ("residual_multiplier", json!(1.0)),
        ("clip_qkv", json!(null)),
        ("final_logit_softcapping", json!(0)),
    ] {
        assert!(
            config_from_hf(&with(llama(), key, neutral)).is_ok(),
            "{key}"
        );
    }
}

/// The default is that of transformers.
#[test]
fn a_head_of_qwen3_has_128_dimensions_unless_stated() {
    assert_eq!(
        config_from_hf(&with(llama(), "model_type", json!("qwen3")))
            .unwrap()
            .head_dim,
        128
    );
}

/// A factor alone does not determine the kind of scaling.
#[test]
fn rope_scaling_without_a_type_is_refused() {
    for key in ["rope_scaling", "rope_parameters"] {
        let refused = config_from_hf(&with(llama(), key, json!({"factor": 2.0}))).unwrap_err();
        assert_eq!(refused.code(), "bundle.config.key-missing");
        assert!(
            refused.to_string().contains(&format!("{key}.rope_type")),
            "{refused}"
        );
    }
    assert_eq!(
        config_from_hf(&with(
            llama(),
            "rope_parameters",
            json!({"rope_theta": 3e4})
        ))
        .unwrap()
        .rope_theta,
        3e4
    );
}

/// Versions of transformers differ in the one that they take.
#[test]
fn rotary_positions_that_are_stated_twice_must_agree() {
    let linear = |word: &str, factor: f64| json!({word: "linear", "factor": factor});
    let both = |older: Value| {
        with(
            with(llama(), "rope_parameters", linear("rope_type", 2.0)),
            "rope_scaling",
            older,
        )
    };
    assert_eq!(
        config_from_hf(&both(linear("type", 2.0)))
            .unwrap()
            .rope_scaling,
        RopeScaling::Linear { factor: 2.0 }
    );
    let words = json!({"type": "default", "rope_type": "linear", "factor": 2.0});
    for (value, key) in [
        (both(linear("type", 4.0)), "rope_scaling"),
        (with(llama(), "rope_scaling", words), "rope_scaling.type"),
    ] {
        let refused = config_from_hf(&value).unwrap_err();
        assert!(
            refused.code() == "model.config.unsupported" && refused.to_string().contains(key),
            "{refused}"
        );
    }
}
