//! Whole runs that are stopped, saved and resumed, compared with uninterrupted runs, for every optimizer, precision and schedule; changes that a
//! resume allows.

use std::rc::Rc;

use burn::tensor::Device as TensorDevice;
use serde_json::{Value, json};
use tabtune::bundle::{Bundle, ModelAssets};
use tabtune::checkpoint;
use tabtune::checkpoint::{Checkpoint, Environment, Origin, sha256};
use tabtune::config::{AdamwConfig, GroupConfig, ModelConfig, OptimizerConfig, TrainConfig};
use tabtune::data::Dataset;
use tabtune::device::DeviceLimits;
use tabtune::error::{Error, Fault};
use tabtune::families::config_from_hf;
use tabtune::formats::{ByteSource, MemorySource};
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune::tokenizer::Tokenizer;
use tabtune::train::{Trainer, check_limits};
use tabtune_tests::{block_on, cpu, gpu, in_full};

use crate::optim::rules;

const STEPS: u64 = 8;
const STOP: u64 = 4;
pub const LETTERS: &str = "abcdefghijklm";

pub type Files = Vec<(String, Vec<u8>)>;

/// Returns a shape with matrices of both orientations and vectors, small enough for a hundred runs.
pub fn shape() -> ModelConfig {
    let json = json!({
        "model_type": "llama", "vocab_size": LETTERS.len(), "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 8, "rms_norm_eps": 1e-5,
        "tie_word_embeddings": true
    });
    config_from_hf(&json).unwrap()
}

pub fn dataset() -> Dataset {
    dataset_split(0.0)
}

pub fn dataset_split(validation_fraction: f64) -> Dataset {
    let tokens = (0..400u32)
        .map(|i| (i * i / 3 + i) % LETTERS.len() as u32)
        .collect();
    Dataset::from_tokens(tokens, validation_fraction).unwrap()
}

pub fn config(optimizer: &Value, precision: &str, schedule: &Value) -> TrainConfig {
    let json = json!({
        "steps": STEPS, "batch_size": 2, "seq_len": 6, "learning_rate": 1e-2, "seed": 3, "optimizer": optimizer, "precision": precision,
        "schedule": schedule
    });
    serde_json::from_value(json).unwrap()
}

pub fn start(config: TrainConfig, device: &TensorDevice) -> Trainer {
    let model = block_on(Model::init(
        &shape(),
        config.seed,
        config.precision,
        device,
        &Interrupt::none(),
    ))
    .unwrap();
    Trainer::new(model, dataset(), config).unwrap()
}

pub fn save(trainer: &Trainer) -> Files {
    written(
        trainer,
        &ModelAssets::of_config(
            trainer.model().config(),
            Some(Tokenizer::characters(LETTERS).unwrap()),
        ),
    )
}

/// Saves as [`save`] does, with the documents of `bundle`.
pub fn save_with(trainer: &Trainer, bundle: &Bundle) -> Files {
    written(trainer, &ModelAssets::of_bundle(bundle))
}

fn written(trainer: &Trainer, assets: &ModelAssets) -> Files {
    let origin = Origin {
        environment: Environment::on(trainer.model().device(), "test"),
        base: None,
    };
    let mut stream = checkpoint::write(trainer, assets, &origin).unwrap();
    let mut files: Files = stream
        .files()
        .iter()
        .map(|file| (file.name.clone(), Vec::new()))
        .collect();
    while let Some(chunk) = block_on(stream.next_chunk()).unwrap() {
        stream.hashed(&sha256(&chunk.bytes)).unwrap();
        files[chunk.file].1.extend(chunk.bytes);
    }
    for (file, (name, bytes)) in stream.files().iter().zip(&files) {
        assert_eq!(file.bytes, bytes.len() as u64, "{name}");
    }
    files
}

pub fn open(files: Files) -> Checkpoint {
    let sources = files
        .into_iter()
        .map(|(name, bytes)| Rc::new(MemorySource::new(name, bytes)) as Rc<dyn ByteSource>);
    Checkpoint::open(sources.collect(), None).unwrap()
}

