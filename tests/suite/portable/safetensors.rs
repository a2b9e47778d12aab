//! State dicts to safetensors files and back.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tabtune::export::JsonEncoding;
use tabtune::formats::{MemorySource, SafetensorsFile};
use tabtune::portable::{open_json, open_safetensors};
use tabtune::state::{
    Bytes, CheckResult, Identity, ModelStateGroupAssignment, NonFinitePolicy,
    PortableModelImportRequest, PortableModelStateDict, SourceWord, Tensor,
};
use tabtune_tests::block_on;

use super::state_g::{assert_same, import, plain, sources, state_g, told, written};

fn exported(state: &PortableModelStateDict) -> Vec<(String, Vec<u8>)> {
    written(block_on(state.export_safetensors(&state.manifest())).unwrap())
}

/// Line 10 of ./README.md (without tokenizer), and line 2 with its optimizer file.
#[test]
fn state_g_through_two_files() {
    let files = exported(&state_g());
    assert_eq!(
        files
            .iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>(),
        ["model.safetensors", "optimizer.safetensors"]
    );
    for (name, bytes) in &files {
        safetensors::SafeTensors::deserialize(bytes)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let header =
            SafetensorsFile::open(&MemorySource::new(name.clone(), bytes.clone())).unwrap();
        assert_eq!(header.metadata.get("format").as_deref(), Some("pt"));
    }
    // In any order, and under any name.
    let mut shuffled = sources(&files);
    shuffled.reverse();
    let imported = import(&open_safetensors(shuffled).unwrap());
    assert_eq!(imported.state_dict.source_format, SourceWord::Safetensors);
    assert_same(&imported.state_dict, &state_g());
    assert_eq!(imported.warnings, []);
    assert_eq!(imported.checks["weights"], CheckResult::Absent);
    assert_eq!(exported(&imported.state_dict), files);
}

/// Line 2 of ./README.md, for the model file alone.
#[test]
fn the_model_file_alone_tells_the_groups() {
    let mut files = exported(&state_g());
    files.truncate(1);
    let opened = open_safetensors(sources(&files)).unwrap();
    let imported = import(&opened);
    assert_eq!(imported.manifest.unwrap().groups, state_g().groups());
    assert_eq!(
        imported
            .warnings
            .iter()
            .map(|warning| warning.code)
            .collect::<Vec<_>>(),
        ["manifest.optimizer.absent"]
    );
    assert_eq!(
        imported.state_dict.tensors().keys().collect::<Vec<_>>(),
        ["embed.weight", "head.weight"]
    );
    assert_eq!(imported.state_dict.groups(), []);
}

#[test]
fn an_optimizer_file_belongs_to_its_weights() {
    let files = exported(&state_g());
    let mut other = files.clone();
    let last = other[0].1.len() - 1;
    other[0].1[last] ^= 1;
    let opened = open_safetensors(sources(&other)).unwrap();
    let answer = block_on(opened.import(&PortableModelImportRequest::default()));
    assert_eq!(
        told(answer),
        [("manifest.optimizer.mismatch", "weights".to_string())]
    );
    // Without a manifest the state cannot be assigned.
    let bare = plain(&[("head.weight", "F32", &[2], vec![0; 8])]);
    let header = |files: &[(String, Vec<u8>)]| open_safetensors(sources(files)).unwrap();
    let mut beside = vec![(
        "w.safetensors".to_string(),
        without_manifest(&exported(&bare)[0].1),
    )];
    beside.push(files[1].clone());
    let imported = import(&header(&beside));
    assert_eq!(
        imported
            .warnings
            .iter()
            .map(|warning| warning.code)
            .collect::<Vec<_>>(),
        ["bundle.unused"]
    );
    assert_same(&imported.state_dict, &bare);
}

/// Returns the file without its metadata.
fn without_manifest(bytes: &[u8]) -> Vec<u8> {
    edited(bytes, |header| {
        header.as_object_mut().unwrap().remove("__metadata__");
    })
}

fn edited(bytes: &[u8], change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let end = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: Value = serde_json::from_slice(&bytes[8..end]).unwrap();
    change(&mut header);
    let text = header.to_string();
    [
        &(text.len() as u64).to_le_bytes(),
        text.as_bytes(),
        &bytes[end..],
    ]
    .concat()
}

