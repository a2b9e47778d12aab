//! State dicts to JSON and back.

use std::rc::Rc;

use half::{bf16, f16};
use proptest::prelude::*;
use serde_json::{Value, json};
use tabtune::export::JsonEncoding;
use tabtune::formats::{ByteSource, MemorySource};
use tabtune::portable::open_json;
use tabtune::state::{
    Bytes, CheckResult, Identity, PortableModelImportRequest, PortableModelStateDict, SourceWord,
    Tensor,
};
use tabtune_tests::block_on;

use super::state_g::{Counting, assert_same, import, plain, state_g, told, written};

fn exported(state: &PortableModelStateDict, encoding: JsonEncoding) -> Vec<u8> {
    let stream = block_on(state.export_json(
        "g.state_dict.json",
        Some(&state.manifest()),
        encoding,
        false,
    ))
    .unwrap();
    let [(_, bytes)] = <[_; 1]>::try_from(written(stream)).unwrap();
    bytes
}

fn source(bytes: &[u8]) -> MemorySource {
    MemorySource::new("g.state_dict.json", bytes)
}

/// Lines 3 and 9 of ./README.md.
#[test]
fn state_g_through_json() {
    for encoding in [JsonEncoding::Numbers, JsonEncoding::Base64] {
        let bytes = exported(&state_g(), encoding);
        // Any parser reads it.
        let document: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(document["format"], "tabtune.torch_state_dict_json");
        assert_eq!(
            document["state_dict"]
                .as_object()
                .unwrap()
                .keys()
                .collect::<Vec<_>>(),
            state_g().tensors().keys().collect::<Vec<_>>()
        );
        assert!(bytes.ends_with(b"}}\n") && !bytes[..bytes.len() - 1].contains(&b'\n'));
        if encoding == JsonEncoding::Numbers {
            assert_eq!(
                document["state_dict"]["head.weight"],
                json!({ "dtype": "F32", "shape": [2], "values": [0.5, -0.5] })
            );
            assert_eq!(
                document["state_dict"]["head.weight:step"],
                json!({ "dtype": "U64", "shape": [], "values": [7] })
            );
        }
        let imported = import(&open_json(&source(&bytes)).unwrap());
        assert_eq!(
            imported.state_dict.source_format,
            SourceWord::TorchStateDictJson
        );
        assert_same(&imported.state_dict, &state_g());
        assert_eq!(imported.state_dict.traversal_records().count(), 7);
        let (m, _) = block_on(imported.state_dict.tensor("head.weight:m")).unwrap();
        assert_eq!(m.model_tree_path, ["decoder", "head", "m"]);
        assert!(
            ["weights", "optimizer", "assignment", "state"]
                .iter()
                .all(|name| imported.checks[name] == CheckResult::Verified)
        );
        assert_eq!(exported(&imported.state_dict, encoding), bytes);
    }
}

/// Line 15 of ./README.md.
#[test]
fn a_request_is_a_selection_after_the_import() {
    let request = json!({
        "selection": { "include_patterns": ["head.*"] },
        "key_remap": { "source_to_target": { "head.weight": "output.weight" }, "rename_state": true },
    });
    let request: PortableModelImportRequest = serde_json::from_value(request).unwrap();
    let opened = open_json(&source(&exported(&state_g(), JsonEncoding::Numbers))).unwrap();
    let at_once = block_on(opened.import(&request)).unwrap();
    let after = import(&opened)
        .state_dict
        .select_and_remap(&request)
        .unwrap();
    assert_same(&at_once.state_dict, &after.state_dict);
    assert_eq!(
        (at_once.report, at_once.warnings),
        (after.report, after.warnings)
    );
    assert_eq!(
        after.state_dict.tensors().keys().next().unwrap(),
        "output.weight"
    );
}

/// Line 28 of ./README.md: one bit of any value.
#[test]
fn one_bit_changes_its_digest() {
    let document: Value =
        serde_json::from_slice(&exported(&state_g(), JsonEncoding::Base64)).unwrap();
    for key in state_g().tensors().keys() {
        let mut changed = document.clone();
        let data = changed["state_dict"][key]["data"].as_str().unwrap();
        // The second digit has no bits below a byte.
        let other = if &data[1..2] == "A" { "Q" } else { "A" };
        changed["state_dict"][key]["data"] = format!("{}{other}{}", &data[..1], &data[2..]).into();
        let found = told(open_json(&source(changed.to_string().as_bytes())));
        let name = if key.contains(':') {
            "optimizer"
        } else {
            "weights"
        };
        assert_eq!(
            found,
            [
                ("digest.mismatch", name.to_string()),
                ("digest.mismatch", "state".to_string())
            ],
            "{key}"
        );
    }
    let mut changed = document.clone();
    changed["manifest"]["groups"][0]["optimizer"]["momentum"] = json!(0.8);
    assert_eq!(
        told(open_json(&source(changed.to_string().as_bytes())))[0],
        ("digest.mismatch", "assignment".to_string())
    );
    let mut changed = document;
    changed["manifest"]["tensors"]
        .as_object_mut()
        .unwrap()
        .remove("head.weight:m");
    assert_eq!(
        told(open_json(&source(changed.to_string().as_bytes()))),
        [("manifest.tensor.unlisted", "head.weight:m".to_string())]
    );
}

