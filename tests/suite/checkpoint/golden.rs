//! Checkpoints that earlier versions wrote load for ever.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tabtune::checkpoint::MANIFEST;
use tabtune::config::TrainConfig;
use tabtune::data::{DataFormat, Dataset};
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
    let files = std::fs::read_dir(golden().join("v1")).unwrap().map(|entry| entry.unwrap().path());
    files.map(|path| (path.file_name().unwrap().to_str().unwrap().to_string(), std::fs::read(&path).unwrap())).collect()
}

fn resumed(files: Files, changes: Value, overrides: &[&str]) -> Result<Trainer> {
    let checkpoint = opened(files)?;
    let text = std::fs::read(golden().join("v1-data.txt")).unwrap();
    let tokenizer = checkpoint.bundle().tokenizer.as_ref().unwrap();
    let dataset = Dataset::from_bytes(&text, DataFormat::Text, tokenizer, 0.0).unwrap();
    let config: TrainConfig = checkpoint.manifest().train.overlaid(changes).unwrap();
    let overrides: Vec<String> = overrides.iter().map(|name| name.to_string()).collect();
    block_on(checkpoint.resume(dataset, Some(config), &overrides, &cpu().inner(), &Default::default()))
}

#[test]
fn version_1_loads_goes_on_and_is_saved_as_version_2() {
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
    assert_eq!(manifest["version"], 2);
    assert_eq!(manifest["with_state"].as_array().unwrap().len(), 8, "all but the three norms");
    let mut from_2 = resumed(again, serde_json::json!({}), &[]).unwrap();
    // Chromium's software adapter went on with these losses: another order of sums, and noise of the same bits.
    let expected: Value = serde_json::from_slice(&std::fs::read(golden().join("v1-expected.json")).unwrap()).unwrap();
    for loss in expected["losses"].as_array().unwrap() {
        let (loss, found) = (loss.as_f64().unwrap(), block_on(run.step()).unwrap().loss);
        assert!((found - loss).abs() <= 1e-3 * loss, "{found}, in the browser {loss}");
        assert_eq!(block_on(from_2.step()).unwrap().loss, found);
    }
    assert_eq!(weights(run.model()), weights(from_2.model()));
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
