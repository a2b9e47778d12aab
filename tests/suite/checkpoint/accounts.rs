//! Tensors, groups and the tokenizer in `checkpoint.json`.

use serde_json::{Value, json};
use tabtune::Error;
use tabtune::checkpoint::MANIFEST;
use tabtune::formats::Digest;
use tabtune::state::TensorRole;
use tabtune_tests::{cpu, weights};

use super::{edited, file, opened, safetensors_of};
use crate::resume::{Files, LETTERS, config, go, resume, save, start};

/// Saves a run after two steps: norms frozen, the embedding trained by SGD, everything else by AdamW.
fn saved() -> Files {
    let groups = json!([
        {"pattern": "*norm*", "frozen": true}, {"pattern": "*embed*", "optimizer": {"type": "sgd", "momentum": 0.5}}, {"pattern": "*"}
    ]);
    let settings = config(
        &json!({"type": "adamw"}),
        "bf16",
        &json!({"type": "constant"}),
    )
    .overlaid(json!({"groups": groups}));
    let mut run = start(settings.unwrap(), &cpu().inner());
    go(&mut run, 2);
    save(&run)
}

fn document(files: &Files) -> Value {
    serde_json::from_slice(&files.iter().find(|(name, _)| name == MANIFEST).unwrap().1).unwrap()
}

#[test]
fn manifest_lists_every_tensor_of_the_files_and_the_tokenizer() {
    let mut files = saved();
    let said = document(&files);
    let mut listed = 0;
    for name in ["model.safetensors", "optimizer.safetensors"] {
        for (key, dtype, shape) in safetensors_of(file(&mut files, name)) {
            let tensor = &said["tensors"][&key];
            assert_eq!(
                (&tensor["dtype"], &tensor["shape"], &tensor["file"]),
                (&json!(dtype), &shape, &json!(name)),
                "{key}"
            );
            let path: Vec<&str> = tensor["path"]
                .as_array()
                .unwrap()
                .iter()
                .map(|part| part.as_str().unwrap())
                .collect();
            assert_eq!(path.join("."), key.replace(':', "."));
            let role = key
                .rsplit_once(':')
                .map_or("parameter".to_string(), |(_, word)| format!("state:{word}"));
            assert_eq!(tensor["role"], json!(role));
            listed += 1;
        }
    }
    assert_eq!(said["tensors"].as_object().unwrap().len(), listed);
    let identity = json!({
        "model_family": "llama", "revision": "", "checkpoint_family": "tabtune.train", "checkpoint_ref": "step-2"
    });
    assert_eq!(said["identity"], identity);
    assert!(said.get("with_state").is_none());
    let tokenizer = &said["tokenizer"];
    assert_eq!(
        (
            &tokenizer["record"]["family"],
            &tokenizer["record"]["vocab_size"]
        ),
        (&json!("character"), &json!(LETTERS.len()))
    );
    for asset in tokenizer["assets"].as_array().unwrap() {
        let bytes = file(&mut files, asset["name"].as_str().unwrap());
        assert_eq!(asset["sha256"], json!(Digest::of(bytes).to_string()));
        assert_eq!(asset["bytes"], json!(bytes.len()));
    }
    assert_eq!(tokenizer["assets"].as_array().unwrap().len(), 2);
    let checkpoint = opened(files).unwrap();
    assert_eq!(
        checkpoint.manifest().tensors["model.embed_tokens.weight:momentum"]
            .role
            .to_string(),
        "state:momentum"
    );
    assert!(
        checkpoint
            .manifest()
            .tensors
            .values()
            .any(|tensor| tensor.role == TensorRole::Parameter)
    );
    assert_eq!(
        checkpoint.steps().unwrap()["model.embed_tokens.weight:step"],
        2
    );
}

fn codes(files: Files) -> Vec<(&'static str, String)> {
    let Err(Error::Refused(list)) = opened(files).map(|_| ()) else {
        panic!("opened")
    };
    list.into_iter()
        .map(|refusal| (refusal.code, refusal.subject.unwrap()))
        .collect()
}

