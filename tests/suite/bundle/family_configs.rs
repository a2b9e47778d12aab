//! Configurations of families: the defaults of keys that are absent, and values that are refused by their key.

use serde_json::{Value, json};
use tabtune::config::{ModelConfig, RopeScaling};
use tabtune::families::{config_from_hf, stack};
use tabtune_tests::family;

fn with(mut config: Value, key: &str, value: Value) -> Value {
    config[key] = value;
    config
}

fn without(mut config: Value, keys: &[&str]) -> Value {
    let fields = config.as_object_mut().unwrap();
    keys.iter().for_each(|key| drop(fields.remove(*key)));
    config
}

fn read(config: &Value) -> ModelConfig {
    config_from_hf(config).unwrap()
}

fn golden(name: &str) -> Value {
    family(name).config()
}

/// The six keys of a published configuration of Gemma 3, and its context.
#[test]
fn gemma3_of_few_keys_has_the_numbers_of_its_class() {
    let config = read(&json!({
        "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024, "max_position_embeddings": 131072,
    }));
    let heads = (
        config.num_attention_heads,
        config.num_key_value_heads,
        config.head_dim,
    );
    assert_eq!((heads, config.vocab_size), ((8, 4, 256), 262_208));
    assert_eq!((config.norm_eps, config.rope_theta), (1e-6, 1e6));
    assert_eq!(config.rope_local_base_freq, Some(1e4));
    assert_eq!(
        (config.attention_multiplier, config.tie_word_embeddings),
        (Some(0.0625), true)
    );
    let layers = stack(&config).unwrap().layers;
    let attention = |index: usize| layers[index].mixer.attention().unwrap().clone();
    let (windowed, full) = (attention(4), attention(5));
    assert_eq!((windowed.window, full.window), (Some(1024), None));
    let (local, global) = (windowed.rope.unwrap(), full.rope.unwrap());
    assert_eq!((local.base, local.scaling), (1e4, RopeScaling::Default));
    assert_eq!(
        (global.base, global.scaling),
        (1e6, RopeScaling::Linear { factor: 8.0 })
    );
    // transformers 5 nests them by the kind of a layer.
    let nested = json!({
        "model_type": "gemma3_text", "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 6, "max_position_embeddings": 512,
        "rope_parameters": {
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 5e3},
        },
    });
    let nested = read(&nested);
    assert_eq!(nested.rope_local_base_freq, Some(5e3));
    assert_eq!(nested.rope_scaling, RopeScaling::Linear { factor: 8.0 });
}

#[test]
fn absent_keys_have_the_defaults_of_their_family() {
    let gemma2 = without(
        golden("gemma2"),
        &[
            "attn_logit_softcapping",
            "final_logit_softcapping",
            "sliding_window",
        ],
    );
    let found = read(&gemma2);
    let caps = (found.attn_logit_softcapping, found.final_logit_softcapping);
    assert_eq!(
        (caps, found.sliding_window),
        ((Some(50.0), Some(30.0)), Some(4096))
    );
    let uncapped = read(&with(gemma2, "final_logit_softcapping", Value::Null));
    assert_eq!(uncapped.final_logit_softcapping, None);

    let granite = without(
        golden("granite"),
        &["attention_multiplier", "logits_scaling"],
    );
    let found = read(&granite);
    // Without the key scores are multiplied by 1, not by 1/√H.
    assert_eq!(
        (found.attention_multiplier, found.logits_scaling),
        (Some(1.0), None)
    );
    let hybrid = golden("granitemoehybrid");
    assert_eq!(read(&hybrid).no_rope_layers, [0, 1]);
    let rotated = with(hybrid, "position_embedding_type", json!("rope"));
    assert!(read(&rotated).no_rope_layers.is_empty());

    let mistral = without(golden("mistral"), &["sliding_window"]);
    assert_eq!(read(&mistral).sliding_window, Some(4096));
    let olmo3 = without(
        golden("olmo3"),
        &["sliding_window", "layer_types", "rope_theta"],
    );
    let found = read(&with(olmo3, "num_hidden_layers", json!(5)));
    assert_eq!((found.sliding_window, found.rope_theta), (Some(4096), 5e5));
    assert_eq!(found.window_layers, [0, 1, 2, 4]);

    let exaone = golden("exaone4");
    assert!(read(&exaone).window_layers.is_empty());
    let windowed = without(exaone, &["sliding_window"]);
    let windowed = with(windowed, "num_hidden_layers", json!(5));
    let found = read(&with(windowed, "sliding_window_pattern", json!("LLLG")));
    assert_eq!(
        (found.window_layers, found.no_rope_layers),
        (vec![0, 1, 2, 4], vec![3])
    );

    let ernie = read(&without(
        golden("ernie4_5"),
        &["head_dim", "num_key_value_heads", "rope_theta"],
    ));
    let numbers = (ernie.head_dim, ernie.num_key_value_heads, ernie.rope_theta);
    assert_eq!(numbers, (128, 2, 5e5));
    let glm = read(&without(
        golden("glm"),
        &["partial_rotary_factor", "attention_bias"],
    ));
    assert_eq!(
        (glm.partial_rotary_factor, glm.attention_bias),
        (Some(0.5), true)
    );
    let minicpm = read(&without(golden("minicpm"), &["scale_emb", "scale_depth"]));
    let depth = 1.0 / (minicpm.num_hidden_layers as f64).sqrt();
    let factors = (minicpm.embedding_multiplier, minicpm.residual_multiplier);
    assert_eq!(factors, (None, Some(depth)));
    let phi3 = without(
        golden("phi3"),
        &["partial_rotary_factor", "sliding_window", "rope_scaling"],
    );
    let phi3 = read(&phi3);
    assert_eq!(
        (phi3.partial_rotary_factor, phi3.sliding_window),
        (None, None)
    );
    let ministral = read(&without(golden("ministral3"), &["rope_parameters"]));
    let RopeScaling::Yarn {
        factor,
        llama_4_scaling_beta,
        ..
    } = ministral.rope_scaling
    else {
        panic!("{:?}", ministral.rope_scaling);
    };
    assert_eq!((factor, llama_4_scaling_beta), (16.0, Some(0.1)));
    // In other families transformers ignores the key.
    let scaling = golden("ministral3")["rope_parameters"].clone();
    let qwen3 = read(&with(golden("qwen3"), "rope_scaling", scaling));
    let RopeScaling::Yarn {
        llama_4_scaling_beta,
        ..
    } = qwen3.rope_scaling
    else {
        panic!("{:?}", qwen3.rope_scaling);
    };
    assert_eq!(llama_4_scaling_beta, None);
    let lfm2 = without(golden("lfm2"), &["conv_L_cache", "layer_types"]);
    let lfm2 = read(&with(lfm2, "full_attn_idxs", json!([1])));
    assert_eq!((lfm2.conv_layers, lfm2.conv_l_cache), (vec![0, 2], Some(3)));
    let qwen35 = without(
        golden("qwen3_5"),
        &[
            "layer_types",
            "full_attention_interval",
            "head_dim",
            "num_key_value_heads",
            "rope_parameters",
            "linear_conv_kernel_dim",
            "linear_num_key_heads",
            "linear_num_value_heads",
            "linear_key_head_dim",
            "linear_value_head_dim",
        ],
    );
    let qwen35 = read(&with(qwen35, "num_hidden_layers", json!(5)));
    let delta = qwen35.linear_attention.unwrap();
    assert_eq!(
        (delta.key_heads, delta.value_heads, delta.taps),
        (16, 32, 4)
    );
    assert_eq!((delta.key_dim, delta.value_dim), (128, 128));
    assert_eq!(qwen35.linear_layers, [0, 1, 2, 4]);
    assert_eq!((qwen35.head_dim, qwen35.num_key_value_heads), (256, 4));
    assert_eq!(qwen35.partial_rotary_factor, Some(0.25));
    // Two thirds of the stated width, rounded up.
    let wide = with(golden("lfm2"), "block_ff_dim", json!(12_288));
    let wide = without(wide, &["block_multiple_of"]);
    assert_eq!(read(&wide).intermediate_size, 8192);
}

