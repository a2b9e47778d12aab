//! Recorded steps have the bits of launched steps. No other thread may use the device of a recording, so these tests run in a process of their
//! own, one after the other.

use std::process::Command;

use serde_json::{Value, json};
use tabtune::config::TrainConfig;
use tabtune::data::{Dataset, IGNORE_INDEX, Loader};
use tabtune::device::Device;
use tabtune::error::Error;
use tabtune::families::config_from_hf;
use tabtune::gpu::counter::dispatches;
use tabtune::gpu::trace;
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune::train::Trainer;
use tabtune_tests::{as_a_gpu, block_on, gpu, in_full, weights};

use crate::adapter::{adapted, base, dataset, opened, settings, shape};
use crate::report_every::{State, losses, state, states, trainer};

/// Runs a test of this name in a process of its own.
pub fn run_alone(name: &str) {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program)
        .args([name, "--exact", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (told, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success() && told.contains("1 passed"),
        "{told}\n{errors}"
    );
}

#[test]
fn steps_that_run_as_recorded_have_the_bits_of_those_that_are_launched() {
    run_alone("repeat::alone::same_bits");
}

#[test]
fn steps_with_other_numbers_of_targets_run_as_recorded() {
    run_alone("repeat::alone::masked");
}

#[test]
fn memory_of_a_recording_is_that_of_a_step() {
    run_alone("repeat::alone::same_memory");
}

#[test]
fn step_that_is_refused_changes_nothing_when_it_ran_as_recorded() {
    run_alone("repeat::alone::refused");
}

#[test]
fn tensors_that_others_hold_keep_their_values() {
    run_alone("repeat::alone::held");
}

#[test]
fn third_step_is_recorded_where_pages_have_grown() {
    run_alone("repeat::alone::first_try");
}

#[test]
fn launches_that_are_observed_are_launched() {
    run_alone("repeat::alone::observed");
}

const STEPS: u64 = 12;

/// Maximum number of buffer copies by which the launches of two equal runs may differ: CubeCL's thread holds a buffer while it allocates it, and
/// a buffer that is updated at that moment is copied as if it were shared.
const COPIES: u64 = 4;

/// Returns losses and state after all steps, with the recording dropped in the middle if `forgets`, and whether there is one at the end.
fn end_of(mut run: Trainer, forgets: bool) -> (Vec<(u64, f64, f64)>, State, bool) {
    let mut reports = Vec::new();
    for step in 1..=STEPS {
        reports.extend(block_on(run.advance()).unwrap());
        if forgets && step == STEPS / 2 {
            run.forget_recording();
        }
    }
    reports.extend(block_on(run.settle()).unwrap());
    let recorded = run.runs_as_recorded();
    (losses(&reports), state(&run), recorded)
}

/// Makes a run with these settings; with an adapter, on a packed base.
fn launched(device: &Device, changes: &Value) -> Trainer {
    if changes["adapter"].is_null() {
        return trainer(device, None, changes.clone());
    }
    let config = settings(
        changes["adapter"].clone(),
        json!({ "steps": 40, "report_every": 2 }),
    );
    let model = adapted(&opened(&base(&shape(), "q8_0")), &config, device);
    Trainer::new(model, dataset(), config).unwrap()
}

fn recorded(device: &Device, changes: &Value) -> Trainer {
    let mut run = launched(device, changes);
    run.record_steps();
    run
}

mod alone {
    use super::*;

    fn devices() -> impl Iterator<Item = Device> {
        [gpu(), as_a_gpu()].into_iter().flatten()
    }

    #[test]
    #[ignore = "run by a test of this file, in a process of its own"]
    fn same_bits() {
        let repeating = [
            json!({}),
            json!({"report_every": 1, "max_grad_norm": 0.0, "schedule": {"type": "cosine", "warmup_steps": 3, "total_steps": 40}}),
            json!({"precision": "bf16"}),
            json!({"optimizer": {"type": "sgd", "momentum": 0.9}, "gradient_checkpointing": true}),
            // No matrix is large enough to be projected: all are left to AdamW.
            json!({"optimizer": {"type": "apollo", "rank": 8, "projected": "all"}}),
            json!({"adapter": {"r": 2, "target_modules": "all-linear"}}),
        ];
        let others = [
            json!({"precision": "bf16", "optimizer": {"type": "adafactor"}, "max_grad_norm": 0.0}),
            json!({"precision": "bf16", "optimizer": {"type": "apollo", "rank": 2, "update_steps": 5}}),
            json!({"gradient_accumulation_steps": 2}),
            json!({"adapter": {"r": 2, "target_modules": "all-linear", "dropout": 0.25}}),
            json!({"block_coordinate": {"blocks": 1, "interval": 3}, "report_every": 1}),
        ];
        for (at, device) in devices().enumerate() {
            // Each setting on both devices only in the full form; otherwise on one of them in turn.
            let all = repeating
                .iter()
                .map(|changes| (changes, true))
                .chain(others.iter().map(|changes| (changes, false)));
            for (_, (changes, repeats)) in all.enumerate().filter(|(n, _)| in_full() || n % 2 == at)
            {
                let before = dispatches();
                let (expected, end, _) = end_of(launched(&device, changes), true);
                let counted = dispatches() - before;
                let (found, other, as_recorded) = end_of(recorded(&device, changes), true);
                assert_eq!(as_recorded, repeats, "{changes}");
                assert!(
                    found == expected && other == end,
                    "other bits as recorded: {changes}"
                );
                let copies = (dispatches() - before).abs_diff(2 * counted);
                assert!(
                    copies <= COPIES,
                    "{copies} launches more or fewer as recorded: {changes}"
                );
            }
        }
    }

    /// Returns losses and state after steps whose batches count different numbers of targets, as those of chats do.
    fn masked_end(mut run: Trainer) -> (Vec<(u64, f64, f64)>, State, bool) {
        let data = run.dataset().clone();
        let mut loader = Loader::for_run(&data, run.config()).unwrap();
        let mut reports = Vec::new();
        for step in 0..STEPS as usize {
            let mut batch = loader.next(&data).unwrap();
            batch.targets[..=step % 4].fill(IGNORE_INDEX);
            reports.extend(block_on(run.advance_on(&[batch])).unwrap());
        }
        reports.extend(block_on(run.settle()).unwrap());
        let recorded = run.runs_as_recorded();
        (losses(&reports), state(&run), recorded)
    }

    #[test]
    #[ignore = "run by a test of this file, in a process of its own"]
    fn masked() {
        for device in devices() {
            for changes in [json!({}), json!({"precision": "bf16"})] {
                let (expected, end, _) = masked_end(launched(&device, &changes));
                let (found, other, as_recorded) = masked_end(recorded(&device, &changes));
                assert!(as_recorded, "{changes}");
                assert!(
                    found == expected && other == end,
                    "other bits as recorded: {changes}"
                );
            }
        }
    }

    #[test]
    #[ignore = "run by a test of this file, in a process of its own"]
    fn same_memory() {
        for device in devices() {
            let reserved = |mut run: Trainer| {
                let tensors = device.inner();
                tensors.memory_cleanup();
                let mut most = 0;
                for _ in 0..STEPS {
                    block_on(run.advance()).unwrap();
                    most = most.max(tensors.memory_pool_usage().unwrap().bytes_reserved);
                }
                block_on(run.settle()).unwrap();
                most
            };
            let launched = reserved(trainer(&device, None, json!({})));
            let recorded = reserved(recorded(&device, &json!({})));
            assert!(
                recorded as f64 <= 1.02 * launched as f64,
                "{recorded} bytes reserved with a recording, {launched} without"
            );
        }
    }

    #[test]
    #[ignore = "run by a test of this file, in a process of its own"]
    fn first_try() {
        // The logits are larger than any parameter, so that the allocator's pages grow in the first step; the contents of earlier pages have to be
        // moved before a recording.
        let shape = json!({"model_type": "llama", "hidden_size": 128, "intermediate_size": 384, "num_attention_heads": 4, "num_hidden_layers": 2,
            "max_position_embeddings": 128, "vocab_size": 9000, "tie_word_embeddings": true});
        let (shape, config) = (
            config_from_hf(&shape).unwrap(),
            json!({"steps": 9, "batch_size": 4, "seq_len": 50}),
        );
        let config: TrainConfig = serde_json::from_value(config).unwrap();
        for device in devices() {
            let model = block_on(Model::init(
                &shape,
                1,
                config.precision,
                &device.inner(),
                &Interrupt::none(),
            ))
            .unwrap();
            let tokens =
                Dataset::from_tokens((0..4000).map(|i| i * 7919 % 9000).collect(), 0.0).unwrap();
            let mut run = Trainer::new(model, tokens, config.clone()).unwrap();
            run.record_steps();
            for recorded in [false, false, true] {
                block_on(run.advance()).unwrap();
                assert_eq!(run.runs_as_recorded(), recorded);
            }
        }
    }

    #[test]
    #[ignore = "run by a test of this file, in a process of its own"]
    fn refused() {
        for device in devices() {
            let before = states(&device, STEPS);
            // Before, at and after the recording, and at the end.
            let some = |step: &u64| in_full() || [1, 3, 4, STEPS].contains(step);
            for rare in (1..=STEPS).filter(some) {
                let mut run = trainer(&device, Some(rare), json!({"report_every": 3}));
                run.record_steps();
                let refused = (0..STEPS + 6).find_map(|_| block_on(run.advance()).err());
                assert!(
                    matches!(refused, Some(Error::NonFinite { step, .. }) if step == rare),
                    "{refused:?}"
                );
                assert!(
                    state(&run) == before[rare as usize - 1],
                    "step {rare} has changed something"
                );
                run.skip_batch().unwrap();
                let mut launched = trainer(&device, Some(rare), json!({"report_every": 3}));
                while block_on(launched.advance()).is_ok() {}
                launched.skip_batch().unwrap();
                assert!(
                    end_of(run, false).1 == end_of(launched, false).1,
                    "other bits after step {rare} was skipped"
                );
            }
        }
    }

    #[test]
    #[ignore = "run by a test of this file, in a process of its own"]
    fn held() {
        for device in devices() {
            let mut run = recorded(&device, &json!({"report_every": 1}));
            for _ in 0..5 {
                block_on(run.step()).unwrap();
            }
            assert!(run.runs_as_recorded());
            let (held, bits) = (run.model().clone(), weights(run.model()));
            for _ in 0..5 {
                block_on(run.step()).unwrap();
            }
            assert!(
                weights(&held) == bits,
                "a step has changed what another owner holds"
            );
            drop(held);
            let mut launched = trainer(&device, None, json!({"report_every": 1}));
            for _ in 0..10 {
                block_on(launched.step()).unwrap();
            }
            assert!(state(&run) == state(&launched));
        }
    }

    /// Launches that are observed one by one are not run from the recording.
    #[test]
    #[ignore = "run by a test of this file, in a process of its own"]
    fn observed() {
        for device in devices() {
            let mut run = recorded(&device, &json!({"report_every": 1}));
            let traced = |run: &mut Trainer| {
                trace::start();
                block_on(run.step()).unwrap();
                trace::finish().len()
            };
            let expected = traced(&mut run);
            for _ in 0..4 {
                block_on(run.step()).unwrap();
            }
            assert!(run.runs_as_recorded());
            assert_eq!(traced(&mut run), expected);
        }
    }
}
