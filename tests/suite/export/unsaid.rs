//! Models that GGUF cannot describe, or that llama.cpp computes otherwise: refused by the key that says so, or reported.

use serde_json::{Value, json};
use tabtune::export::export_gguf;
use tabtune_tests::{block_on, family};

use super::{golden, named, of_files, source};

/// The files of a golden model with these keys of its configuration.
fn changed(name: &str, changes: &[(&str, Value)]) -> super::Files {
    let mut config = family(name).config();
    for (key, value) in changes {
        config[*key] = value.clone();
    }
    vec![
        source("config.json", config.to_string().into_bytes()),
        source(
            "model.safetensors",
            golden(&format!("{name}/model.safetensors")),
        ),
    ]
}

fn refused(name: &str, changes: &[(&str, Value)]) -> String {
    let files = of_files(changed(name, changes));
    let error = block_on(export_gguf(&files, Vec::new(), &named("m", "f32")))
        .map(|_| ())
        .unwrap_err();
    assert_eq!(error.code(), "export.gguf.arch", "{name}");
    error.to_string()
}

#[test]
fn a_model_that_gguf_cannot_describe_is_refused_by_its_key() {
    let yarn = json!({"type": "yarn", "factor": 4.0, "beta_fast": 2.0, "original_max_position_embeddings": 16});
    let turned = json!(["full_attention", "sliding_attention"]);
    for (name, key, value) in [
        ("mistral", "sliding_window", json!(4)),
        ("qwen3", "rope_scaling", yarn.clone()),
        ("olmo2", "rope_scaling", yarn),
        ("smollm3", "no_rope_layers", json!([0, 1, 1, 0, 1])),
        ("gemma2", "query_pre_attn_scalar", json!(7)),
        ("gemma2", "layer_types", turned.clone()),
        ("gemma3", "rope_local_base_freq", json!(5e3)),
        ("exaone4", "sliding_window", json!(4)),
        ("granitemoehybrid", "position_embedding_type", Value::Null),
        ("qwen3_5", "rms_norm_eps", json!(1e-5)),
    ] {
        let sentence = refused(name, &[(key, value)]);
        assert!(sentence.contains(key), "{name}: {sentence}");
    }
}

#[test]
fn a_window_that_llama_cpp_ignores_is_reported() {
    let told = |changes: &[(&str, Value)]| {
        let files = of_files(changed("phi3", changes));
        let mut stream = block_on(export_gguf(&files, Vec::new(), &named("m", "f32"))).unwrap();
        while block_on(stream.next_chunk()).unwrap().is_some() {}
        let receipt = stream.receipt().unwrap();
        let warnings = receipt.warnings.iter();
        let found = warnings.map(|one| (one.code.clone(), one.subject.clone()));
        found.collect::<Vec<_>>()
    };
    let window = ("export.gguf.window".to_owned(), "5".to_owned());
    assert_eq!(told(&[]), [window]);
    assert_eq!(told(&[("sliding_window", Value::Null)]), []);
}
