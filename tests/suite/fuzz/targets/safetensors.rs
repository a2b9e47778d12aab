//! Target: the header of a safetensors file.

use tabtune::bundle::FileFormat;

use super::super::mutation::mutated_safetensors;
use super::{Target, hostile, in_short, inspected};

const SAFETENSORS_WORDS: [&str; 20] = [
    "\"dtype\":\"F32\",",
    "\"shape\":[0]",
    "\"data_offsets\":[0,0]",
    "\"__metadata__\":{\"a\":\"b\"},",
    "F64",
    "BF16",
    "F8_E4M3",
    "F4",
    "F6_E2M3",
    "C64",
    "BOOL",
    "I8",
    "U64",
    "\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},",
    "[",
    "]",
    ",",
    "{",
    "}",
    "null",
];

fn safetensors_seeds() -> Vec<Vec<u8>> {
    let of = |header: &str, data: usize| {
        [
            &(header.len() as u64).to_le_bytes(),
            header.as_bytes(),
            &vec![0; data],
        ]
        .concat()
    };
    let mut seeds = hostile("safetensors");
    let kinds = [
        "BOOL",
        "U8",
        "I8",
        "F8_E4M3",
        "F8_E5M2",
        "F8_E8M0",
        "F8_E4M3FNUZ",
        "F8_E5M2FNUZ",
        "U16",
        "I16",
        "F16",
        "BF16",
        "U32",
        "I32",
        "F32",
        "U64",
        "I64",
        "F64",
        "C64",
    ];
    let widths = [1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 8, 8, 8, 8];
    for (kind, width) in kinds.iter().zip(widths) {
        seeds.push(of(
            &format!(
                r#"{{"a.b":{{"dtype":"{kind}","shape":[2,3],"data_offsets":[0,{}]}}}}"#,
                6 * width
            ),
            6 * width,
        ));
    }
    let all = kinds.iter().zip(widths).scan(0, |at, (kind, width)| {
        *at += 2 * width;
        Some(format!(
            r#""{kind}":{{"dtype":"{kind}","shape":[2],"data_offsets":[{},{at}]}}"#,
            *at - 2 * width
        ))
    });
    let all: Vec<String> = all.collect();
    seeds.push(of(
        &format!(
            r#"{{"__metadata__":{{"format":"pt","k":"v"}},{}}}  "#,
            all.join(",")
        ),
        2 * widths.iter().sum::<usize>(),
    ));
    seeds
}

/// Every accepted file is accepted by the reference implementation too, with the same tensors.
fn safetensors_answer(file: &[u8]) -> String {
    let report = inspected(FileFormat::Safetensors, file);
    if report.stage != "open" {
        let reference = safetensors::SafeTensors::deserialize(file)
            .unwrap_or_else(|error| panic!("the reference refuses it: {error}"));
        assert_eq!(reference.len(), report.tensors);
        for own in &report.inventory {
            let other = reference
                .tensor(&own.name)
                .unwrap_or_else(|error| panic!("the reference: {error}"));
            let shape: Vec<u64> = other.shape().iter().map(|&dim| dim as u64).collect();
            assert_eq!(
                (own.dtype.as_str(), &own.shape),
                (other.dtype().to_string().as_str(), &shape),
                "{}",
                own.name
            );
        }
    }
    in_short(&report)
}

pub const SAFETENSORS: Target = Target {
    name: "safetensors-header",
    seeds: safetensors_seeds,
    words: &SAFETENSORS_WORDS,
    change: mutated_safetensors,
    answer: safetensors_answer,
    answers: 22,
};