#[test]
fn a_manifest_agrees_with_its_files() {
    let files = exported(&state_g());
    let with = |change: &dyn Fn(&mut Value)| {
        let model = edited(&files[0].1, |header| {
            let mut manifest: Value =
                serde_json::from_str(header["__metadata__"]["tabtune.manifest"].as_str().unwrap())
                    .unwrap();
            change(&mut manifest);
            header["__metadata__"]["tabtune.manifest"] = manifest.to_string().into();
        });
        told(open_safetensors(sources(&[
            ("model.safetensors".to_string(), model),
            files[1].clone(),
        ])))
    };
    assert_eq!(
        with(&|manifest| manifest["version"] = json!(2))[0].0,
        "manifest.version"
    );
    assert_eq!(
        with(&|manifest| manifest["tensors"]["head.weight"]["dtype"] = json!("I32"))[0].0,
        "manifest.tensor.mismatch"
    );
    assert_eq!(
        with(&|manifest| manifest["tensors"]["x"] = manifest["tensors"]["head.weight"].clone())[0]
            .0,
        "manifest.tensor.missing"
    );
    let without = |manifest: &mut Value| {
        manifest["tensors"]
            .as_object_mut()
            .unwrap()
            .remove("head.weight")
    };
    assert_eq!(
        with(&|manifest| drop(without(manifest)))[0].0,
        "manifest.tensor.unlisted"
    );
    let text = with(&|manifest| *manifest = json!([]));
    assert_eq!(text[0].0, "manifest.json");
}

/// Shards with `tabtune.manifest.json`, which states digests (part of lines 28 and 33 of ./README.md).
#[test]
fn shards_with_a_manifest() {
    let state = plain(&[
        ("a", "F32", &[2], vec![1; 8]),
        ("b", "BF16", &[3], vec![2; 6]),
    ]);
    let part = |key: &str| {
        let entry = state.tensors()[key].clone();
        let tensors = BTreeMap::from([(key.to_string(), entry)]);
        let one = PortableModelStateDict::new(
            Identity::default(),
            SourceWord::Tabtune,
            tensors,
            Vec::new(),
        )
        .unwrap();
        without_manifest(&exported(&one)[0].1)
    };
    let name = |n: u8| format!("model-0000{n}-of-00002.safetensors");
    let mut manifest: Value = serde_json::to_value(state.manifest()).unwrap();
    manifest["tensors"]["a"]["file"] = name(1).into();
    manifest["tensors"]["b"]["file"] = name(2).into();
    manifest["digests"] =
        json!({ "weights": block_on(state.weights_digest()).unwrap().to_string() });
    let files = |manifest: &Value| {
        vec![
            (name(2), part("b")),
            (
                "tabtune.manifest.json".to_string(),
                manifest.to_string().into_bytes(),
            ),
            (name(1), part("a")),
        ]
    };
    let imported = import(&open_safetensors(sources(&files(&manifest))).unwrap());
    assert_same(&imported.state_dict, &state);
    assert_eq!(
        (imported.checks["weights"], imported.checks["optimizer"]),
        (CheckResult::Verified, CheckResult::Absent)
    );
    // A part of it is not compared.
    let request: PortableModelImportRequest =
        serde_json::from_value(json!({ "selection": { "include_state_keys": ["a"] } })).unwrap();
    let opened = open_safetensors(sources(&files(&manifest))).unwrap();
    assert_eq!(
        block_on(opened.import(&request)).unwrap().checks["weights"],
        CheckResult::Subset
    );
    let renamed: PortableModelImportRequest =
        serde_json::from_value(json!({ "key_remap": { "source_to_target": { "a": "z" } } }))
            .unwrap();
    assert_eq!(
        block_on(opened.import(&renamed)).unwrap().checks["weights"],
        CheckResult::Verified
    );
    let header: PortableModelImportRequest =
        serde_json::from_value(json!({ "verify": "header" })).unwrap();
    assert_eq!(
        block_on(opened.import(&header)).unwrap().checks["weights"],
        CheckResult::Skipped
    );
    let mut flipped = files(&manifest);
    *flipped[0].1.last_mut().unwrap() ^= 1;
    let answer = block_on(
        open_safetensors(sources(&flipped))
            .unwrap()
            .import(&PortableModelImportRequest::default()),
    );
    assert_eq!(told(answer), [("digest.mismatch", "weights".to_string())]);
    manifest["tensors"]["a"]["file"] = name(2).into();
    manifest["tensors"]["b"]["file"] = name(1).into();
    let swapped = ["a", "b"].map(|key| ("manifest.tensor.mismatch", key.to_string()));
    assert_eq!(told(open_safetensors(sources(&files(&manifest)))), swapped);
}

