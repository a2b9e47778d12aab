//! The manifest as a document: reading it back, refusals, and the comparison with files.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tabtune::formats::{Digest, HubOrigin};
use tabtune::state::{
    AssetAccount, Base, BaseFile, Identity, ManifestFile, StateManifest, StatedDigests,
    TemplateAccount, TensorRecord, TokenizerAccount, TokenizerRecord,
};

use super::vectors::{refusals, state_g, told, vectors};

/// Returns the manifest of state G, with its weights in `model.safetensors` and its state in `optimizer.safetensors`.
pub fn manifest() -> StateManifest {
    let (tensors, groups) = state_g();
    let identity: Identity =
        serde_json::from_value(vectors()["vector3"]["identity"].clone()).unwrap();
    let record = |(key, tensor): (String, tabtune::state::ModelStateTensorManifest)| {
        let file = if key.contains(':') {
            "optimizer.safetensors"
        } else {
            "model.safetensors"
        };
        let record = TensorRecord {
            path: tensor.model_tree_path,
            role: tensor.role,
            dtype: tensor.dtype,
            shape: tensor.shape,
            file: file.into(),
        };
        (key, record)
    };
    StateManifest::new(identity, tensors.into_iter().map(record).collect(), groups)
}

/// Returns the same manifest with every optional field.
pub fn whole() -> StateManifest {
    let digest = Some(Digest::of(b"x"));
    let record: TokenizerRecord =
        serde_json::from_str(vectors()["vector3"]["record_text"].as_str().unwrap()).unwrap();
    let sha256 = Digest::of(b"{}");
    StateManifest {
        base: Some(Base {
            name: "llama".into(),
            format: "gguf".into(),
            files: vec![BaseFile {
                name: "a.gguf".into(),
                bytes: (1 << 53) - 1,
                header_sha256: digest,
                sha256: None,
                pieces: None,
            }],
            weights_digest: None,
            hub: Some(HubOrigin {
                repo: "owner/name".into(),
                revision: Some("main".into()),
                commit: "0".repeat(40),
            }),
            merged_adapter: Vec::new(),
            verified: None,
        }),
        tokenizer: Some(TokenizerAccount {
            record,
            assets: vec![AssetAccount {
                name: "tokenizer.json".into(),
                bytes: 2,
                sha256,
            }],
            templates: vec![TemplateAccount {
                name: "default".into(),
                sha256,
            }],
        }),
        profile_contract: Some(json!({"z": [1, 2.5, null], "a": {"b": "c"}})),
        preferred_formats: Some(vec!["safetensors".into(), "gguf".into()]),
        digests: Some(StatedDigests {
            weights: digest,
            state: digest,
            ..StatedDigests::default()
        }),
        files: Some(vec![ManifestFile {
            name: "model.safetensors".into(),
            bytes: 24,
            pieces: vec![sha256.to_string()],
        }]),
        ..manifest()
    }
}

fn value(manifest: &StateManifest) -> Value {
    serde_json::from_str(&manifest.to_text().unwrap()).unwrap()
}

/// Returns code and subject of the faults of the document that `change` makes.
#[track_caller]
fn wrong(change: impl FnOnce(&mut Value)) -> Vec<(&'static str, String)> {
    let mut document = value(&whole());
    change(&mut document);
    told(StateManifest::read(
        &document.to_string(),
        "a/model.safetensors",
    ))
}

#[test]
fn portable_manifest_comes_back() {
    for one in [manifest(), whole()] {
        let text = one.to_text().unwrap();
        assert!(
            text.ends_with("}\n") && text.contains("\n  \"version\": 1,\n"),
            "{text}"
        );
        let read = StateManifest::read(&text, "state").unwrap();
        assert_eq!(read, one);
        assert_eq!(read.to_text().unwrap(), text);
        assert_eq!(read.state_tensors(), state_g().0);
        // The layout of the text is free.
        assert_eq!(
            StateManifest::read(&value(&one).to_string(), "state").unwrap(),
            one
        );
    }
    let bare = value(&manifest());
    let keys: Vec<&String> = bare.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        ["format", "version", "identity", "tensors", "groups"],
        "what is absent is not written"
    );
    assert_eq!(bare["groups"], serde_json::to_value(state_g().1).unwrap());
    assert_eq!(bare["tensors"]["head.weight:m"]["role"], "state:m");
    let mut broken = manifest();
    broken.groups[0]
        .optimizer
        .hyperparameters
        .insert("eps".into(), f64::NAN);
    assert_eq!(broken.to_text().unwrap_err().code(), "config.invalid");
}

