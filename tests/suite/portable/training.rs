//! A live trainer to a state dict and back.

use std::rc::Rc;

use serde_json::{Value, json};
use tabtune::bundle::ModelAssets;
use tabtune::config::TrainConfig;
use tabtune::data::Loader;
use tabtune::formats::{ByteSource, MemorySource};
use tabtune::interrupt::Interrupt;
use tabtune::portable::{
    ImportedBundle, PortableModelBundle, SharedFiles, TrainingGroups, open_checkpoint,
};
use tabtune::state::{
    Bytes, GroupClass, ModelStateGroupAssignment, PortableModelImportRequest,
    PortableModelStateDict, Residency, ResidencyPolicy, SourceWord, Tensor,
};
use tabtune::tokenizer::Tokenizer;
use tabtune::train::Trainer;
use tabtune_tests::{block_on, cpu, weights};

use crate::optim::rules;
use crate::resume::{Files, LETTERS, config, dataset, go, save, shape, start};

fn back(state: &PortableModelStateDict, settings: &TrainConfig) -> tabtune::Result<TrainingGroups> {
    block_on(state.to_training_groups(
        &shape(),
        settings,
        dataset(),
        &cpu().inner(),
        &Interrupt::none(),
    ))
}

/// Returns key and bytes of every tensor.
fn bytes(state: &PortableModelStateDict) -> Vec<(String, Vec<u8>)> {
    state
        .tensors()
        .keys()
        .map(|key| (key.clone(), block_on(state.tensor(key)).unwrap().1.to_vec()))
        .collect()
}

/// Returns the settings of a run without those that its groups determine.
fn bare(settings: &TrainConfig) -> TrainConfig {
    TrainConfig {
        optimizer: Default::default(),
        groups: Vec::new(),
        learning_rate: 0.5,
        schedule: Default::default(),
        ..settings.clone()
    }
}

fn stepped(run: &mut Trainer) -> f64 {
    let settings = run.config();
    let mut loader = Loader::for_run(
        run.dataset(),
        &TrainConfig {
            seed: 77,
            ..settings.clone()
        },
    )
    .unwrap();
    let batch = loader.next(run.dataset()).unwrap();
    block_on(run.step_on(&[batch])).unwrap().loss
}

/// Line 1 of ./README.md: parameters and state bit for bit, groups equal, for every rule with and without state; the next step has the same bits.
#[test]
fn training_groups_come_back_bit_for_bit() {
    for rule in rules() {
        for (precision, steps) in [("f32", 0), ("f32", 3), ("bf16", 3)] {
            let schedule =
                json!({"type": "wsd", "warmup_steps": 1, "decay_steps": 4, "decay_start_step": 2});
            let settings = config(&serde_json::to_value(&rule).unwrap(), precision, &schedule);
            let mut run = start(settings.clone(), &cpu().inner());
            go(&mut run, steps);
            let before = TrainingGroups::new(run);
            let state = PortableModelStateDict::from_training_groups(&before).unwrap();
            let mut after = back(&state, &bare(&settings)).unwrap();
            assert_eq!(after.groups(), before.groups());
            assert_eq!(
                weights(after.trainer.model()),
                weights(before.trainer.model())
            );
            let again = PortableModelStateDict::from_training_groups(&after).unwrap();
            assert_eq!(bytes(&again), bytes(&state));
            assert_eq!(
                block_on(again.digests()).unwrap(),
                block_on(state.digests()).unwrap()
            );
            let mut run = before.trainer;
            assert_eq!(
                stepped(&mut after.trainer),
                stepped(&mut run),
                "{rule:?} {precision}"
            );
            assert_eq!(
                weights(after.trainer.model()),
                weights(run.model()),
                "{rule:?} {precision}"
            );
        }
    }
}

fn mixed() -> TrainConfig {
    let groups = json!({"groups": [
        {"pattern": "*norm*", "frozen": true}, {"pattern": "*embed*", "optimizer": {"type": "sgd", "momentum": 0.5}},
        {"pattern": "*mlp*", "optimizer": {"type": "adafactor"}, "learning_rate_scale": 0.5, "weight_decay": 0.3},
        {"pattern": "*q_proj*", "optimizer": {"type": "apollo", "rank": 2}}, {"pattern": "*"}
    ]});
    config(
        &json!({"type": "adamw"}),
        "f32",
        &json!({"type": "cosine", "total_steps": 8}),
    )
    .overlaid(groups)
    .unwrap()
}

fn with_groups(
    state: &PortableModelStateDict,
    edit: impl FnOnce(&mut Vec<ModelStateGroupAssignment>),
) -> PortableModelStateDict {
    let mut groups = state.groups().to_vec();
    edit(&mut groups);
    PortableModelStateDict::new(
        state.identity.clone(),
        SourceWord::Tabtune,
        state.tensors().clone(),
        groups,
    )
    .unwrap()
}

/// Line 1 of ./README.md: residency, names, scales and applied steps are kept although no trainer uses them.
#[test]
fn plain_data_of_groups_are_carried() {
    let mut run = start(mixed(), &cpu().inner());
    go(&mut run, 2);
    let state = PortableModelStateDict::from_training_groups(&TrainingGroups::new(run)).unwrap();
    let state = with_groups(&state, |groups| {
        groups[1].group_id = "embedding".into();
        groups[1].class = GroupClass::Mixed;
        groups[1].model_tree_path = vec!["elsewhere".into()];
        groups[1].residency = Some(Residency::Offloaded);
        groups[1].residency_policy = Some(ResidencyPolicy {
            step: Residency::Device,
            idle: Residency::Host,
        });
        groups[4].parameter_semantics.weight_decay_scale = 0.5;
        groups[4].applied_steps = 9;
        groups[4].members.reverse();
        groups.swap(1, 3);
    });
    let mut training = back(&state, &bare(&mixed())).unwrap();
    assert_eq!(training.groups(), state.groups());
    assert_eq!(training.trainer.progress().completed_steps, 9);
    let settings = training.trainer.config();
    assert_eq!(
        settings.groups[4]
            .optimizer
            .as_ref()
            .unwrap()
            .weight_decay(),
        0.01 * 0.5
    );
    // Steps continue from each member's count.
    stepped(&mut training.trainer);
    let steps: Vec<u64> = training
        .groups()
        .iter()
        .map(|group| group.applied_steps)
        .collect();
    assert_eq!(steps, [0, 3, 3, 3, 9]);
}

