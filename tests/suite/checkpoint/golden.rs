//! Checkpoints that earlier versions wrote load for ever.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tabtune::checkpoint::MANIFEST;
use tabtune::config::Form;
use tabtune::config::TrainConfig;
use tabtune::data::Dataset;
use tabtune::train::Trainer;
use tabtune::{Error, Result};
use tabtune_tests::{block_on, cpu, weights};

use super::{edited, opened};
use crate::resume::{Files, save_with};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/checkpoints")
}

/// Version 1: bf16, AdamW, norms frozen, five steps done, the decay started after three.
fn version_1() -> Files {
    folder("v1")
}

fn folder(name: &str) -> Files {
    let files = std::fs::read_dir(golden().join(name)).unwrap().map(|entry| entry.unwrap().path());
    files.map(|path| (path.file_name().unwrap().to_str().unwrap().to_string(), std::fs::read(&path).unwrap())).collect()
}

fn resumed(files: Files, changes: Value, overrides: &[&str]) -> Result<Trainer> {
    let checkpoint = opened(files)?;
    let read = |name: &str| std::fs::read(golden().join(name)).unwrap();
    let dataset = match &checkpoint.bundle().tokenizer {
        Some(tokenizer) => Dataset::from_bytes(&read("v1-data.txt"), Form::Text, tokenizer, 0.0).unwrap(),
        None => crate::data::of_ids(&read("v2-data.tokens")).unwrap(),
    };
    let config: TrainConfig = checkpoint.manifest().train.overlaid(changes).unwrap();
    let overrides: Vec<String> = overrides.iter().map(|name| name.to_string()).collect();
    block_on(checkpoint.resume(dataset, Some(config), &overrides, &cpu().inner(), &Default::default()))
}

#[test]
fn version_1_loads_goes_on_and_is_saved_in_the_newest() {
    let files = version_1();
    let bytes = |name: &str| files.iter().find(|(own, _)| own == name).unwrap().1.clone();
    let mut run = resumed(files.clone(), serde_json::json!({}), &[]).unwrap();
    assert_eq!((run.progress().completed_steps, run.progress().schedule_start), (5, Some(3)));
    assert!(run.notices().is_empty());
    // Not a byte of weights and state is another.
    let again = save_with(&run, opened(files.clone()).unwrap().bundle());
    for name in ["model.safetensors", "optimizer.safetensors"] {
        assert!(again.iter().find(|(own, _)| own == name).unwrap().1 == bytes(name), "{name}");
    }
    let manifest: Value = serde_json::from_slice(&again.iter().find(|(own, _)| own == MANIFEST).unwrap().1).unwrap();
    assert_eq!(manifest["version"], 4);
    let members: Vec<&Value> =
        manifest["groups"].as_array().unwrap().iter().flat_map(|group| group["members"].as_array().unwrap()).collect();
    let with_state = members.iter().filter(|member| member["state"] != serde_json::json!({})).count();
    assert_eq!((members.len(), with_state), (11, 8), "all but the three norms");
    let mut from_newest = resumed(again, serde_json::json!({}), &[]).unwrap();
    // Chromium's software adapter went on with these losses: another order of sums, and noise of the same bits.
    let expected: Value = serde_json::from_slice(&std::fs::read(golden().join("v1-expected.json")).unwrap()).unwrap();
    for loss in expected["losses"].as_array().unwrap() {
        let (loss, found) = (loss.as_f64().unwrap(), block_on(run.step()).unwrap().loss);
        assert!((found - loss).abs() <= 1e-3 * loss, "{found}, in the browser {loss}");
        assert_eq!(block_on(from_newest.step()).unwrap().loss, found);
    }
    assert_eq!(weights(run.model()), weights(from_newest.model()));
}

#[test]
fn version_1_without_a_state_that_its_settings_call_for_is_refused() {
    // Thawed by an edit of the settings: then the norms should have had state from the first step on.
    let files = edited(version_1(), |json| json["train"]["groups"][0]["frozen"] = false.into());
    let Err(Error::StateMismatch(faults)) = resumed(files, serde_json::json!({}), &[]).map(|_| ()) else { panic!("resumed") };
    assert_eq!(faults.iter().filter(|fault| fault.key.ends_with("norm.weight:step")).count(), 3);
    // Thawed at the resume they begin anew.
    let thawed = resumed(version_1(), serde_json::json!({"groups": [{"pattern": "*"}]}), &["groups"]).unwrap();
    assert_eq!(thawed.optim().step_count("model.norm.weight"), 0);
    // Nothing of version 2 is taken from a document of version 1, and its digests are looked at.
    let mixed = edited(version_1(), |json| json["with_state"] = serde_json::json!([]));
    assert!(matches!(opened(mixed).map(|_| ()), Err(Error::CheckpointCorrupt { what, .. }) if what == "with_state"));
    let mut flipped = version_1();
    *super::file(&mut flipped, "model.safetensors").last_mut().unwrap() ^= 1;
    assert_eq!(opened(flipped).map(|_| ()).unwrap_err().code(), "checkpoint.chunk.hash");
}

/// Losses of the next steps of `run`, as they were recorded when the folder was made: on the same backend, so within the order of sums.
fn goes_on_as_recorded(run: &mut Trainer, expected: &str) -> Vec<f64> {
    let expected: Value = serde_json::from_slice(&std::fs::read(golden().join(expected)).unwrap()).unwrap();
    let recorded = expected["losses"].as_array().unwrap().iter().map(|loss| loss.as_f64().unwrap());
    recorded
        .map(|loss| {
            let found = block_on(run.step()).unwrap().loss;
            assert!((found - loss).abs() <= 1e-6 * loss, "{found}, recorded {loss}");
            found
        })
        .collect()
}

