//! Keys below the name of an architecture: each that llama.cpp knows is honoured, has no effect, or is refused.

use tabtune::bundle::{Bundle, open_bundle};
use tabtune::families::{Effect, KEYS, effect, gguf_architectures};

use super::files::{Meta, file, gguf, ramp};

/// Opens a model of this family that has metadata, an embedding, and one more key.
fn with(family: &str, key: &str, value: Meta) -> tabtune::Result<Bundle> {
    let counts = [
        ("context_length", 16),
        ("embedding_length", 8),
        ("block_count", 1),
        ("feed_forward_length", 4),
        ("attention.head_count", 2),
    ];
    let of_delta_rules = [
        ("ssm.conv_kernel", 4),
        ("ssm.state_size", 4),
        ("ssm.group_count", 1),
        ("ssm.time_step_rank", 2),
        ("ssm.inner_size", 8),
    ];
    let own = of_delta_rules.iter().filter(|_| family == "qwen35");
    let eps = if family == "gpt2" {
        "attention.layer_norm_epsilon"
    } else {
        "attention.layer_norm_rms_epsilon"
    };
    let mut names: Vec<(String, Meta)> = counts
        .iter()
        .chain(own)
        .map(|(key, n)| (format!("{family}.{key}"), Meta::U32(*n)))
        .collect();
    names.push((format!("{family}.{eps}"), Meta::F32(1e-5)));
    names.retain(|(name, _)| *name != format!("{family}.{key}"));
    names.push((format!("{family}.{key}"), value));
    let mut metadata = vec![(
        "general.architecture",
        Meta::Text(Box::leak(family.to_string().into_boxed_str())),
    )];
    metadata.extend(
        names
            .iter()
            .map(|(name, value)| (name.as_str(), value.clone())),
    );
    open_bundle(vec![file(
        "m.gguf",
        gguf(
            &metadata,
            &[("token_embd.weight", vec![3, 8], ramp(24, 0.0))],
        ),
    )])
}

/// Returns the subjects of a bundle's warnings about unread keys.
fn told(bundle: &Bundle) -> Vec<&str> {
    bundle
        .warnings
        .iter()
        .filter(|warning| warning.code == "gguf.key.unread")
        .map(|warning| warning.subject.as_str())
        .collect()
}

#[test]
fn every_known_key_is_honoured_harmless_or_refused() {
    for family in gguf_architectures() {
        let plain = with(family, "tensor_data_layout", Meta::Text("reference"))
            .unwrap()
            .config;
        for &(key, _) in KEYS {
            let name = format!("{family}.{key}");
            let refused = |value: Meta| match with(family, key, value) {
                Ok(_) => panic!("{name} was accepted"),
                Err(error) => assert!(error.to_string().contains(key), "{name}: {error}"),
            };
            let harmless = |value: Meta| {
                let bundle =
                    with(family, key, value).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!((&bundle.config, told(&bundle)), (&plain, vec![]), "{name}");
            };
            match effect(family, key).unwrap() {
                // A value that no key can have.
                Effect::Read => refused(Meta::Text("nonsense")),
                Effect::Nothing => [Meta::F32(3.0), Meta::U32(0)]
                    .into_iter()
                    .for_each(harmless),
                Effect::UnlessZero => {
                    [Meta::F32(0.0), Meta::U32(0), Meta::Bool(false)]
                        .into_iter()
                        .for_each(harmless);
                    [Meta::F32(1.0), Meta::U32(3), Meta::Bool(true)]
                        .into_iter()
                        .for_each(refused);
                }
                Effect::UnlessOne => {
                    [Meta::F32(1.0), Meta::F32(0.0)]
                        .into_iter()
                        .for_each(harmless);
                    [Meta::F32(1.5), Meta::F32(-1.0)]
                        .into_iter()
                        .for_each(refused);
                }
            }
        }
    }
}