#[test]
fn portable_manifest_is_read_strictly() {
    let json = |path: &str| vec![("manifest.json", path.to_string())];
    assert_eq!(
        wrong(|document| document["format"] = json!("tabtune.checkpoint")),
        json("format")
    );
    assert_eq!(
        wrong(|document| document["version"] = json!(0)),
        json("version")
    );
    assert_eq!(
        wrong(|document| document["version"] = json!(1.5)),
        json("version")
    );
    assert_eq!(
        wrong(|document| document["unknown"] = json!(1)),
        json("unknown")
    );
    assert_eq!(
        wrong(|document| document["identity"]["unknown"] = json!(1)),
        json("identity")
    );
    for field in ["identity", "tensors", "groups"] {
        assert_eq!(
            wrong(|document| document[field] = Value::Null),
            json(field),
            "{field}"
        );
    }
    let tensor = "tensors/head.weight";
    for (field, bad) in [
        ("role", json!("weight")),
        ("shape", json!([-1])),
        ("shape", json!([1.5])),
        ("shape", json!([1u64 << 53])),
        ("shape", json!([1, 1, 1, 1, 1, 1, 1, 1, 1])),
        ("dtype", json!(1)),
        ("path", json!("head")),
        ("file", Value::Null),
        ("offset", json!(1)),
        ("role", json!({"parameter": null})),
    ] {
        assert_eq!(
            wrong(|document| document["tensors"]["head.weight"][field] = bad.clone()),
            json(tensor),
            "{field} {bad}"
        );
    }
    assert_eq!(
        wrong(|document| document["tensors"][""] = document["tensors"]["head.weight"].clone()),
        json("tensors/")
    );
    for (field, bad) in [
        ("optimizer", json!({"kind": "sgd", "momentum": "0.9"})),
        ("optimizer", json!({"momentum": 0.9})),
        ("class", json!("other")),
        ("applied_steps", json!(-1)),
        (
            "members",
            json!([{"parameter": "p", "state": {"moment": "p:moment"}}]),
        ),
        ("residency", json!(1)),
        ("owner", json!("me")),
    ] {
        assert_eq!(
            wrong(|document| document["groups"][1][field] = bad.clone()),
            json("groups/1"),
            "{field} {bad}"
        );
    }
    assert_eq!(
        wrong(|document| document["groups"][1]["scheduler"]["start"] = json!(1u64 << 53)),
        json("groups/1/scheduler")
    );
    assert_eq!(
        wrong(|document| document["groups"][1]["scheduler"]["config"]["x"] = json!(u64::MAX)),
        json("groups/1/scheduler")
    );
    let fields = json!([
        ["head", "weight"],
        "parameter",
        "F32",
        [2],
        "model.safetensors"
    ]);
    assert_eq!(
        wrong(|document| document["tensors"]["head.weight"] = fields.clone()),
        json(tensor),
        "a record is no list of its fields"
    );
    assert_eq!(
        wrong(|document| document["groups"][1]["parameter_semantics"] = json!([1, 1, true])),
        json("groups/1")
    );
    assert_eq!(
        wrong(|document| document["digests"] = json!([])),
        json("digests")
    );
    assert_eq!(
        wrong(|document| document["digests"]["weights"] = json!("AB")),
        json("digests")
    );
    assert_eq!(
        wrong(|document| document["digests"]["other"] = json!(Digest::of(b"").to_string())),
        json("digests")
    );
    assert_eq!(
        wrong(|document| document["files"][0]["pieces"][0] = json!("x")),
        json("files")
    );
    assert_eq!(
        wrong(|document| document["base"]["files"][0]["bytes"] = json!(1u64 << 53)),
        json("base/files")
    );
    assert_eq!(
        wrong(|document| document["tokenizer"]["record"]["eos"] = json!(2)),
        json("tokenizer")
    );
    assert_eq!(
        wrong(|document| document["profile_contract"] = json!([-(1i64 << 53)])),
        json("profile_contract")
    );
    assert_eq!(
        wrong(|document| document["profile_contract"] = json!("x".repeat(64 << 10))),
        json("profile_contract")
    );
    for text in [
        "",
        "{",
        "[]",
        "null",
        "{\"format\": \"tabtune.manifest\"} x",
    ] {
        assert_eq!(told(StateManifest::read(text, "state")), json(""), "{text}");
    }
}

