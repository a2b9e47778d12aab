use serde_json::{Value, json};
use tabtune::Error;
use tabtune::config::TrainConfig;
use tabtune::data::Dataset;
use tabtune::train::Trainer;
use tabtune_tests::{block_on, cpu, weights};

use super::opened;
use crate::resume::{Files, LETTERS, config, dataset, go, resume, save, start};

fn adamw() -> TrainConfig {
    config(
        &json!({"type": "adamw"}),
        "f32",
        &json!({"type": "constant"}),
    )
}

fn saved_at(config: TrainConfig, step: u64) -> Files {
    let mut run = start(config, &cpu().inner());
    go(&mut run, step);
    save(&run)
}

fn codes(run: &Trainer) -> Vec<&str> {
    run.notices().iter().map(|notice| notice.code).collect()
}

fn freezing() -> Value {
    json!({"groups": [{"pattern": "*embed*", "frozen": true}, {"pattern": "*.mlp.*", "frozen": true}, {"pattern": "*"}]})
}

#[test]
fn freezing_a_group_at_a_resume_drops_its_state_and_says_so() {
    let mut run = resume(saved_at(adamw(), 3), freezing(), &["groups"]).unwrap();
    assert_eq!(codes(&run), ["optim.state-dropped"]);
    let names = [
        "model.embed_tokens.weight",
        "model.layers.0.mlp.down_proj.weight",
        "model.layers.0.mlp.gate_proj.weight",
        "model.layers.0.mlp.up_proj.weight",
    ];
    assert_eq!(
        run.notices()[0].subject.as_deref(),
        Some(names.join(", ").as_str())
    );
    let before = weights(run.model());
    go(&mut run, 5);
    for ((name, old), (_, new)) in before.iter().zip(weights(run.model())) {
        assert_eq!(*old == new, names.contains(&name.as_str()), "{name}");
    }
    // The saved state has nothing of the frozen parameters; the run continues, and thawed they begin with new state.
    let files = save(&run);
    assert!(
        resume(files.clone(), json!({}), &[])
            .unwrap()
            .notices()
            .is_empty()
    );
    let mut thawed = resume(files, json!({"groups": [{"pattern": "*"}]}), &["groups"]).unwrap();
    assert_eq!(
        (
            thawed.optim().step_count("model.embed_tokens.weight"),
            thawed.optim().step_count("model.norm.weight")
        ),
        (0, 5)
    );
    go(&mut thawed, 6);
    assert_eq!(
        (
            thawed.optim().step_count("model.embed_tokens.weight"),
            thawed.optim().step_count("model.norm.weight")
        ),
        (1, 6)
    );
}

fn other_data() -> Dataset {
    Dataset::from_tokens(
        (0..300u32)
            .map(|i| (i * 7 + i * i) % LETTERS.len() as u32)
            .collect(),
        0.0,
    )
    .unwrap()
}

fn on_other_data(overrides: &[&str]) -> Result<Trainer, Error> {
    let overrides: Vec<String> = overrides.iter().map(|name| name.to_string()).collect();
    let checkpoint = opened(saved_at(adamw(), 4)).unwrap();
    block_on(checkpoint.resume(
        other_data(),
        None,
        &overrides,
        &cpu().inner(),
        &Default::default(),
    ))
}