/// line 29: version 2 (APOLLO, Adafactor on the MLP, SGD on the embedding, norms frozen, an annealing planned) goes on, and so does what is
/// saved of it now, bit for bit.
#[test]
fn version_2_loads_goes_on_and_is_saved_in_the_newest() {
    let checkpoint = opened(folder("v2")).unwrap();
    let base = checkpoint.manifest().base.clone().unwrap();
    assert_eq!((base.name.as_str(), base.format.as_str(), base.files.len()), ("model.safetensors", "hf_folder", 2));
    assert!(base.files.iter().all(|file| file.header_sha256.is_none() && file.sha256.is_none()));
    let mut run = resumed(folder("v2"), serde_json::json!({}), &[]).unwrap();
    // What the settings and the optimizer file of version 2 say together is what the live run says.
    assert_eq!(checkpoint.groups().unwrap(), run.groups());
    let again = save_with(&run, checkpoint.bundle());
    for (name, bytes) in folder("v2").iter().filter(|(name, _)| name.ends_with(".safetensors")) {
        assert!(again.iter().find(|(own, _)| own == name).unwrap().1 == *bytes, "{name}");
    }
    assert_eq!(opened(again.clone()).unwrap().groups().unwrap(), run.groups());
    let mut from_newest = resumed(again, serde_json::json!({}), &[]).unwrap();
    let losses = goes_on_as_recorded(&mut run, "v2-expected.json");
    let after: Vec<f64> = losses.iter().map(|_| block_on(from_newest.step()).unwrap().loss).collect();
    assert_eq!(after, losses);
    assert_eq!(weights(run.model()), weights(from_newest.model()));
    // Nothing of version 3 is taken from a document of version 2.
    for key in ["groups", "tensors", "identity", "tokenizer"] {
        let mixed = edited(folder("v2"), |json| json[key] = serde_json::json!([]));
        assert!(matches!(opened(mixed).map(|_| ()), Err(Error::CheckpointCorrupt { what, .. }) if what == key));
    }
}

/// line 29: version 3, made as version 2 was.
#[test]
fn version_3_loads_and_goes_on() {
    let checkpoint = opened(folder("v3")).unwrap();
    assert_eq!(checkpoint.manifest().version, 3);
    let mut run = resumed(folder("v3"), serde_json::json!({}), &[]).unwrap();
    assert_eq!(checkpoint.groups().unwrap(), run.groups());
    let again = save_with(&run, checkpoint.bundle());
    for (name, bytes) in folder("v3").iter().filter(|(name, _)| name.ends_with(".safetensors")) {
        assert!(again.iter().find(|(own, _)| own == name).unwrap().1 == *bytes, "{name}");
    }
    goes_on_as_recorded(&mut run, "v2-expected.json");
}

/// What a checkpoint did not say, since it was no setting then or had another default, it goes on with.
#[test]
fn settings_of_before_growth_limit_mean_what_they_did() {
    let then = |mini: bool, rank: u64, scale: f64| {
        json!({"type": "apollo", "beta1": 0.9, "beta2": 0.999, "eps": 1e-6, "weight_decay": 0.02, "mini": mini, "rank": rank, "scale": scale,
            "scale_front": false, "growth_limit": 1.01, "projected": "all", "adamw_learning_rate_scale": 1.0, "update_steps": 3,
            "projector": "orthogonal", "stochastic_rounding": true})
    };
    let rule = |files: Files| opened(files).map(|checkpoint| serde_json::to_value(&checkpoint.manifest().train.optimizer).unwrap());
    for version in ["v2", "v3"] {
        assert_eq!(rule(folder(version)).unwrap(), then(false, 2, 1.0), "{version}");
    }
    let with = |changes: Value| {
        edited(folder("v2"), |json| json["train"]["optimizer"].as_object_mut().unwrap().extend(changes.as_object().unwrap().clone()))
    };
    assert_eq!(rule(with(json!({"scale": 4.0}))).unwrap(), then(false, 2, 4.0));
    assert_eq!(rule(with(json!({"mini": true, "rank": null}))).unwrap(), then(true, 1, 128.0));
    // A group's own rule, too.
    let group = edited(folder("v2"), |json| json["train"]["groups"][3]["optimizer"] = json["train"]["optimizer"].clone());
    let group = serde_json::to_value(&opened(group).unwrap().manifest().train.groups[3].optimizer).unwrap();
    assert_eq!(group, then(false, 2, 1.0));
    // What is written now says all, and comes back as it is.
    let apollo = |more: Value| {
        let settings = tabtune::config::overlay(json!({"type": "apollo", "update_steps": 3}), more);
        TrainConfig { optimizer: serde_json::from_value(settings).unwrap(), ..TrainConfig::default() }
    };
    for config in [apollo(json!({})), apollo(json!({"mini": true, "growth_limit": null, "projected": "all", "scale": 128}))] {
        let rule = config.optimizer.clone();
        let run = crate::resume::start(TrainConfig { seq_len: 8, batch_size: 1, steps: 2, ..config }, &cpu().inner());
        assert_eq!(opened(crate::resume::save(&run)).unwrap().manifest().train.optimizer, rule);
    }
}