/// Line 17 of ./README.md.
#[test]
fn blocks_are_no_safetensors_but_json() {
    let state = plain(&[
        ("a", "F32", &[1], vec![0; 4]),
        ("q", "GGML:Q4_0", &[32], (0..18).collect()),
    ]);
    let error = block_on(state.export_safetensors(&state.manifest())).unwrap_err();
    assert!(error.to_string().contains("Dequantise"), "{error}");
    assert_eq!(
        told::<()>(Err(error)),
        [("export.safetensors.quantised", "q".to_string())]
    );
    let (name, bytes) =
        written(block_on(state.export_json("s.json", None, JsonEncoding::Base64, false)).unwrap())
            .remove(0);
    assert_same(
        &import(&open_json(&MemorySource::new(name, bytes)).unwrap()).state_dict,
        &state,
    );
}

/// State words with the shapes of their tensors.
type Kept = &'static [(&'static str, &'static [u64])];

/// Line 18 of ./README.md.
#[test]
fn groups_of_every_kind_come_back() {
    let words: [(&str, Value, Kept); 5] = [
        (
            "adam",
            json!({ "learning_rate": 0.1, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8 }),
            &[("m", &[4, 2]), ("v", &[4, 2]), ("step", &[])],
        ),
        (
            "lars",
            json!({ "learning_rate": 0.1, "momentum": 0.9 }),
            &[("momentum", &[4, 2]), ("step", &[])],
        ),
        (
            "lamb",
            json!({ "learning_rate": 0.1, "beta1": 0.9, "beta2": 0.99, "eps": 1e-6 }),
            &[("m", &[4, 2]), ("v", &[4, 2]), ("step", &[])],
        ),
        (
            "adafactor",
            json!({ "learning_rate": 0.1 }),
            &[("row", &[4]), ("col", &[2]), ("step", &[])],
        ),
        (
            "apollo",
            json!({ "learning_rate": 0.1, "rank": 1 }),
            &[("m", &[4, 2]), ("v", &[4, 2]), ("step", &[])],
        ),
    ];
    let schedules = [
        json!({ "kind": "warmup", "config": { "warmup_steps": 3 }, "start": null }),
        json!({ "kind": "step", "config": { "every": 5, "factor": 0.5 }, "start": 2 }),
        json!({ "kind": "cosine", "config": { "learning_rate": 0.1, "total_steps": 100 }, "start": 40 }),
    ];
    let (mut tensors, mut groups) = (BTreeMap::new(), Vec::new());
    for (n, (kind, hyperparameters, kept)) in words.iter().enumerate() {
        let parameter = format!("{kind}.weight");
        let mut add = |key: &str, shape: &[u64]| {
            let step = key.ends_with(":step");
            let dtype = if step { "U64" } else { "F32" };
            let bytes = if step {
                7u64.to_le_bytes().to_vec()
            } else {
                vec![n as u8; 4 * shape.iter().product::<u64>() as usize]
            };
            let tensor = Tensor::of_name(key, dtype, shape, Bytes::host(bytes));
            tensors.insert(key.to_string(), tensor);
        };
        add(&parameter, &[4, 2]);
        kept.iter()
            .for_each(|(word, shape)| add(&format!("{parameter}:{word}"), shape));
        let state: BTreeMap<_, _> = kept
            .iter()
            .map(|(word, _)| (word, format!("{parameter}:{word}")))
            .collect();
        let mut optimizer = hyperparameters.clone();
        optimizer["kind"] = json!(kind);
        let group = json!({
            "group_id": format!("g.{kind}"), "class": "matrix", "model_tree_path": [kind], "optimizer": optimizer,
            "parameter_semantics": { "learning_rate_scale": 0.5, "frozen": n == 4 }, "scheduler": schedules[n % 3],
            "members": [{ "parameter": parameter, "state": state }], "applied_steps": 7 + n,
            "residency_policy": { "step": "device", "idle": "host" }, "residency": "offloaded",
        });
        groups.push(serde_json::from_value::<ModelStateGroupAssignment>(group).unwrap());
    }
    let state =
        PortableModelStateDict::new(Identity::default(), SourceWord::Tabtune, tensors, groups)
            .unwrap();
    assert_same(
        &import(&open_safetensors(sources(&exported(&state))).unwrap()).state_dict,
        &state,
    );
}