/// Returns the values as they are written in the JSON, without spaces.
fn values(state: &PortableModelStateDict) -> String {
    let text = String::from_utf8(exported(state, JsonEncoding::Numbers)).unwrap();
    let from = text.rfind("\"values\":[").unwrap() + 10;
    text[from..text.rfind("]}}}").unwrap()].to_string()
}

#[test]
fn numbers_are_as_short_as_they_can_be() {
    let f32s = |values: &[f32]| {
        let bytes = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        plain(&[("a", "F32", &[values.len() as u64], bytes)])
    };
    let given = [
        0.0,
        -0.0,
        1.0,
        -0.5,
        0.1,
        16777216.0,
        1e21,
        f32::MAX,
        f32::MIN_POSITIVE,
        1e-45,
        1000.0,
        0.002,
        0.0125,
        123.456,
    ];
    let expected =
        "0,-0,1,-0.5,0.1,16777216,1e21,3.4028235e38,1.1754944e-38,1e-45,1e3,2e-3,0.0125,123.456";
    assert_eq!(values(&f32s(&given)), expected);
    assert_eq!(values(&plain(&[("a", "BOOL", &[2], vec![1, 0])])), "1,0");
    assert_eq!(
        values(&plain(&[("a", "I8", &[2], vec![0x80, 0x7f])])),
        "-128,127"
    );
    assert_eq!(
        values(&plain(&[(
            "a",
            "I64",
            &[1],
            (1i64 - (1 << 53)).to_le_bytes().to_vec()
        )])),
        "-9007199254740991"
    );
    assert_eq!(values(&plain(&[("a", "F16", &[0, 3], vec![])])), "");
}

/// Line 30 of ./README.md: every finite half, and the smallest and largest f32, come back bit for bit.
#[test]
fn every_half_comes_back() {
    let halves = |finite: fn(u16) -> bool| {
        (0..=u16::MAX)
            .filter(|bits| finite(*bits))
            .flat_map(u16::to_le_bytes)
            .collect::<Vec<u8>>()
    };
    let (f16s, bf16s) = (
        halves(|bits| f16::from_bits(bits).is_finite()),
        halves(|bits| bf16::from_bits(bits).is_finite()),
    );
    let edges = [
        f32::MAX,
        -f32::MAX,
        1e-45,
        -1e-45,
        f32::MIN_POSITIVE,
        f32::from_bits(0x007f_ffff),
    ];
    let state = plain(&[
        ("a", "F16", &[f16s.len() as u64 / 2], f16s.clone()),
        ("b", "BF16", &[bf16s.len() as u64 / 2], bf16s.clone()),
        (
            "c",
            "F32",
            &[6],
            edges.iter().flat_map(|value| value.to_le_bytes()).collect(),
        ),
    ]);
    assert_same(
        &import(&open_json(&source(&exported(&state, JsonEncoding::Numbers))).unwrap()).state_dict,
        &state,
    );
}

proptest! {
    #[test]
    fn f32s_come_back(bits in proptest::collection::vec(any::<u32>(), 0..200)) {
        let finite: Vec<f32> = bits.into_iter().map(f32::from_bits).filter(|value| value.is_finite()).collect();
        let bytes = finite.iter().flat_map(|value| value.to_le_bytes()).collect();
        let state = plain(&[("a", "F32", &[finite.len() as u64], bytes)]);
        let written = exported(&state, JsonEncoding::Numbers);
        let read: Value = serde_json::from_slice(&written).unwrap();
        let read: Vec<f64> = serde_json::from_value(read["state_dict"]["a"]["values"].clone()).unwrap();
        prop_assert_eq!(read.len(), finite.len());
        for (read, value) in read.iter().zip(&finite) {
            prop_assert_eq!((*read as f32).to_bits(), value.to_bits());
        }
        assert_same(&import(&open_json(&source(&written)).unwrap()).state_dict, &state);
    }
}