/// Returns the losses of the steps up to `last`. A schedule that can decay and has no start begins its decay before step 4.
pub fn go(trainer: &mut Trainer, last: u64) -> Vec<f64> {
    let mut losses = Vec::new();
    while trainer.progress().completed_steps < last {
        if trainer.progress().completed_steps == 3 && trainer.progress().schedule_start.is_none() {
            // Refused by the schedules that have no decay.
            let _ = trainer.start_decay();
        }
        losses.push(block_on(trainer.step()).unwrap().loss);
    }
    losses
}

fn optimizers() -> Vec<Value> {
    rules()
        .iter()
        .map(|rule| serde_json::to_value(rule).unwrap())
        .collect()
}

fn schedules() -> [Value; 8] {
    [
        json!({"type": "constant", "warmup_steps": 2}),
        json!({"type": "cosine", "warmup_steps": 6, "total_steps": 8}),
        json!({"type": "linear", "total_steps": 7, "min_learning_rate": 1e-4}),
        // Planned, running at the stop; then started by hand.
        json!({"type": "wsd", "decay_start_step": 2, "decay_steps": 5}),
        json!({"type": "wsd", "decay_steps": 3, "decay_type": "one_minus_sqrt"}),
        json!({"type": "infinite", "cooldown_steps": 3, "constant_learning_rate": 5e-3, "annealing_start_step": 6, "tau": 4.0}),
        json!({"type": "infinite", "annealing_steps": 4, "annealing_type": "harmonic"}),
        json!({"type": "infinite", "warmup_steps": 1, "annealing_steps": 9}),
    ]
}

/// Checks that a run without a save, a run that is saved and continued, and a resumed run are equal.
fn resumes_bitwise(optimizer: &Value, precision: &str, schedule: &Value, device: &TensorDevice) {
    let what = format!("{optimizer} {precision} {schedule}");
    let mut straight = start(config(optimizer, precision, schedule), device);
    let losses = go(&mut straight, STEPS);
    let end = save(&straight);

    let mut saved = start(config(optimizer, precision, schedule), device);
    let mut curve = go(&mut saved, STOP);
    let middle = save(&saved);
    let mut resumed =
        block_on(open(middle.clone()).resume(dataset(), None, &[], device, &Interrupt::none()))
            .unwrap();
    assert!(
        save(&resumed) == middle,
        "{what}: loading changed something"
    );
    let after = go(&mut resumed, STEPS);
    assert_eq!(after, losses[STOP as usize..], "{what}: the resumed run");
    assert!(
        save(&resumed) == end,
        "{what}: the resumed run ends with other bits"
    );

    curve.extend(go(&mut saved, STEPS));
    assert_eq!(curve, losses, "{what}: the saved run");
    assert!(save(&saved) == end, "{what}: saving harmed the live run");
}

#[test]
fn resume_is_bitwise_for_every_optimizer_precision_and_schedule_on_the_cpu() {
    let device = cpu().inner();
    for optimizer in optimizers() {
        for precision in ["f32", "bf16"] {
            for schedule in schedules() {
                resumes_bitwise(&optimizer, precision, &schedule, &device);
            }
        }
    }
}

#[test]
fn resume_is_bitwise_for_every_optimizer_precision_and_schedule_on_the_gpu() {
    let Some(device) = gpu() else { return };
    let rules = optimizers()
        .into_iter()
        .flat_map(|optimizer| ["f32", "bf16"].map(|precision| (optimizer.clone(), precision)));
    for (turn, (optimizer, precision)) in rules.enumerate() {
        // A schedule does not depend on the device, so the short form distributes them over the devices.
        for (index, schedule) in schedules().iter().enumerate() {
            if in_full() || index == turn % schedules().len() {
                resumes_bitwise(&optimizer, precision, schedule, &device.inner());
            }
        }
    }
}