/// Keys that llama.cpp's graphs of these families compute with, independent of the table.
#[test]
fn keys_that_llama_cpp_computes_with_are_refused() {
    let keys = [
        ("rope.scaling.attn_factor", 1.5),
        ("rope.scaling.yarn_attn_factor", 1.5),
        ("rope.scaling.yarn_ext_factor", 1.0),
        ("attention.clamp_kqv", 8.0),
        ("attention.max_alibi_bias", 8.0),
        ("attention.scale", 0.25),
        ("attn_logit_softcapping", 50.0),
        ("final_logit_softcapping", 30.0),
        ("logit_scale", 0.25),
        ("residual_scale", 1.5),
        ("embedding_scale", 13.0),
    ];
    for (family, (key, value)) in gguf_architectures()
        .into_iter()
        .flat_map(|family| keys.map(|key| (family, key)))
    {
        // GPT-2 has no rotary positions, so it has no such keys.
        if family == "gpt2" && key.starts_with("rope.") {
            continue;
        }
        let found = with(family, key, Meta::F32(value));
        let plain = with(family, "tensor_data_layout", Meta::Text("reference")).unwrap();
        // A family that has such a number computes with it.
        if found
            .as_ref()
            .is_ok_and(|bundle| bundle.config != plain.config)
        {
            continue;
        }
        let error = found.expect_err(&format!("{family}.{key}")).to_string();
        assert!(error.contains(&format!("{family}.{key}")), "{error}");
    }
    for (key, value) in [
        ("expert_count", 4),
        ("nextn_predict_layers", 1),
        ("attention.shared_kv_layers", 2),
    ] {
        assert!(with("llama", key, Meta::U32(value)).is_err(), "{key}");
    }
}

#[test]
fn a_key_that_nobody_knows_is_a_warning() {
    for family in gguf_architectures() {
        let bundle = with(family, "attention.wisdom", Meta::F32(0.5)).unwrap();
        assert_eq!(told(&bundle), [format!("{family}.attention.wisdom")]);
        assert!(
            bundle
                .warnings
                .iter()
                .all(|warning| !warning.message().contains(warning.code)),
            "a warning has words"
        );
    }
}

#[test]
fn numbers_that_repeat_what_is_known_are_taken() {
    for family in gguf_architectures() {
        let scale = with(family, "attention.scale", Meta::F32(0.5)).unwrap();
        assert_eq!(scale.config.head_dim, 4);
        let other = with(family, "attention.scale", Meta::F32(0.25));
        assert_eq!(other.is_ok(), family == "granite", "{family}");
        let unrotated = with(family, "rope.scaling.finetuned", Meta::Bool(false));
        assert_eq!(unrotated.is_err(), family == "granite", "{family}");
        assert!(with(family, "attention.key_length", Meta::U32(4)).is_ok());
        assert!(with(family, "attention.value_length", Meta::U32(2)).is_err());
    }
    assert!(with("gpt2", "attention.head_count_kv", Meta::U32(2)).is_ok());
    assert!(with("gpt2", "attention.head_count_kv", Meta::U32(1)).is_err());
}

#[test]
fn a_factor_that_is_there_and_cannot_be_is_no_missing_key() {
    let linear = |factor: Option<f32>| {
        let mut metadata = vec![
            ("general.architecture", Meta::Text("llama")),
            ("llama.rope.scaling.type", Meta::Text("linear")),
        ];
        for (key, count) in [
            ("context_length", 16),
            ("embedding_length", 8),
            ("block_count", 1),
            ("feed_forward_length", 4),
        ] {
            metadata.push((
                &*Box::leak(format!("llama.{key}").into_boxed_str()),
                Meta::U32(count),
            ));
        }
        metadata.push(("llama.attention.head_count", Meta::U32(2)));
        metadata.push(("llama.attention.layer_norm_rms_epsilon", Meta::F32(1e-5)));
        metadata.extend(factor.map(|factor| ("llama.rope.scaling.factor", Meta::F32(factor))));
        open_bundle(vec![file(
            "m.gguf",
            gguf(
                &metadata,
                &[("token_embd.weight", vec![3, 8], ramp(24, 0.0))],
            ),
        )])
    };
    assert!(linear(Some(2.0)).is_ok());
    assert_eq!(
        linear(None).unwrap_err().code(),
        "bundle.config.key-missing"
    );
    for factor in [0.0, -2.0, f32::NAN, f32::INFINITY] {
        let error = linear(Some(factor)).unwrap_err();
        assert_eq!(error.code(), "model.config.unsupported", "{factor}");
        assert!(
            error.to_string().contains("llama.rope.scaling.factor")
                && error.to_string().contains("above 0"),
            "{error}"
        );
    }
}