/// Line 30 of ./README.md: values that JSON's numbers cannot hold.
#[test]
fn numbers_hold_no_more_than_they_can() {
    let refused = |tensor: (&str, &str, &[u64], Vec<u8>), encoding, allow| {
        block_on(
            plain(&[("ok", "F32", &[1], vec![0; 4]), tensor])
                .export_json("s.json", None, encoding, allow),
        )
        .unwrap_err()
    };
    let infinite = || ("x", "BF16", &[3][..], vec![0, 0, 0, 0, 0x80, 0x7f]);
    for (encoding, allow) in [
        (JsonEncoding::Numbers, false),
        (JsonEncoding::Numbers, true),
        (JsonEncoding::Base64, false),
    ] {
        let error = refused(infinite(), encoding, allow);
        assert!(error.to_string().contains("index 2"), "{error}");
        assert_eq!(
            told::<()>(Err(error)),
            [("export.json.non-finite", "x".to_string())]
        );
    }
    let numbers = |dtype: &str, bytes: Vec<u8>| {
        told::<()>(Err(refused(
            ("x", dtype, &[1], bytes),
            JsonEncoding::Numbers,
            false,
        )))[0]
            .0
    };
    assert_eq!(numbers("F64", vec![0; 8]), "json.dtype");
    assert_eq!(numbers("F8_E4M3", vec![0]), "json.dtype");
    assert_eq!(
        numbers("U64", (1u64 << 53).to_le_bytes().to_vec()),
        "json.value.range"
    );
    assert_eq!(
        numbers("I64", (-1i64 << 53).to_le_bytes().to_vec()),
        "json.value.range"
    );
    assert_eq!(numbers("BOOL", vec![2]), "safetensors.payload.bool");
    // Blocks of Q4_0 whose scale is infinite.
    let mut blocks = vec![0x88; 36];
    blocks[18..20].copy_from_slice(&f16::INFINITY.to_le_bytes());
    blocks[0..2].fill(0);
    blocks[20] = 0x99;
    let error = refused(
        ("x", "GGML:Q4_0", &[2, 32], blocks),
        JsonEncoding::Base64,
        false,
    );
    assert!(error.to_string().contains("index 32"), "{error}");
}

/// Line 30 of ./README.md: the limit is checked before anything is read or written.
#[test]
fn too_large_a_state_is_refused_unread() {
    let file = Counting::new("w", vec![0; 34 << 20]);
    let state = |bytes: u64| {
        let place = Bytes::of_source(file.clone(), 0, bytes);
        let entry = Tensor::parameter("w", "U8", &[bytes], place);
        PortableModelStateDict::new(
            Identity::default(),
            SourceWord::Tabtune,
            [("w".to_string(), entry)].into(),
            Vec::new(),
        )
        .unwrap()
    };
    let answer =
        block_on(state(34 << 20).export_json("s.json", None, JsonEncoding::Numbers, false));
    assert_eq!(told(answer)[0].0, "export.json.too-large");
    assert_eq!(file.take(), []);
    // The values alone would fit.
    let answer =
        block_on(state(32 << 20).export_json("s.json", None, JsonEncoding::Numbers, false));
    assert_eq!(told(answer)[0].0, "export.json.too-large");
    assert!(
        block_on(state(1000).export_json("s.json", None, JsonEncoding::Numbers, false)).is_ok()
    );
}

#[test]
fn a_pickle_is_no_state_dict() {
    for mark in [b"PK\x03\x04rest", b"\x80\x02}q\x00X.."] {
        let file: Rc<dyn ByteSource> = Rc::new(MemorySource::new("model.pt", *mark));
        let error = open_json(&file).unwrap_err();
        assert!(error.to_string().contains("safetensors"), "{error}");
        assert_eq!(error.code(), "format.unsupported");
    }
}

/// Long lists are read as short ones are, including their faults.
#[test]
fn lists_of_any_length_are_read() {
    for length in [1, 8, 9, 10, 11, 4099] {
        let text = |values: &[String]| {
            let list = values.join(" ,\n");
            format!(
                r#"{{"format":"tabtune.torch_state_dict_json","version":1,"encoding":"numbers","state_dict":{{"w":{{"dtype":"U16",
                "shape":[{length}],"values":[ {list} ]}}}}}}"#
            )
        };
        let values: Vec<String> = (0..length).map(|n: u16| n.to_string()).collect();
        let state = plain(&[(
            "w",
            "U16",
            &[u64::from(length)],
            (0..length).flat_map(u16::to_le_bytes).collect(),
        )]);
        assert_same(
            &import(&open_json(&source(text(&values).as_bytes())).unwrap()).state_dict,
            &state,
        );
        for wrong in ["null", "\"1,2\"", "[1,2]", "{\"a\":[1,2]}"] {
            let mut values = values.clone();
            *values.last_mut().unwrap() = wrong.to_string();
            let error = open_json(&source(text(&values).as_bytes())).unwrap_err();
            assert_eq!(error.code(), "json.value.type", "{wrong}");
            assert!(
                error.to_string().contains(&format!("item {}", length - 1)),
                "{error}"
            );
        }
        let longer = [&values[..], &["1".to_string()]].concat();
        assert_eq!(
            open_json(&source(text(&longer).as_bytes()))
                .unwrap_err()
                .code(),
            "json.tensor.length"
        );
    }
}

#[test]
fn a_plain_document_is_a_plain_state() {
    let text = r#"{"format":"tabtune.torch_state_dict_json","version":1,"encoding":"numbers","state_dict":
        {"b.weight:m":{"dtype":"F32","shape":[1],"values":[1]},"a":{"dtype":"U8","shape":[],"values":[9]}}}"#;
    let imported = import(&open_json(&source(text.as_bytes())).unwrap());
    let state = plain(&[
        ("a", "U8", &[], vec![9]),
        ("b.weight:m", "F32", &[1], 1f32.to_le_bytes().to_vec()),
    ]);
    assert_same(&imported.state_dict, &state);
    assert_eq!(imported.checks["weights"], CheckResult::Absent);
}