#[test]
fn resume_without_the_optimizers_state_is_another_run() {
    let device = cpu().inner();
    let config = config(&optimizers()[0], "bf16", &schedules()[0]);
    let mut straight = start(config.clone(), &device);
    let losses = go(&mut straight, STEPS);
    let mut first = start(config.clone(), &device);
    go(&mut first, STOP);
    let checkpoint = open(save(&first));
    let model = block_on(Model::from_bundle(
        checkpoint.bundle(),
        config.precision,
        &device,
        &Interrupt::none(),
    ))
    .unwrap();
    let mut bare = Trainer::resume(
        model,
        dataset(),
        first.loader_state(),
        config,
        first.progress(),
    )
    .unwrap();
    let found = go(&mut bare, STEPS);
    // Step 5 has the saved weights and batch; its update is the first that differs.
    assert_eq!(found[0], losses[STOP as usize]);
    assert_ne!(found[1..], losses[STOP as usize + 1..]);
}

#[test]
fn resume_keeps_the_document_mask() {
    let device = cpu().inner();
    let run = |mask: bool| {
        let config = TrainConfig {
            document_mask: mask,
            validation_fraction: 0.2,
            ..config(&optimizers()[0], "f32", &schedules()[0])
        };
        let model = block_on(Model::init(
            &shape(),
            config.seed,
            config.precision,
            &device,
            &Interrupt::none(),
        ))
        .unwrap();
        let data = || dataset_split(0.2).with_document_ends(&[4]);
        let mut straight = Trainer::new(model.clone(), data(), config.clone()).unwrap();
        let losses = go(&mut straight, STEPS);
        let mut first = Trainer::new(model, data(), config).unwrap();
        go(&mut first, STOP);
        let checkpoint = open(save(&first));
        let other = TrainConfig {
            document_mask: !mask,
            ..checkpoint.manifest().train.clone()
        };
        let Err(Error::ResumeMismatch(faults)) =
            block_on(checkpoint.resume(data(), Some(other), &[], &device, &Interrupt::none()))
        else {
            panic!("resumed")
        };
        assert_eq!(keys(&faults), ["document_mask"]);
        let mut resumed =
            block_on(open(save(&first)).resume(data(), None, &[], &device, &Interrupt::none()))
                .unwrap();
        assert_eq!(go(&mut resumed, STEPS), losses[STOP as usize..]);
        (losses, block_on(resumed.evaluate(None)).unwrap().loss)
    };
    let ((open_losses, open_eval), (masked_losses, masked_eval)) = (run(false), run(true));
    assert_ne!(
        open_losses[0], masked_losses[0],
        "the first loss sees the mask"
    );
    assert_ne!(open_eval, masked_eval);
    // A run with the mask needs the ends of documents.
    let config = TrainConfig {
        document_mask: true,
        ..config(&optimizers()[0], "f32", &schedules()[0])
    };
    let model = block_on(Model::init(
        &shape(),
        3,
        config.precision,
        &device,
        &Interrupt::none(),
    ))
    .unwrap();
    assert_eq!(
        Trainer::new(model, dataset(), config)
            .map(|_| ())
            .unwrap_err()
            .code(),
        "config.invalid"
    );
}

#[test]
fn limits_refuse_a_tensor_that_no_kernel_could_see_whole() {
    // The largest tensor: the table of 13 letters, 8 wide.
    let limits = |most| DeviceLimits {
        max_buffer_size: 1 << 20,
        max_storage_buffer_binding_size: most,
    };
    let train = TrainConfig {
        batch_size: 1,
        seq_len: 2,
        ..TrainConfig::default()
    };
    check_limits(&shape(), &train, None, limits(4 * 13 * 8)).unwrap();
    let refused = check_limits(&shape(), &train, None, limits(4 * 13 * 8 - 1)).unwrap_err();
    assert!(
        matches!(
            refused,
            Error::LimitExceeded {
                limit: "maxStorageBufferBindingSize",
                need: 416,
                have: 415
            }
        ),
        "{refused}"
    );
}

/// Resumes the saved run with other settings.
fn changed(changes: Value, overrides: &[&str]) -> Result<Trainer, Error> {
    resumed(
        config(
            &json!({"type": "sgd", "weight_decay": 0.1}),
            "f32",
            &schedules()[1],
        ),
        changes,
        overrides,
    )
}