#[test]
fn values_that_a_family_does_not_have_are_refused_by_their_key() {
    let dynamic = json!({"type": "dynamic", "factor": 2.0});
    let short = json!({"type": "longrope", "short_factor": [1.0], "long_factor": [1.0, 2.0, 4.0]});
    for (name, key, value) in [
        ("gemma3", "hidden_activation", json!("gelu")),
        ("gemma3", "use_bidirectional_attention", json!(true)),
        ("gemma3", "sliding_window_pattern", json!(0)),
        ("gemma2", "attention_bias", json!(true)),
        ("granite", "mlp_bias", json!(true)),
        ("granitemoehybrid", "num_local_experts", json!(4)),
        (
            "granitemoehybrid",
            "layer_types",
            json!(["mamba", "attention"]),
        ),
        ("ministral3", "quantization_config", json!({"bits": 8})),
        (
            "olmo2",
            "layer_types",
            json!(["sliding_attention", "full_attention"]),
        ),
        ("phi3", "short_mscale", json!(1.2)),
        ("phi3", "rope_scaling", short),
        ("exaone4", "sliding_window_pattern", json!("LLX")),
        ("hunyuan", "rope_scaling", dynamic),
        ("ernie4_5", "use_bias", json!(true)),
        ("minicpm", "sparse_config", json!({"kernel_size": 32})),
        ("minicpm", "dim_model_base", json!(0)),
        ("lfm2", "conv_bias", json!(true)),
        ("lfm2", "layer_types", json!(["conv", "mamba", "conv"])),
        (
            "llama3",
            "rope_scaling",
            json!({"type": "longrope", "factor": 2.0}),
        ),
        ("glm", "partial_rotary_factor", json!(0.1)),
        ("qwen3_5", "attn_output_gate", json!(false)),
        ("qwen3_5", "attention_bias", json!(true)),
        (
            "qwen3_5",
            "layer_types",
            json!(["linear_attention", "mamba", "linear_attention"]),
        ),
        ("qwen3_5", "num_experts", json!(8)),
        (
            "qwen3_5",
            "rope_parameters",
            json!({"rope_type": "yarn", "factor": 4.0}),
        ),
        ("phi3", "original_max_position_embeddings", json!(1)),
    ] {
        let mut config = golden(name);
        if name == "gemma3" && key == "sliding_window_pattern" {
            config = without(config, &["layer_types"]);
        }
        if name == "exaone4" {
            config = with(config, "sliding_window", json!(4));
        }
        let error = config_from_hf(&with(config, key, value)).unwrap_err();
        assert_eq!(error.code(), "model.config.unsupported", "{name} {key}");
        let named = key
            .trim_start_matches("rope_scaling")
            .trim_start_matches("rope_parameters");
        // A rotation of nothing, and one of an infinite size, are refused in words of the rotation.
        let known = [named, "rotated"]
            .iter()
            .any(|word| error.to_string().contains(word));
        assert!(known, "{name} {key}: {error}");
    }
}
