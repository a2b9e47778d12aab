//! Configurations of several parts, of which the text model is opened alone, and windows that hide nothing.

use std::rc::Rc;

use serde_json::json;
use tabtune::bundle::open_bundle;
use tabtune::formats::ByteSource;
use tabtune_tests::{family, golden};

use super::files::{Tensor, file, safetensors};

/// The files of a golden model as the text part of one that also sees images, with names that begin with `prefix`.
fn nested(name: &str, outer: &str, prefix: &str) -> Vec<Rc<dyn ByteSource>> {
    let folder = open_bundle(family(name).folder()).unwrap();
    let config = json!({
        "model_type": outer, "text_config": family(name).config(), "vision_config": {"hidden_size": 4},
        "tie_word_embeddings": folder.config.tie_word_embeddings,
    });
    let mut tensors: Vec<Tensor> = folder
        .names()
        .iter()
        .map(|own| {
            let name: &'static str = format!("{prefix}{own}").leak();
            (
                name,
                folder.shape(own).unwrap(),
                folder.read_f32(own).unwrap(),
            )
        })
        .collect();
    tensors.push(("vision_tower.patch_embed.weight", vec![4, 3], vec![0.0; 12]));
    vec![
        file("config.json", config.to_string().into_bytes()),
        file("model.safetensors", safetensors(&tensors)),
    ]
}

#[test]
fn text_part_of_a_nested_configuration_is_opened_alone() {
    for (name, outer, prefix) in [
        ("gemma3", "gemma3", "language_model."),
        ("ministral3", "mistral3", "language_model."),
    ] {
        let folder = open_bundle(family(name).folder()).unwrap();
        let bundle = open_bundle(nested(name, outer, prefix)).unwrap();
        assert_eq!(bundle.config, folder.config, "{name}");
        assert_eq!(bundle.names(), folder.names(), "{name}");
        let told: Vec<_> = bundle.warnings.iter().map(|one| one.code).collect();
        assert_eq!(told, ["model.part.ignored"], "{name}");
        assert_eq!(bundle.warnings[0].subject, "1 tensor of 48 bytes");
        for own in folder.names() {
            let (found, wanted) = (bundle.read_f32(&own), folder.read_f32(&own));
            assert!(found.unwrap() == wanted.unwrap(), "{name} {own}");
        }
    }
}

#[test]
fn a_window_that_is_not_shorter_than_the_context_is_reported() {
    let mut config = family("mistral").config();
    config["sliding_window"] = json!(32);
    let files = vec![
        file("config.json", config.to_string().into_bytes()),
        file("model.safetensors", golden("mistral/model.safetensors")),
    ];
    let bundle = open_bundle(files).unwrap();
    assert_eq!(bundle.config.sliding_window, Some(32));
    let told: Vec<_> = bundle.warnings.iter().map(|one| one.code).collect();
    assert_eq!(told, ["model.window.context"]);
}
