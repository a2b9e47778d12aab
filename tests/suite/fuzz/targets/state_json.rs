//! Target: JSON state dicts.

use serde_json::json;
use tabtune::bundle::FileFormat;

use super::super::mutation::mutated_json;
use super::{Target, hostile, in_short, inspected};

const STATE_WORDS: [&str; 22] = [
    "\"format\":\"tabtune.torch_state_dict_json\",",
    "\"version\":1,",
    "\"encoding\":\"base64\",",
    "\"encoding\":\"numbers\",",
    "\"values\":[1,2]",
    "\"data\":\"AACAPw==\"",
    "\"dtype\":\"F16\",",
    "\"dtype\":\"U64\",",
    "BF16",
    "I8",
    "BOOL",
    "F64",
    "\"shape\":[2],",
    "65504",
    "65520",
    "3.4028235e38",
    "1e-46",
    "-0.0",
    "0.1",
    "null",
    "\"t\":{}",
    "=",
];

fn state_seeds() -> Vec<Vec<u8>> {
    let document = |encoding: &str, tensors: serde_json::Value| {
        json!({"format": "tabtune.torch_state_dict_json", "version": 1, "encoding": encoding, "state_dict": tensors})
            .to_string()
            .into_bytes()
    };
    let mut seeds = hostile("json");
    for (dtype, values) in [
        ("F32", "[0.5,-1]"),
        ("F16", "[0.5,65504]"),
        ("BF16", "[1,2]"),
        ("F64", "[0.1,1e300]"),
        ("I8", "[-128,127]"),
        ("U64", "[0,18446744073709551615]"),
        ("BOOL", "[0,1]"),
    ] {
        let values: serde_json::Value = serde_json::from_str(values).unwrap();
        seeds.push(document(
            "numbers",
            json!({"t": {"dtype": dtype, "shape": [2], "values": values}}),
        ));
    }
    seeds.push(document(
        "base64",
        json!({"a": {"dtype": "F32", "shape": [], "data": "AACAPw=="}, "b": {"dtype": "U8", "shape": [3], "data": "AAEC"}}),
    ));
    seeds
}

pub const STATE_JSON: Target = Target {
    name: "json-state-dict",
    seeds: state_seeds,
    words: &STATE_WORDS,
    change: mutated_json,
    answer: |file| in_short(&inspected(FileFormat::Json, file)),
    answers: 13,
};