/// Saves a run with these settings and resumes it with others.
fn resumed(saved: TrainConfig, changes: Value, overrides: &[&str]) -> Result<Trainer, Error> {
    let device = cpu().inner();
    let mut first = start(saved, &device);
    go(&mut first, 2);
    let checkpoint = open(save(&first));
    let config = checkpoint.manifest().train.overlaid(changes).unwrap();
    let overrides: Vec<String> = overrides.iter().map(|name| name.to_string()).collect();
    block_on(checkpoint.resume(
        dataset(),
        Some(config),
        &overrides,
        &device,
        &Interrupt::none(),
    ))
}

fn refused(changes: Value, overrides: &[&str]) -> Vec<Fault> {
    faults(changed(changes, overrides))
}

fn faults(resumed: Result<Trainer, Error>) -> Vec<Fault> {
    match resumed.map(|_| ()) {
        Err(Error::ResumeMismatch(faults)) => faults,
        other => panic!("{other:?}"),
    }
}

fn keys(faults: &[Fault]) -> Vec<&str> {
    faults.iter().map(|fault| fault.key.as_str()).collect()
}

fn many() -> Value {
    json!({"learning_rate": 2e-2, "steps": 20, "max_grad_norm": 0.5, "optimizer": {"weight_decay": 0.2}, "schedule": {"total_steps": 20}})
}

#[test]
fn override_absent_lists_every_difference_and_names_both_values() {
    let faults = refused(many(), &[]);
    assert_eq!(
        keys(&faults),
        [
            "learning_rate",
            "max_grad_norm",
            "optimizer.weight_decay",
            "schedule.total_steps",
            "steps"
        ]
    );
    assert_eq!(
        (faults[2].rule.as_str(), faults[2].value.as_str()),
        ("0.1", "0.2")
    );
}

#[test]
fn override_permits_what_it_names_and_nothing_else() {
    let faults = refused(many(), &["learning_rate", "optimizer"]);
    assert_eq!(
        keys(&faults),
        ["max_grad_norm", "schedule.total_steps", "steps"]
    );
    for overrides in [
        &[
            "learning_rate",
            "max_grad_norm",
            "optimizer.weight_decay",
            "schedule.total_steps",
            "steps",
        ][..],
        &["all"],
    ] {
        let mut run = changed(many(), overrides).unwrap();
        // The cosine now falls over 20 steps from the new peak, and the run may go that far.
        assert!(run.learning_rate(8) > 1e-2, "{}", run.learning_rate(8));
        assert_eq!((run.config().max_grad_norm, run.config().steps), (0.5, 20));
        assert_eq!(go(&mut run, 9).len(), 7);
    }
    // Not needed for settings that only shape the rest of the schedule, and harmless if nothing differs.
    changed(json!({}), &["learning_rate"]).unwrap();
}

#[test]
fn schedule_over_the_whole_run_follows_its_steps_and_no_other_does() {
    // Saved: a cosine over all 8 steps.
    assert_eq!(
        keys(&refused(json!({"steps": 20}), &[])),
        ["schedule.total_steps", "steps"]
    );
    let total = |changes: Value, overrides: &[&str]| {
        let run = changed(changes, overrides).unwrap();
        serde_json::to_value(&run.config().schedule).unwrap()["total_steps"].clone()
    };
    assert_eq!(total(json!({"steps": 20}), &["steps"]), json!(20));
    assert_eq!(
        total(
            json!({"steps": 7, "schedule": {"min_learning_rate": 0.0}}),
            &["steps"]
        ),
        json!(7)
    );
    assert_eq!(
        total(
            json!({"steps": 20, "schedule": {"total_steps": 8}}),
            &["steps"]
        ),
        json!(8)
    );
    assert_eq!(
        keys(&refused(
            json!({"steps": 20, "schedule": {"total_steps": 30}}),
            &["steps"]
        )),
        ["schedule.total_steps"]
    );
    let config = config(
        &json!({"type": "sgd"}),
        "f32",
        &json!({"type": "linear", "total_steps": 7}),
    );
    let longer = config.overlaid(json!({"steps": 20})).unwrap();
    assert_eq!(
        longer.schedule, config.schedule,
        "a length of its own stays"
    );
    let wsd = TrainConfig {
        schedule: serde_json::from_value(json!({"type": "wsd"})).unwrap(),
        ..config
    };
    assert_eq!(
        wsd.overlaid(json!({"steps": 20})).unwrap().schedule,
        wsd.schedule
    );
}