/// Line 30 of ./README.md: every dtype, bit for bit.
#[test]
fn every_dtype_survives() {
    let nan = f32::from_bits(0x7fc1_2345).to_le_bytes();
    let state = plain(&[
        ("bf16", "BF16", &[2], vec![0xc1, 0x7f, 0x00, 0x80]),
        ("bool", "BOOL", &[2], vec![0, 1]),
        ("c64", "C64", &[1], [nan, nan].concat()),
        ("f16", "F16", &[2], vec![0x01, 0x7e, 0x00, 0x80]),
        ("f32", "F32", &[2], [nan, (-0f32).to_le_bytes()].concat()),
        ("f4", "F4", &[4], vec![0x12, 0xf0]),
        ("f6", "F6_E2M3", &[4], vec![1, 2, 3]),
        ("f6b", "F6_E3M2", &[4], vec![4, 5, 6]),
        ("f64", "F64", &[1], f64::NAN.to_le_bytes().to_vec()),
        ("f8a", "F8_E4M3", &[3], vec![0x7f, 0x80, 1]),
        ("f8b", "F8_E5M2", &[3], vec![0x7c, 0x80, 1]),
        ("f8c", "F8_E8M0", &[3], vec![0xff, 0x80, 1]),
        ("f8d", "F8_E4M3FNUZ", &[1], vec![0x80]),
        ("f8e", "F8_E5M2FNUZ", &[1], vec![0x80]),
        ("i", "I16", &[0, 3], vec![]),
        ("i64", "I64", &[1], i64::MIN.to_le_bytes().to_vec()),
        ("i8", "I8", &[], vec![0x80]),
        ("i32", "I32", &[1], vec![0xff; 4]),
        ("u16", "U16", &[1], vec![0xff; 2]),
        ("u32", "U32", &[1], vec![0xff; 4]),
        ("u64", "U64", &[1], vec![0xff; 8]),
        ("u8", "U8", &[3], vec![0, 1, 0xff]),
    ]);
    let files = exported(&state);
    let imported = import(&open_safetensors(sources(&files)).unwrap());
    assert_same(&imported.state_dict, &state);
    let odd = [
        "bf16", "c64", "f16", "f32", "f64", "f8a", "f8b", "f8c", "f8d", "f8e",
    ];
    assert_eq!(
        imported
            .warnings
            .iter()
            .map(|warning| (warning.code, warning.subject.as_str()))
            .collect::<Vec<_>>(),
        odd.map(|key| ("tensor.non-finite", key))
    );
    assert_eq!(exported(&imported.state_dict), files);
    let refuse = PortableModelImportRequest {
        non_finite: NonFinitePolicy::Refuse,
        ..PortableModelImportRequest::default()
    };
    let answer = block_on(open_safetensors(sources(&files)).unwrap().import(&refuse));
    assert_eq!(
        told(answer),
        odd.map(|key| ("model.non-finite", key.to_string()))
    );
    let json = |allow| block_on(state.export_json("s.json", None, JsonEncoding::Base64, allow));
    assert_eq!(
        told(json(false)),
        odd.map(|key| ("export.json.non-finite", key.to_string()))
    );
    let (name, bytes) = written(json(true).unwrap()).remove(0);
    let again = import(&open_json(&MemorySource::new(name, bytes)).unwrap());
    assert_same(&again.state_dict, &state);
}

#[test]
fn a_bool_is_0_or_1() {
    let state = plain(&[("b", "BOOL", &[2], vec![0, 2])]);
    let opened = open_safetensors(sources(&exported(&state))).unwrap();
    let answer = block_on(opened.import(&PortableModelImportRequest::default()));
    assert_eq!(
        told(answer),
        [("safetensors.payload.bool", "b".to_string())]
    );
}

#[test]
fn a_state_needs_weights() {
    assert_eq!(
        told(open_safetensors(sources(&exported(&state_g())[1..])))[0].0,
        "bundle.empty"
    );
    let twice = [("a.safetensors", 1), ("b.safetensors", 2)].map(|(name, value)| {
        (
            name.to_string(),
            without_manifest(&exported(&plain(&[("w", "U8", &[1], vec![value])]))[0].1),
        )
    });
    assert_eq!(
        told(open_safetensors(sources(&twice))),
        [("index.tensor.duplicate", "w".to_string())]
    );
}
