//! A checkpoint that was written once loads, and continues with the recorded losses.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tabtune::config::TrainConfig;
use tabtune_tests::{block_on, cpu};

use super::opened;
use crate::resume::{Files, save, save_with, start};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/checkpoints")
}

/// Reads the files of a run after six of ten steps: APOLLO, Adafactor on the MLP, SGD on the embedding, norms frozen, an annealing planned.
fn version_1() -> Files {
    let files = std::fs::read_dir(golden().join("v1"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    files
        .map(|path| {
            (
                path.file_name().unwrap().to_str().unwrap().to_string(),
                std::fs::read(&path).unwrap(),
            )
        })
        .collect()
}

/// Line 29 of tests/suite/portable/README.md: the losses are those of the same backend, so they agree within the order of sums.
#[test]
fn version_1_loads_and_continues() {
    let checkpoint = opened(version_1()).unwrap();
    let dataset =
        crate::data::of_ids(&std::fs::read(golden().join("v1-data.tokens")).unwrap()).unwrap();
    let mut run =
        block_on(checkpoint.resume(dataset, None, &[], &cpu().inner(), &Default::default()))
            .unwrap();
    assert_eq!(checkpoint.manifest().groups, run.groups());
    // Not a byte of weights and state changes.
    let again = save_with(&run, checkpoint.bundle());
    for (name, bytes) in version_1()
        .iter()
        .filter(|(name, _)| name.ends_with(".safetensors"))
    {
        assert!(
            again.iter().find(|(own, _)| own == name).unwrap().1 == *bytes,
            "{name}"
        );
    }
    let expected: Value =
        serde_json::from_slice(&std::fs::read(golden().join("v1-expected.json")).unwrap()).unwrap();
    for loss in expected["losses"].as_array().unwrap() {
        let (loss, found) = (loss.as_f64().unwrap(), block_on(run.step()).unwrap().loss);
        assert!(
            (found - loss).abs() <= 1e-6 * loss,
            "{found}, recorded {loss}"
        );
    }
}

/// Settings are written with all their defaults, and are unchanged when they are read.
#[test]
fn rules_come_back_as_they_are() {
    for settings in [
        json!({}),
        json!({"mini": true, "growth_limit": null, "projected": "all", "scale": 128}),
    ] {
        let settings =
            tabtune::config::overlay(json!({"type": "apollo", "update_steps": 3}), settings);
        let rule: tabtune::config::OptimizerConfig = serde_json::from_value(settings).unwrap();
        let config = TrainConfig {
            optimizer: rule.clone(),
            seq_len: 8,
            batch_size: 1,
            steps: 2,
            ..TrainConfig::default()
        };
        assert_eq!(
            opened(save(&start(config, &cpu().inner())))
                .unwrap()
                .manifest()
                .train
                .optimizer,
            rule
        );
    }
}