#[test]
fn override_cannot_change_what_the_state_and_the_data_order_depend_on() {
    let other = json!({"optimizer": {"type": "adamw"}, "seed": 4, "seq_len": 5, "precision": "bf16", "validation_fraction": 0.1});
    let faults = refused(other, &["all"]);
    assert_eq!(
        keys(&faults),
        [
            "optimizer.type",
            "precision",
            "seed",
            "seq_len",
            "validation_fraction"
        ]
    );
    assert!(
        faults
            .iter()
            .all(|fault| fault.rule.ends_with("cannot be overridden"))
    );
    let groups = json!({"groups": [{"pattern": "*norm*", "optimizer": {"type": "adamw"}}, {"pattern": "*"}]});
    assert_eq!(
        keys(&refused(groups, &["groups"])),
        ["groups[0].optimizer.type"]
    );
    // A momentum that was never kept is missing in the state.
    let Err(Error::StateMismatch(faults)) =
        changed(json!({"optimizer": {"momentum": 0.9}}), &["optimizer"])
    else {
        panic!("resumed")
    };
    assert!(faults.iter().all(|fault| fault.key.ends_with(":momentum")) && !faults.is_empty());
}

#[test]
fn override_of_an_unknown_setting_is_refused_by_name() {
    let Err(Error::InvalidConfig(faults)) =
        changed(json!({}), &["learning_rat", "all", "optimizer.betas"])
    else {
        panic!("resumed")
    };
    assert_eq!(
        faults
            .iter()
            .map(|fault| fault.value.as_str())
            .collect::<Vec<_>>(),
        ["learning_rat", "optimizer.betas"]
    );
}

#[test]
fn override_compares_the_groups_rules_in_force() {
    let (norms, rest) = (
        json!({"pattern": "*norm*", "optimizer": {"weight_decay": 0.0}}),
        json!({"pattern": "*"}),
    );
    let groups = json!({"groups": [norms, rest]});
    // The run had no groups: one of everything.
    let listed = refused(groups.clone(), &[]);
    assert_eq!(
        keys(&listed),
        [
            "groups[0].optimizer.weight_decay",
            "groups[0].pattern",
            "groups[1].pattern"
        ]
    );
    assert_eq!(
        (listed[0].rule.as_str(), listed[0].value.as_str()),
        ("0.1", "0.0")
    );
    assert_eq!(go(&mut changed(groups, &["groups"]).unwrap(), 3).len(), 1);
    changed(
        json!({"groups": [{"pattern": "*", "optimizer": {"weight_decay": 0.1}}]}),
        &[],
    )
    .unwrap();
    changed(
        json!({"groups": [{"pattern": "*", "weight_decay": 0.1}]}),
        &[],
    )
    .unwrap();
    assert_eq!(
        keys(&refused(
            json!({"groups": [{"pattern": "*", "weight_decay": 0.2}]}),
            &[]
        )),
        ["groups[0].weight_decay"]
    );
    // A setting that a group takes from the run is one difference, not two.
    let saved = || TrainConfig {
        groups: GroupConfig::no_decay(),
        ..config(&json!({"type": "adamw"}), "f32", &schedules()[0])
    };
    let other = json!({"optimizer": {"beta1": 0.8}});
    assert_eq!(
        keys(&faults(resumed(saved(), other, &[]))),
        ["optimizer.beta1"]
    );
    // A group of another kind than the run cannot become one of the run's kind.
    let kinds = TrainConfig {
        groups: vec![GroupConfig {
            optimizer: Some(OptimizerConfig::Adamw(AdamwConfig::default())),
            ..GroupConfig::new("*")
        }],
        ..config(&json!({"type": "sgd"}), "f32", &schedules()[0])
    };
    let kinds = faults(resumed(kinds, json!({"groups": []}), &["all"]));
    assert_eq!(
        (keys(&kinds), kinds[0].rule.as_str()),
        (
            vec!["groups[0].optimizer.type"],
            "\"adamw\", which cannot be overridden"
        )
    );
}

