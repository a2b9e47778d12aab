//! The names of fields in TypeScript.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::json;
use tabtune::error::{Error, Refusal, word};
use tabtune_border::{Named, Thrown};

#[derive(Serialize)]
struct Report {
    grad_norm: f64,
    by_name: BTreeMap<&'static str, Inner>,
    first_refusal: Option<Refusal>,
    all: Vec<(u8, Form)>,
}

#[derive(Serialize)]
struct Inner {
    beta1_of_all: u8,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Form {
    OneMinusSqrt { start_step: u64 },
}

#[test]
fn border_renames_fields_but_not_keys_words_and_documents() {
    let refusal = Refusal::new(word!("gguf.magic.invalid"))
        .of("a_b.gguf")
        .at(4);
    let report = Report {
        grad_norm: 0.5,
        by_name: [("q_proj", Inner { beta1_of_all: 1 })].into(),
        first_refusal: Some(refusal),
        all: vec![(2, Form::OneMinusSqrt { start_step: 3 })],
    };
    let refusal = json!({ "code": "gguf.magic.invalid", "stage": "open", "artifact": "a_b.gguf", "byte_offset": 4 });
    let expected = json!({
        "gradNorm": 0.5,
        "byName": { "q_proj": { "beta1OfAll": 1 } },
        "firstRefusal": refusal,
        "all": [[2, { "type": "one_minus_sqrt", "startStep": 3 }]],
    });
    assert_eq!(serde_json::to_value(Named(&report)).unwrap(), expected);
}

#[test]
fn border_gives_an_error_its_fields() {
    let error = Error::NonFinite {
        step: 3,
        tensor: "loss".into(),
        value: f64::NAN,
    };
    let thrown = serde_json::to_value(Named(&Thrown::of(&error))).unwrap();
    assert_eq!(thrown["code"], "train.non-finite");
    assert_eq!(
        (&thrown["step"], &thrown["tensor"]),
        (&json!(3), &json!("loss"))
    );
    assert_eq!(thrown.get("path"), None);
}
