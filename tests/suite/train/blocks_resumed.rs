//! Block-coordinate runs that are saved and continued, across the ends of turns.

use serde_json::{Value, json};
use tabtune::config::TrainConfig;
use tabtune::device::Device;
use tabtune::interrupt::Interrupt;
use tabtune::train::Trainer;
use tabtune_tests::{block_on, cpu, devices, in_full};

use super::blocks::{settings, start};
use crate::resume::{Files, dataset, go, open, save};

fn config(precision: &str) -> TrainConfig {
    let blocks = json!({"blocks": 1, "interval": 3, "norm": true});
    settings(
        json!({"block_coordinate": blocks, "gradient_accumulation_steps": 4, "precision": precision}),
    )
}

fn resumed(files: Files, changes: Value, overrides: &[&str], device: &Device) -> Trainer {
    let checkpoint = open(files);
    let config = checkpoint.manifest().train.overlaid(changes).unwrap();
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    block_on(checkpoint.resume(
        dataset(),
        Some(config),
        &overrides,
        &device.inner(),
        &Interrupt::none(),
    ))
    .unwrap()
}

#[test]
fn resume_across_turns_is_bitwise_with_clipping_and_accumulation() {
    for device in devices() {
        for precision in ["f32", "bf16"] {
            let mut straight = start(3, config(precision), &device).unwrap();
            let losses = go(&mut straight, 8);
            let end = save(&straight);
            // Within a turn, after the end of one, and before its last step.
            let stops: &[u64] = if precision == "bf16" || in_full() {
                &[2, 3, 5]
            } else {
                &[3]
            };
            for &stop in stops {
                let mut first = start(3, config(precision), &device).unwrap();
                let before = go(&mut first, stop);
                let middle = save(&first);
                let mut second = resumed(middle.clone(), json!({}), &[], &device);
                assert!(
                    second.notices().is_empty() && save(&second) == middle,
                    "{precision} at {stop}: loading changed something"
                );
                assert_eq!(
                    [before, go(&mut second, 8)].concat(),
                    losses,
                    "{precision} at {stop}"
                );
                assert!(
                    save(&second) == end,
                    "{precision} at {stop}: other bits at the end"
                );
            }
        }
    }
}

/// Returns the names with state in a checkpoint after this many steps.
fn saved_state(steps: u64) -> Vec<String> {
    let mut run = start(3, config("f32"), &cpu()).unwrap();
    go(&mut run, steps);
    let names = open(save(&run))
        .manifest()
        .tensors
        .keys()
        .cloned()
        .collect::<Vec<_>>();
    names
        .into_iter()
        .filter_map(|name| Some(name.strip_suffix(":step")?.to_string()))
        .collect()
}

#[test]
fn checkpoint_has_the_state_of_what_trains_alone() {
    let mut run = start(3, config("f32"), &cpu()).unwrap();
    go(&mut run, 2);
    let of_block = format!(".{}.", run.active_blocks().unwrap()[0]);
    let names = saved_state(2);
    assert_eq!(names.len(), 9 + 1);
    assert!(
        names
            .iter()
            .all(|name| name.contains(&of_block) || name == "model.norm.weight"),
        "{names:?}"
    );
    assert_eq!(
        saved_state(3),
        ["model.norm.weight"],
        "the next block has none yet"
    );
}

#[test]
fn other_settings_drop_the_state_of_what_rests_now() {
    let device = cpu();
    let mut adamw = start(
        3,
        settings(json!({"gradient_checkpointing": true})),
        &device,
    )
    .unwrap();
    go(&mut adamw, 2);
    let blocks = json!({"block_coordinate": {"order": "ascending", "interval": 4}});
    let refused = open(save(&adamw))
        .manifest()
        .train
        .overlaid(blocks.clone())
        .unwrap();
    let refused = block_on(open(save(&adamw)).resume(
        dataset(),
        Some(refused),
        &[],
        &device.inner(),
        &Interrupt::none(),
    ))
    .map(|_| ());
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("block_coordinate.blocks")
    );
    let mut run = resumed(save(&adamw), blocks, &["block_coordinate"], &device);
    let [notice] = run.notices() else {
        panic!("{:?}", run.notices())
    };
    let dropped = notice.subject.clone().unwrap();
    assert!(
        notice.code == "optim.state-dropped"
            && dropped.contains("layers.1.")
            && dropped.contains("embed")
            && !dropped.contains("layers.0.")
    );
    assert_eq!(
        (run.active_blocks(), run.optim().with_state().len()),
        (Some(&[0][..]), 9)
    );
    // Parameters that continue to train keep their moments.
    assert_eq!(
        run.optim()
            .step_count("model.layers.0.input_layernorm.weight"),
        2
    );
    go(&mut run, 6);
    // In the other direction, parameters that begin again have none.
    let back = resumed(
        save(&run),
        json!({"block_coordinate": null}),
        &["block_coordinate"],
        &device,
    );
    assert_eq!((back.active_blocks(), back.notices().len()), (None, 0));
    assert_eq!(go(&mut { back }, 8).len(), 2);
}