#[test]
fn values_in_force_are_no_difference_when_they_are_spelled_out() {
    let mini = config(
        &json!({"type": "apollo", "mini": true}),
        "f32",
        &schedules()[0],
    );
    resumed(
        mini.clone(),
        json!({"optimizer": {"rank": 1, "scale": "auto"}}),
        &[],
    )
    .unwrap();
    assert_eq!(
        keys(&faults(resumed(
            mini,
            json!({"optimizer": {"rank": 2, "scale": 64}}),
            &[]
        ))),
        ["optimizer.rank", "optimizer.scale"]
    );
    let infinite = config(&json!({"type": "sgd"}), "f32", &json!({"type": "infinite"}));
    resumed(
        infinite,
        json!({"schedule": {"constant_learning_rate": 1e-2}}),
        &[],
    )
    .unwrap();
}

#[test]
fn annealing_may_get_a_length_of_the_other_kind() {
    let saved = config(
        &json!({"type": "sgd"}),
        "f32",
        &json!({"type": "infinite", "tau": 4.0}),
    );
    let steps = resumed(
        saved.clone(),
        json!({"schedule": {"annealing_steps": 5, "start_annealing": true}}),
        &[],
    )
    .unwrap();
    let mut whole = saved;
    whole.schedule = serde_json::from_value(
        json!({"type": "infinite", "annealing_steps": 5, "start_annealing": true}),
    )
    .unwrap();
    assert_eq!(steps.config().schedule, whole.schedule);
    assert!(steps.learning_rate(7) < 1e-2);
}

/// Saves a run of three steps whose rate was then set by hand.
fn by_hand(rate: f64) -> Files {
    let mut first = start(
        config(
            &json!({"type": "sgd", "weight_decay": 0.1}),
            "f32",
            &schedules()[0],
        ),
        &cpu().inner(),
    );
    go(&mut first, 3);
    first.set_learning_rate(Some(rate)).unwrap();
    save(&first)
}

pub fn resume(files: Files, changes: Value, overrides: &[&str]) -> Result<Trainer, Error> {
    let checkpoint = open(files);
    let config = checkpoint.manifest().train.overlaid(changes).unwrap();
    let overrides: Vec<String> = overrides.iter().map(|name| name.to_string()).collect();
    block_on(checkpoint.resume(
        dataset(),
        Some(config),
        &overrides,
        &cpu().inner(),
        &Interrupt::none(),
    ))
}

#[test]
fn rate_set_by_hand_lasts_until_a_resume_sets_the_learning_rate() {
    let rate = |changes: Value, overrides: &[&str]| {
        resume(by_hand(5e-3), changes, overrides)
            .unwrap()
            .learning_rate(4)
    };
    assert_eq!(rate(json!({}), &[]), 5e-3);
    assert_eq!(rate(json!({"steps": 9}), &["all"]), 5e-3);
    assert_eq!(
        rate(json!({"learning_rate": 2e-2}), &["learning_rate"]),
        2e-2
    );
    assert_eq!(rate(json!({"learning_rate": 2e-2}), &["all"]), 2e-2);
    // Overridden although it is the saved value: this rate is requested.
    assert_eq!(
        rate(json!({"learning_rate": 1e-2}), &["learning_rate"]),
        1e-2
    );
}