#[test]
fn what_one_run_cannot_train_is_refused() {
    let mut run = start(mixed(), &cpu().inner());
    go(&mut run, 1);
    let state = PortableModelStateDict::from_training_groups(&TrainingGroups::new(run)).unwrap();
    let code =
        |state: &PortableModelStateDict| back(state, &mixed()).map(|_| ()).unwrap_err().code();
    let schedule = with_groups(&state, |groups| groups[2].scheduler = None);
    assert_eq!(code(&schedule), "state.group.hyperparameter");
    let kind = with_groups(&state, |groups| groups[4].optimizer.kind = "adam".into());
    assert_eq!(code(&kind), "state.group.kind");
    let weights_only = PortableModelStateDict::new(
        state.identity.clone(),
        SourceWord::Tabtune,
        state
            .tensors()
            .iter()
            .filter(|(_, entry)| !entry.is_state())
            .map(|(key, entry)| (key.clone(), entry.clone()))
            .collect(),
        Vec::new(),
    );
    assert_eq!(code(&weights_only.unwrap()), "state.group.member-missing");
    let renamed = |state: &PortableModelStateDict, from: &str, to: &str| {
        let request: PortableModelImportRequest = serde_json::from_value(
            json!({"key_remap": {"source_to_target": {from: to}, "rename_state": true}}),
        )
        .unwrap();
        state.select_and_remap(&request).unwrap().state_dict
    };
    assert_eq!(
        code(&renamed(&state, "model.norm.weight", "other")),
        "model.tensor.missing"
    );
    let mut blocks = state.tensors().clone();
    let (name, bytes) = ("model.norm.weight", Bytes::host(vec![0; 34]));
    let tensor = Tensor::parameter(name, "GGML:Q8_0", &[32], bytes);
    blocks.insert(name.into(), tensor);
    let blocks = PortableModelStateDict::new(
        state.identity.clone(),
        SourceWord::Tabtune,
        blocks,
        state.groups().to_vec(),
    )
    .unwrap();
    assert_eq!(code(&blocks), "state.tensor.quantised");
}

fn shared(files: Files) -> SharedFiles {
    files
        .into_iter()
        .map(|(name, bytes)| Rc::new(MemorySource::new(name, bytes)) as Rc<dyn ByteSource>)
        .collect()
}

fn imported(files: &SharedFiles) -> ImportedBundle {
    block_on(PortableModelBundle::import_checkpoint(
        files,
        &PortableModelImportRequest::default(),
    ))
    .unwrap()
}

/// Lines 27 and 29 of ./README.md: a checkpoint is the state of its run, without a trainer being made.
#[test]
fn checkpoint_is_imported_as_the_state_of_its_run() {
    let mut run = start(mixed(), &cpu().inner());
    go(&mut run, 2);
    let files = shared(save(&run));
    let imported = imported(&files);
    let assets = ModelAssets::of_config(&shape(), Some(Tokenizer::characters(LETTERS).unwrap()));
    let training = TrainingGroups::new(run);
    let live = PortableModelBundle::from_training_groups(&training, &assets, None).unwrap();
    let bundle = imported.bundle;
    assert_eq!(bundle.state_dict.groups(), training.groups());
    assert_eq!(
        block_on(bundle.state_dict.digests()).unwrap(),
        block_on(live.state_dict.digests()).unwrap()
    );
    assert_eq!(
        block_on(bundle.bundle_digest()).unwrap(),
        block_on(live.bundle_digest()).unwrap()
    );
    assert_eq!(bundle.metadata.tokenizer, live.metadata.tokenizer);
    assert_eq!(bundle.metadata.config, Some(shape()));
    assert_eq!(
        (
            bundle.state_dict.source_format,
            bundle.metadata.base.as_ref()
        ),
        (SourceWord::Checkpoint, None)
    );
    assert_eq!(
        back(&bundle.state_dict, &bare(&mixed())).unwrap().groups(),
        training.groups()
    );
    // Only headers are read to open it as a plan.
    let opened = open_checkpoint(&files).unwrap();
    assert_eq!(opened.state.files.len(), 2);
    assert_eq!(
        opened.state.manifest.unwrap().tokenizer,
        live.manifest().tokenizer
    );
}

#[test]
fn checkpoint_whose_tokenizer_is_another_is_corrupt() {
    let mut run = start(mixed(), &cpu().inner());
    go(&mut run, 1);
    let mut files = save(&run);
    let manifest = &mut files
        .iter_mut()
        .find(|(name, _)| name == "checkpoint.json")
        .unwrap()
        .1;
    let mut document: Value = serde_json::from_slice(manifest).unwrap();
    document["tokenizer"]["record"]["vocab_size"] = json!(14);
    *manifest = document.to_string().into_bytes();
    assert_eq!(
        open_checkpoint(&shared(files)).unwrap_err().code(),
        "checkpoint.corrupt"
    );
}
