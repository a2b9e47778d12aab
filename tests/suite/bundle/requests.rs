//! Every field of a request that opens a model is honoured, or refused by its name.

use std::rc::Rc;

use serde_json::{Value, json};
use tabtune::bundle::{Bundle, OpenOptions, open_bundle_with};
use tabtune::error::Error;
use tabtune::formats::ByteSource;

use super::files::{file, ramp, safetensors};

/// Opens a model of one table, whose first value is `first`.
fn opened(first: f32, request: &Value) -> tabtune::Result<Bundle> {
    let config = json!({"model_type": "llama", "vocab_size": 2, "hidden_size": 4, "intermediate_size": 4, "num_hidden_layers": 1,
        "num_attention_heads": 1, "max_position_embeddings": 8, "rms_norm_eps": 1e-5, "rope_theta": 1e4, "tie_word_embeddings": true});
    let mut values = ramp(8, 0.0);
    values[0] = first;
    let weights = safetensors(&[("model.embed_tokens.weight", vec![2, 4], values)]);
    let files: Vec<Rc<dyn ByteSource>> = vec![
        file("config.json", config.to_string()),
        file("model.safetensors", weights),
    ];
    let request = Some(serde_json::from_value(request.clone()).unwrap());
    open_bundle_with(
        files,
        OpenOptions {
            request,
            ..OpenOptions::default()
        },
    )
}

#[test]
fn each_field_of_a_request_is_honoured_or_refused() {
    let all = json!({"materialization_policy": "deferred", "verify": "header", "names": "hf"});
    for (field, value) in all.as_object().unwrap() {
        let Err(Error::Refused(list)) = opened(1.0, &json!({field: value})) else {
            panic!("{field} was passed over")
        };
        assert_eq!(
            (list[0].code, list[0].subject.as_deref()),
            ("request.unsupported", Some(field.as_str()))
        );
    }
    let Err(Error::Refused(list)) = opened(1.0, &all) else {
        panic!("passed over")
    };
    assert_eq!(list.len(), 3);
    let written_out = json!({"materialization_policy": "eager", "verify": "full", "names": "source", "non_finite": "warn"});
    assert!(opened(f32::NAN, &written_out).is_ok());
    let refuse = json!({"non_finite": "refuse"});
    assert!(opened(1.0, &refuse).is_ok());
    assert_eq!(
        opened(f32::NAN, &refuse).unwrap_err().code(),
        "model.non-finite"
    );
}
