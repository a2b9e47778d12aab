//! The vectors of golden/digests.json. State G is the second: an embedding under SGD with momentum, a head under AdamW.

use std::collections::BTreeMap;

use serde_json::Value;
use tabtune::Error;
use tabtune::error::Refusal;
use tabtune::state::{ModelStateGroupAssignment, ModelStateTensorManifest};

pub fn vectors() -> Value {
    let path = format!("{}/golden/digests.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

pub fn hex(text: &Value) -> Vec<u8> {
    let text = text.as_str().unwrap();
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

/// A tensor of the vectors with its stored bytes and leaf.
pub struct Recorded {
    pub tensor: ModelStateTensorManifest,
    pub bytes: Vec<u8>,
    pub leaf: String,
}

pub fn recorded(list: &Value) -> Vec<Recorded> {
    let one = |entry: &Value| {
        let shape: Vec<u64> = entry["shape"]
            .as_array()
            .unwrap()
            .iter()
            .map(|dim| dim.as_u64().unwrap())
            .collect();
        let tensor = ModelStateTensorManifest::of_name(
            entry["name"].as_str().unwrap(),
            entry["dtype"].as_str().unwrap(),
            &shape,
        );
        Recorded {
            tensor,
            bytes: hex(&entry["bytes_hex"]),
            leaf: entry["leaf"].as_str().unwrap().to_string(),
        }
    };
    list.as_array().unwrap().iter().map(one).collect()
}

pub type Tensors = BTreeMap<String, ModelStateTensorManifest>;

/// Returns state G without its values.
pub fn state_g() -> (Tensors, Vec<ModelStateGroupAssignment>) {
    let vector = &vectors()["vector2"];
    let all = recorded(&vector["parameters"])
        .into_iter()
        .chain(recorded(&vector["state"]));
    (
        all.map(|one| (one.tensor.state_key.clone(), one.tensor))
            .collect(),
        serde_json::from_value(vector["groups"].clone()).unwrap(),
    )
}

/// Returns the refusals of an error.
#[track_caller]
pub fn refusals<T>(answer: Result<T, Error>) -> Vec<Refusal> {
    match answer {
        Err(Error::Refused(list)) => list,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("nothing was refused"),
    }
}

/// Returns code and subject of each refusal.
#[track_caller]
pub fn told<T>(answer: Result<T, Error>) -> Vec<(&'static str, String)> {
    refusals(answer)
        .into_iter()
        .map(|one| (one.code, one.subject.unwrap_or_default()))
        .collect()
}
