//! Target: the index of shards.

use std::rc::Rc;

use serde_json::json;
use tabtune::bundle::{FileFormat, inspect};
use tabtune::formats::{ByteSource, MemorySource};

use super::super::mutation::mutated_json;
use super::{Target, hostile, in_short};
use crate::hostile::shard;

const INDEX_WORDS: [&str; 12] = [
    "\"weight_map\":{",
    "\"metadata\":{\"total_size\":8}",
    "a.safetensors",
    "b.safetensors",
    "c.safetensors",
    ".safetensors",
    "\"a.0\":\"a.safetensors\",",
    "null",
    "{",
    "}",
    "[[[[",
    "\\u0000",
];

/// Every index has the same shards: `a.safetensors` and `b.safetensors` with two tensors each, `c.safetensors` with one of `a`.
fn index_answer(file: &[u8]) -> String {
    let shards = ["a", "b"].map(|name| {
        shard(
            &format!("{name}.safetensors"),
            &json!([format!("{name}.0"), format!("{name}.1")]),
        )
    });
    let twice = shard("c.safetensors", &json!(["a.0"]));
    let siblings = || {
        Ok(shards
            .into_iter()
            .chain([twice])
            .map(|shard| Rc::new(shard) as Rc<dyn ByteSource>)
            .collect())
    };
    in_short(&inspect(
        &MemorySource::new("f.index.json", file),
        Some(FileFormat::Index),
        siblings,
        true,
    ))
}

fn index_seeds() -> Vec<Vec<u8>> {
    let whole = json!({"metadata": {"total_size": 16}, "weight_map": {"a.0": "a.safetensors", "a.1": "a.safetensors", "b.0": "b.safetensors", "b.1": "b.safetensors"}});
    let mut seeds = hostile("index");
    seeds.extend([
        whole.to_string().into_bytes(),
        serde_json::to_vec_pretty(&whole).unwrap(),
        b"{\"weight_map\":{}}".to_vec(),
    ]);
    seeds
}

pub const INDEX: Target = Target {
    name: "index",
    seeds: index_seeds,
    words: &INDEX_WORDS,
    change: mutated_json,
    answer: index_answer,
    answers: 11,
};