#[test]
fn rate_set_by_hand_must_be_one_that_every_group_can_use() {
    let groups = json!([
        {"pattern": "*norm*", "weight_decay": 0.0, "learning_rate_scale": 1e9},
        {"pattern": "*mlp*", "learning_rate_scale": 4.0, "weight_decay": 0.5},
        {"pattern": "*embed*", "weight_decay": 1.0, "learning_rate_scale": 90.0, "frozen": true},
        {"pattern": "*"}
    ]);
    let mut run = config(
        &json!({"type": "sgd", "weight_decay": 0.1}),
        "f32",
        &schedules()[0],
    );
    run.groups = serde_json::from_value(groups).unwrap();
    let mut trainer = start(run, &cpu().inner());
    for good in [0.0, 1e-12, 0.25, 0.499] {
        trainer.set_learning_rate(Some(good)).unwrap();
        assert_eq!(trainer.learning_rate(1), good);
    }
    for (bad, faults) in [
        (-1.0, 1),
        (f64::NAN, 1),
        (0.5, 1),
        (10.0, 2),
        (f64::INFINITY, 3),
        (1e300, 3),
    ] {
        let Err(Error::InvalidConfig(found)) = trainer.set_learning_rate(Some(bad)) else {
            panic!("{bad} was taken")
        };
        assert_eq!(
            (found.len(), found[0].key.as_str()),
            (faults, "learning_rate"),
            "{bad}: {found:?}"
        );
        assert_eq!(
            trainer.learning_rate(1),
            0.499,
            "a refused rate changes nothing"
        );
    }
    trainer.set_learning_rate(None).unwrap();
    assert_eq!(trainer.learning_rate(8), 1e-2);
}

#[test]
fn rate_set_by_hand_is_checked_against_the_settings_of_the_resume() {
    let changes = json!({"optimizer": {"weight_decay": 90.0}});
    let Err(Error::InvalidConfig(faults)) = resume(by_hand(2e-2), changes.clone(), &["optimizer"])
    else {
        panic!("resumed")
    };
    assert_eq!(keys(&faults), ["manual_learning_rate"]);
    resume(by_hand(1e-2), changes, &["optimizer"]).unwrap();
}

/// Returns a checkpoint with a changed manifest, which no hash protects.
fn edited(edit: impl FnOnce(&mut Value)) -> Vec<Rc<dyn ByteSource>> {
    let mut files = by_hand(5e-3);
    let manifest = files
        .iter_mut()
        .find(|(name, _)| name == checkpoint::MANIFEST)
        .unwrap();
    let mut json = serde_json::from_slice(&manifest.1).unwrap();
    edit(&mut json);
    manifest.1 = json.to_string().into_bytes();
    files
        .into_iter()
        .map(|(name, bytes)| Rc::new(MemorySource::new(name, bytes)) as Rc<dyn ByteSource>)
        .collect()
}

#[test]
fn progress_that_no_run_has_is_a_damaged_checkpoint() {
    for (part, key, values) in [
        (
            "progress",
            "manual_learning_rate",
            vec![json!(-1), json!(1e300), json!(10.0)],
        ),
        (
            "progress",
            "tokens",
            vec![json!(u64::MAX), json!(1u64 << 53)],
        ),
        ("progress", "completed_steps", vec![json!(u64::MAX)]),
        ("progress", "schedule_start", vec![json!(u64::MAX)]),
        ("loader", "epoch", vec![json!(u64::MAX)]),
    ] {
        for value in values {
            let error = Checkpoint::open(edited(|json| json[part][key] = value.clone()), None)
                .map(|_| ())
                .unwrap_err();
            assert_eq!(error.code(), "checkpoint.corrupt", "{key} {value}: {error}");
            assert!(error.to_string().contains(key), "{error}");
        }
    }
    // The largest count is valid; the sum of tokens saturates far beyond it.
    let checkpoint = Checkpoint::open(
        edited(|json| json["progress"]["tokens"] = json!((1u64 << 53) - 1)),
        None,
    )
    .unwrap();
    let mut run =
        block_on(checkpoint.resume(dataset(), None, &[], &cpu().inner(), &Interrupt::none()))
            .unwrap();
    block_on(run.step()).unwrap();
    assert_eq!(run.progress().tokens, (1 << 53) - 1 + 12);
    let progress = tabtune::train::Progress {
        tokens: u64::MAX,
        ..run.progress()
    };
    let mut full = Trainer::resume(
        run.model().clone(),
        dataset(),
        run.loader_state(),
        run.config().clone(),
        progress,
    )
    .unwrap();
    block_on(full.step()).unwrap();
    assert_eq!(full.progress().tokens, u64::MAX);
}