#[test]
fn manifest_that_does_not_agree_with_the_headers_is_refused_with_all_differences() {
    let files = edited(saved(), |json| {
        let tensors = json["tensors"].as_object_mut().unwrap();
        let embed = tensors
            .remove("model.embed_tokens.weight:momentum")
            .unwrap();
        tensors.insert("a".into(), embed.clone());
        tensors.insert("b".into(), embed);
        tensors["model.norm.weight"]["shape"] = json!([9]);
        let step = json!({"path": ["lm", "step"], "role": "state:step", "dtype": "U64", "shape": [], "file": "model.safetensors"});
        tensors.insert("lm:step".into(), step);
        tensors["model.embed_tokens.weight:step"]["role"] = json!("buffer");
        tensors["model.embed_tokens.weight"]["path"] = json!(["elsewhere"]);
    });
    let expected = [
        ("manifest.tensor.missing", "a"),
        ("manifest.tensor.missing", "b"),
        ("manifest.tensor.missing", "lm:step"),
        (
            "manifest.tensor.unlisted",
            "model.embed_tokens.weight:momentum",
        ),
        ("manifest.tensor.mismatch", "model.embed_tokens.weight:step"),
        ("manifest.tensor.mismatch", "model.norm.weight"),
    ];
    assert_eq!(
        codes(files),
        expected.map(|(code, key)| (code, key.to_string()))
    );
    let dtype = edited(saved(), |json| {
        json["tensors"]["model.norm.weight"]["dtype"] = json!("BF16")
    });
    assert_eq!(
        codes(dtype),
        [("manifest.tensor.mismatch", "model.norm.weight".to_string())]
    );
}

fn keys(files: Files, changes: Value, overrides: &[&str]) -> Vec<String> {
    let Err(Error::ResumeMismatch(faults)) = resume(files, changes, overrides).map(|_| ()) else {
        panic!("resumed")
    };
    faults.into_iter().map(|fault| fault.key).collect()
}

/// Line 29 of tests/suite/portable/README.md: groups that the settings do not resolve to.
#[test]
fn groups_that_the_settings_do_not_resolve_to_are_a_mismatch_unless_overridden() {
    let same = resume(saved(), json!({}), &[]).unwrap();
    // Differences in progress, or in where tensors are held, are ignored.
    let moved = edited(saved(), |json| {
        json["groups"][2]["residency"] = json!("offloaded");
        json["groups"][2]["residency_policy"] = json!({"step": "device", "idle": "host"});
        json["groups"][2]["applied_steps"] = json!(7);
        json["groups"][1]["scheduler"]["start"] = json!(3);
    });
    assert_eq!(
        weights(resume(moved, json!({}), &[]).unwrap().model()),
        weights(same.model())
    );
    let edits: [fn(&mut Value); 8] = [
        |groups| groups[2]["optimizer"]["beta1"] = json!(0.8),
        |groups| groups[2]["optimizer"]["learning_rate"] = json!(0.5),
        |groups| groups[1]["parameter_semantics"]["learning_rate_scale"] = json!(2),
        |groups| {
            drop(
                groups[0]["parameter_semantics"]
                    .as_object_mut()
                    .unwrap()
                    .remove("frozen"),
            )
        },
        |groups| groups[1]["scheduler"]["config"]["warmup_steps"] = json!(4),
        |groups| groups[1]["group_id"] = json!("embedding"),
        |groups| groups[1]["class"] = json!("matrix"),
        |groups| {
            let norm = groups[0]["members"].as_array_mut().unwrap().pop().unwrap();
            groups[2]["members"].as_array_mut().unwrap().push(norm);
        },
    ];
    for edit in edits {
        let files = edited(saved(), |json| edit(&mut json["groups"]));
        assert_eq!(keys(files.clone(), json!({}), &[]), ["groups"]);
        assert_eq!(
            keys(files.clone(), json!({"learning_rate": 1.0}), &[]),
            ["learning_rate", "groups"]
        );
        for name in ["groups", "all"] {
            let run = resume(files.clone(), json!({}), &[name]).unwrap();
            assert_eq!(run.groups(), same.groups(), "those of the settings count");
        }
    }
    // With a group removed, its members' state belongs to no parameter.
    let fewer = edited(saved(), |json| {
        drop(json["groups"].as_array_mut().unwrap().remove(1))
    });
    let orphans = ["momentum", "step"].map(|word| {
        (
            "state.tensor.orphan",
            format!("model.embed_tokens.weight:{word}"),
        )
    });
    assert_eq!(codes(fewer), orphans);
    // An override changes nothing if the groups agree, or if none are configured.
    assert_eq!(
        resume(saved(), json!({}), &["groups"]).unwrap().groups(),
        same.groups()
    );
    let mut plain = start(
        config(&json!({"type": "sgd"}), "f32", &json!({"type": "constant"})),
        &cpu().inner(),
    );
    go(&mut plain, 1);
    assert_eq!(
        resume(save(&plain), json!({}), &["groups"])
            .unwrap()
            .groups(),
        plain.groups()
    );
}