#[test]
fn portable_manifest_refuses_doubled_keys_depth_and_newer_versions() {
    let text = manifest().to_text().unwrap();
    let doubled = text.replace("\"head.weight\": {", "\"embed.weight\": {");
    assert_eq!(
        told(StateManifest::read(&doubled, "state")),
        [("manifest.json", "tensors/embed.weight".to_string())]
    );
    let doubled = text.replace(
        "\"momentum\": 0.9",
        "\"momentum\": 0.9, \"moment\\u0075m\": 0.5",
    );
    assert_ne!(doubled, text);
    assert_eq!(
        told(StateManifest::read(&doubled, "state"))[0].0,
        "manifest.json"
    );
    let mut deep = manifest();
    // The document is the first level, the value of the contract the second.
    for (levels, good) in [(31, true), (32, false)] {
        let mut value = json!(1);
        for _ in 0..levels {
            value = json!([value]);
        }
        deep.profile_contract = Some(value);
        assert_eq!(
            StateManifest::read(&deep.to_text().unwrap(), "state").is_ok(),
            good,
            "{levels}"
        );
    }
    // A newer version may have any fields.
    let newer = json!({"format": "tabtune.manifest", "version": 2, "shape": "other"}).to_string();
    let refusal = refusals(StateManifest::read(&newer, "a/tabtune.manifest.json")).remove(0);
    assert_eq!(
        (refusal.code, refusal.artifact.as_str()),
        ("manifest.version", "tabtune.manifest.json")
    );
    assert_eq!(
        (refusal.expected.as_deref(), refusal.found.as_deref()),
        (Some("at most 1"), Some("2"))
    );
}

#[test]
fn portable_manifest_knows_three_residencies() {
    let residency = |id: &str| ("state.group.residency", id.to_string());
    assert_eq!(
        wrong(|document| document["groups"][0]["residency"] = json!("gpu")),
        [residency("embedding")]
    );
    let both = |document: &mut Value| {
        document["groups"][0]["residency_policy"]["idle"] = json!("disk");
        document["groups"][1]["residency_policy"]["step"] = json!("Device");
    };
    assert_eq!(
        wrong(both),
        [residency("decoder.head"), residency("embedding")]
    );
}

#[test]
fn portable_manifest_is_compared_with_the_files() {
    let one = manifest();
    let found: BTreeMap<String, (String, Vec<u64>, String)> = one
        .tensors
        .iter()
        .map(|(key, record)| {
            (
                key.clone(),
                (
                    record.dtype.clone(),
                    record.shape.clone(),
                    record.file.clone(),
                ),
            )
        })
        .collect();
    one.check_against(&found, "state").unwrap();

    let mut other = found.clone();
    other.remove("head.weight");
    other.remove("embed.weight:step");
    other.get_mut("embed.weight").unwrap().1 = vec![4];
    other.get_mut("head.weight:m").unwrap().0 = "BF16".into();
    other.insert(
        "new".into(),
        ("F32".into(), vec![1], "model.safetensors".into()),
    );
    other.insert(
        "also".into(),
        ("F32".into(), vec![1], "model.safetensors".into()),
    );
    let finding = |code: &'static str, subject: &str| (code, subject.to_string());
    let expected = [
        finding("manifest.tensor.missing", "embed.weight:step"),
        finding("manifest.tensor.missing", "head.weight"),
        finding("manifest.tensor.unlisted", "also"),
        finding("manifest.tensor.unlisted", "new"),
        finding("manifest.tensor.mismatch", "embed.weight"),
        finding("manifest.tensor.mismatch", "head.weight:m"),
    ];
    assert_eq!(told(one.check_against(&other, "state")), expected);
    let mismatch = refusals(one.check_against(&other, "state")).swap_remove(4);
    assert_eq!(
        (mismatch.expected.as_deref(), mismatch.found.as_deref()),
        (Some("F32 [2, 2]"), Some("F32 [4]"))
    );

    // A missing optimizer file is not a missing tensor, and another name of the single file is not a fault.
    let weights: BTreeMap<_, _> = found
        .iter()
        .filter(|(key, _)| !key.contains(':'))
        .map(|(key, one)| (key.clone(), one.clone()))
        .collect();
    assert_eq!(
        one.absent_optimizer_files(&weights)
            .into_iter()
            .collect::<Vec<_>>(),
        ["optimizer.safetensors"]
    );
    assert!(one.absent_optimizer_files(&found).is_empty());
    one.check_against(&weights, "state").unwrap();
    let renamed = found.iter().map(|(key, (dtype, shape, file))| {
        (
            key.clone(),
            (dtype.clone(), shape.clone(), format!("my-{file}")),
        )
    });
    one.check_against(&renamed.collect(), "state").unwrap();
    // State in the file of the weights is reported as missing.
    let mut single = manifest();
    single
        .tensors
        .values_mut()
        .for_each(|record| record.file = "model.safetensors".into());
    assert_eq!(told(single.check_against(&weights, "state")).len(), 5);
    // Shards are bound to their names by the index.
    let mut shards = manifest();
    shards.tensors.get_mut("head.weight").unwrap().file = "model-00002-of-00002.safetensors".into();
    assert_eq!(
        told(shards.check_against(&found, "state")),
        [finding("manifest.tensor.mismatch", "head.weight")]
    );
}
