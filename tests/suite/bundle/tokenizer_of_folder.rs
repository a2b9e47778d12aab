//! Documents of a tokenizer in a folder besides tokenizer.json.

use std::collections::BTreeMap;

use serde_json::json;
use tabtune::bundle::{Bundle, ByteSource, ModelAssets, open_bundle};

use super::files::{file, ramp, safetensors};

/// A model of `rows` rows with these documents.
fn opened(rows: usize, documents: &[(&str, Vec<u8>)]) -> Bundle {
    let config = json!({"model_type": "llama", "vocab_size": rows, "hidden_size": 4, "intermediate_size": 4, "num_hidden_layers": 1,
        "num_attention_heads": 1, "max_position_embeddings": 8, "rms_norm_eps": 1e-5, "rope_theta": 1e4, "tie_word_embeddings": true});
    let weights = safetensors(&[("model.embed_tokens.weight", vec![rows, 4], ramp(4 * rows, 0.0))]);
    let mut files: Vec<Box<dyn ByteSource>> = vec![file("config.json", config.to_string()), file("model.safetensors", weights)];
    files.extend(documents.iter().map(|(name, bytes)| file(name, bytes.clone())));
    open_bundle(files).unwrap()
}

fn written(bundle: &Bundle) -> BTreeMap<String, Vec<u8>> {
    ModelAssets::of_bundle(bundle).folder_documents(&bundle.config, "float32").unwrap().into_iter().collect()
}

fn codes(bundle: &Bundle) -> Vec<(&'static str, &str)> {
    bundle.warnings.iter().map(|warning| (warning.code, warning.subject.as_str())).collect()
}

#[test]
fn every_document_of_a_tokenizer_is_carried_byte_for_byte() {
    let tokenizer = json!({"version": "1.0", "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}});
    let documents: Vec<(&str, Vec<u8>)> = vec![
        ("tokenizer.json", tokenizer.to_string().into()),
        ("tokenizer_config.json", b"{ \"a\":  1}\n".to_vec()),
        ("special_tokens_map.json", b"{}  ".to_vec()),
        ("tokenizer.model", vec![10, 0, 255, 254, 13]),
        ("added_tokens.json", b"{ }\r\n".to_vec()),
        ("vocab.json", b"{\"a\":0,  \"b\":1}".to_vec()),
        ("merges.txt", b"#version: 0.2\r\n".to_vec()),
    ];
    let bundle = opened(2, &documents);
    assert_eq!(codes(&bundle), []);
    let found = written(&bundle);
    for (name, bytes) in &documents {
        assert_eq!(found.get(*name), Some(bytes), "{name}");
    }
    // Once more, as from an export or a checkpoint.
    let again: Vec<(&str, Vec<u8>)> = found.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect();
    let again: Vec<_> = again.into_iter().filter(|(name, _)| *name != "config.json").collect();
    assert_eq!(written(&opened(2, &again)), found);
}

#[test]
fn a_pointer_in_the_place_of_a_document_is_told_and_not_carried() {
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n".to_vec();
    let bundle = opened(2, &[("tokenizer.model", pointer)]);
    assert_eq!(codes(&bundle)[0], ("tokenizer.file.pointer", "tokenizer.model"));
    assert!(!written(&bundle).contains_key("tokenizer.model"));
    assert!(bundle.warnings[0].message().contains("git lfs pull"));
}