#[test]
fn other_data_are_refused_by_name_unless_data_is_named() {
    for overrides in [&[][..], &["all"]] {
        let Err(Error::ResumeMismatch(faults)) = on_other_data(overrides).map(|_| ()) else {
            panic!("resumed on other data")
        };
        assert_eq!(
            faults
                .iter()
                .map(|fault| fault.key.as_str())
                .collect::<Vec<_>>(),
            ["data"]
        );
    }
    // Together with all other differences, at once.
    let checkpoint = opened(saved_at(adamw(), 4)).unwrap();
    let config = checkpoint
        .manifest()
        .train
        .overlaid(json!({"learning_rate": 1.0}))
        .unwrap();
    let both = block_on(checkpoint.resume(
        other_data(),
        Some(config),
        &[],
        &cpu().inner(),
        &Default::default(),
    ));
    let Err(Error::ResumeMismatch(faults)) = both.map(|_| ()) else {
        panic!("resumed")
    };
    assert_eq!(
        faults
            .iter()
            .map(|fault| fault.key.as_str())
            .collect::<Vec<_>>(),
        ["learning_rate", "data"]
    );
    let mut run = on_other_data(&["data"]).unwrap();
    assert_eq!(codes(&run), ["checkpoint.data.changed"]);
    // The order begins again, with the same seed: the batches of a fresh run on these data.
    let state = run.loader_state();
    assert_eq!(
        (state.epoch, state.cursor, state.seed, state.seq_len),
        (0, 0, 3, 6)
    );
    let fresh = Trainer::new(run.model().clone(), other_data(), adamw()).unwrap();
    assert_eq!(state, fresh.loader_state());
    assert_eq!(run.progress().completed_steps, 4);
    go(&mut run, 6);
    // Saved with these data, the run continues only with them.
    let files = save(&run);
    let checkpoint = opened(files).unwrap();
    let on =
        |data| block_on(checkpoint.resume(data, None, &[], &cpu().inner(), &Default::default()));
    assert!(on(dataset()).is_err());
    assert!(on(other_data()).unwrap().notices().is_empty());
    // An override changes nothing if the data are the same.
    let overrides = ["data".to_string()];
    let same = block_on(checkpoint.resume(
        other_data(),
        None,
        &overrides,
        &cpu().inner(),
        &Default::default(),
    ))
    .unwrap();
    assert_eq!(
        (same.loader_state(), same.notices().len()),
        (run.loader_state(), 0)
    );
}

#[test]
fn one_run_gives_several_annealed_models() {
    for (kind, key) in [("wsd", "decay"), ("infinite", "annealing")] {
        let schedule = json!({"type": kind, format!("{key}_steps"): 3});
        let at = |step| {
            let mut run = start(
                config(&json!({"type": "sgd"}), "f32", &schedule),
                &cpu().inner(),
            );
            // Not `go`, which would start the decay.
            while run.progress().completed_steps < step {
                block_on(run.step()).unwrap();
            }
            save(&run)
        };
        let begin = json!({"schedule": {format!("start_{key}"): true}});
        let mut kept = Vec::new();
        for step in [2, 4] {
            // Started by the settings of the resume, and by hand: the decay starts at the copy's step, not where another copy started it.
            let by_settings = resume(at(step), begin.clone(), &[]).unwrap();
            let mut by_hand = resume(at(step), json!({}), &[]).unwrap();
            assert_eq!(by_hand.progress().schedule_start, None);
            by_hand.start_decay().unwrap();
            for mut run in [by_settings, by_hand] {
                assert_eq!(run.progress().schedule_start, Some(step), "{kind}");
                block_on(run.step()).unwrap();
                block_on(run.step()).unwrap();
                // A saved start stays, whether it is requested again or not.
                let files = save(&run);
                assert_eq!(
                    resume(files.clone(), begin.clone(), &[])
                        .unwrap()
                        .progress()
                        .schedule_start,
                    Some(step)
                );
                assert_eq!(
                    resume(files, json!({}), &[])
                        .unwrap()
                        .progress()
                        .schedule_start,
                    Some(step)
                );
                kept.push(weights(run.model()));
            }
        }
        assert_eq!(
            (&kept[0], &kept[2]),
            (&kept[1], &kept[3]),
            "{kind}: by settings and by hand"
        );
        assert_ne!(kept[0], kept[2]);
    }
}

#[test]
fn another_environment_is_a_warning() {
    use tabtune::checkpoint::Environment;
    let checkpoint = opened(saved_at(adamw(), 1)).unwrap();
    let device = cpu().inner();
    let here = Environment::on(&device, "test");
    assert_eq!(checkpoint.other_environment(&here), None);
    // Without a name of the adapter, a difference of the name is not reported.
    assert_eq!(
        checkpoint.other_environment(&Environment::on(&device, "")),
        None
    );
    for other in [
        Environment {
            version: "9.9.9".into(),
            ..here.clone()
        },
        Environment {
            kernels: "another".into(),
            ..here
        },
    ] {
        assert_eq!(
            checkpoint.other_environment(&other).unwrap().code,
            "checkpoint.environment"
        );
    }
    assert!(
        checkpoint
            .other_environment(&Environment::on(&device, "other"))
            .unwrap()
            .message
            .contains("adapter test, now other")
    );
}
