//! A run that is exported with its state and continued from it, compared with an unbroken run, for every form that holds state.

use std::path::Path;
use std::rc::Rc;

use serde_json::{Map, Value, json};
use tabtune::bundle::{Bundle, FileStream, ModelAssets};
use tabtune::config::TrainConfig;
use tabtune::data::Dataset;
use tabtune::error::Error;
use tabtune::export::{ExportSource, export};
use tabtune::formats::{ByteSource, MemorySource};
use tabtune::interrupt::Interrupt;
use tabtune::portable::{PortableModelBundle, RunState, SharedFiles, TrainingGroups};
use tabtune::state::{
    ModelStateGroupAssignment, PortableModelStateDict, Residency, SourceWord, Tensor,
};
use tabtune::tokenizer::Tokenizer;
use tabtune::train::Trainer;
use tabtune_tests::{block_on, cpu, weights};

use crate::resume::{LETTERS, config, dataset, go, save, shape, start};

const STOP: u64 = 5;
const STEPS: u64 = 10;

/// Settings of a run with two groups of their own rates and a frozen one.
pub fn settings(optimizer: &Value, precision: &str) -> TrainConfig {
    let groups = json!({"steps": STEPS, "groups": [
        {"pattern": "*norm*", "frozen": true},
        {"pattern": "*mlp*", "learning_rate_scale": 0.5, "weight_decay": 0.1},
        {"pattern": "*"}
    ]});
    config(optimizer, precision, &json!({"type": "constant"}))
        .overlaid(groups)
        .unwrap()
}

/// The same without what the groups of a state say.
fn bare(settings: &TrainConfig) -> TrainConfig {
    TrainConfig {
        optimizer: Default::default(),
        groups: Vec::new(),
        learning_rate: TrainConfig::default().learning_rate,
        schedule: Default::default(),
        ..settings.clone()
    }
}

pub fn written(mut stream: FileStream) -> SharedFiles {
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    files.extend(
        stream
            .files()
            .iter()
            .map(|file| (file.name.clone(), Vec::new())),
    );
    while let Some(chunk) = block_on(stream.next_chunk()).unwrap() {
        files[chunk.file].1.extend(chunk.bytes);
    }
    shared(files)
}

fn shared(files: Vec<(String, Vec<u8>)>) -> SharedFiles {
    let source = |(name, bytes)| Rc::new(MemorySource::new(name, bytes)) as Rc<dyn ByteSource>;
    files.into_iter().map(source).collect()
}

pub fn assets() -> ModelAssets {
    ModelAssets::of_config(&shape(), Some(Tokenizer::characters(LETTERS).unwrap()))
}

fn exported(run: &Trainer, options: Value) -> SharedFiles {
    let source = ExportSource::of_trainer(run, assets(), None, "data").unwrap();
    let options = serde_json::from_value(options).unwrap();
    written(block_on(export(&source, Vec::new(), &options)).unwrap())
}

/// Each form that holds state, and whether it has the record of the training.
fn forms(run: Trainer) -> Vec<(&'static str, SharedFiles, bool)> {
    let folder =
        json!({"format": "safetensors", "optimizer": true, "manifest": true, "dtype": "stored"});
    let document =
        json!({"format": "json", "optimizer": true, "manifest": true, "encoding": "base64"});
    let mut forms = vec![
        ("folder", exported(&run, folder), true),
        ("json", exported(&run, document), true),
        ("checkpoint", shared(save(&run)), true),
    ];
    let training = TrainingGroups::new(run);
    let bundle = PortableModelBundle::from_training_groups(&training, &assets(), None).unwrap();
    let safetensors = written(block_on(bundle.export_safetensors()).unwrap());
    forms.push(("safetensors", safetensors, false));
    forms
}

fn continued(files: &SharedFiles, settings: &TrainConfig) -> tabtune::Result<Trainer> {
    let state = block_on(RunState::open(files, None))?;
    resumed(&state, &bare(settings), &Map::new(), &[])
}

fn resumed(
    state: &RunState,
    settings: &TrainConfig,
    given: &Map<String, Value>,
    overrides: &[String],
) -> tabtune::Result<Trainer> {
    let bundle = Bundle::without_files(shape());
    let config = state.settings(&bundle, settings, given, overrides)?;
    block_on(state.resume(
        &bundle,
        config,
        overrides,
        dataset(),
        &cpu().inner(),
        &Interrupt::none(),
    ))
}

#[test]
fn run_continues_from_each_form_with_the_bits_of_an_unbroken_one() {
    for optimizer in [
        json!({"type": "adamw"}),
        json!({"type": "adafactor"}),
        json!({"type": "apollo", "rank": 2}),
        json!({"type": "sgd", "momentum": 0.9}),
    ] {
        for precision in ["f32", "bf16"] {
            let settings = settings(&optimizer, precision);
            let mut whole = start(settings.clone(), &cpu().inner());
            let mut first = start(settings.clone(), &cpu().inner());
            go(&mut first, STOP);
            go(&mut whole, STOP);
            let later = go(&mut whole, STEPS);
            for (form, files, recorded) in forms(first_again(&settings)) {
                let mut run = continued(&files, &settings).unwrap();
                assert_eq!(run.progress().completed_steps, STOP, "{form}");
                if !recorded {
                    (0..STOP).for_each(|_| run.skip_batch().unwrap());
                }
                let losses = go(&mut run, STEPS);
                assert_eq!(losses, later, "{form} {precision} {optimizer}");
                let same = weights(run.model()) == weights(whole.model());
                assert!(same, "{form} {precision} {optimizer}");
            }
        }
    }
}

/// A run of the first steps.
fn first_again(settings: &TrainConfig) -> Trainer {
    let mut run = start(settings.clone(), &cpu().inner());
    go(&mut run, STOP);
    run
}

fn state() -> RunState {
    let settings = settings(&json!({"type": "adamw"}), "f32");
    let training = TrainingGroups::new(first_again(&settings));
    let bundle = PortableModelBundle::from_training_groups(&training, &assets(), None).unwrap();
    let files = written(block_on(bundle.export_safetensors()).unwrap());
    block_on(RunState::open(&files, None)).unwrap()
}

/// The state with other tensors and groups.
fn changed(
    state: &RunState,
    tensors: impl Fn(&Tensor) -> Option<Tensor>,
    groups: impl Fn(&mut Vec<ModelStateGroupAssignment>),
) -> tabtune::Result<RunState> {
    let mut all = state.state_dict.groups().to_vec();
    groups(&mut all);
    let kept = state.state_dict.tensors().values().filter_map(tensors);
    let kept = kept.map(|tensor| (tensor.name.clone(), tensor)).collect();
    let identity = state.state_dict.identity.clone();
    Ok(RunState {
        state_dict: PortableModelStateDict::new(identity, SourceWord::Tabtune, kept, all)?,
        ..state.clone()
    })
}

fn refused(state: tabtune::Result<RunState>) -> Vec<(String, String)> {
    let settings = bare(&settings(&json!({"type": "adamw"}), "f32"));
    let run = state.and_then(|state| resumed(&state, &settings, &Map::new(), &[]).map(drop));
    let Err(Error::Refused(list)) = run else {
        panic!("expected refusals");
    };
    let subject = |refusal: &tabtune::error::Refusal| refusal.subject.clone().unwrap_or_default();
    list.iter()
        .map(|refusal| (refusal.code.to_string(), subject(refusal)))
        .collect()
}

#[test]
fn states_that_do_not_fit_are_refused_by_name() {
    let state = state();
    let mlp = ["down_proj", "gate_proj", "up_proj"];
    let mlp = mlp.map(|name| format!("model.layers.0.mlp.{name}.weight"));
    // A group is missing: its parameters have none.
    let without_group = changed(
        &state,
        |tensor| (!(tensor.is_state() && tensor.name.contains("mlp"))).then(|| tensor.clone()),
        |groups| {
            groups.remove(1);
        },
    );
    let mut names: Vec<(String, String)> = refused(without_group);
    names.sort();
    let expected = mlp
        .clone()
        .map(|name| ("state.group.member-missing".to_string(), name));
    assert_eq!(names, expected);
    // A group is missing with all of its tensors.
    let without_tensors = changed(
        &state,
        |tensor| (!tensor.name.contains("mlp")).then(|| tensor.clone()),
        |groups| {
            groups.remove(1);
        },
    );
    let mut names = refused(without_tensors);
    names.sort();
    let expected = mlp.map(|name| ("model.tensor.missing".to_string(), name));
    assert_eq!(names, expected);
    let reshaped = |tensor: &Tensor| {
        let mut tensor = tensor.clone();
        if tensor.name == "model.norm.weight" {
            tensor.shape = vec![4, 2];
        }
        Some(tensor)
    };
    let shape = (
        "model.tensor.shape".to_string(),
        "model.norm.weight".to_string(),
    );
    assert_eq!(
        refused(changed(&state, reshaped, |_| ())),
        std::slice::from_ref(&shape)
    );
    let lion =
        |groups: &mut Vec<ModelStateGroupAssignment>| groups[2].optimizer.kind = "lion".into();
    let kind = changed(&state, |tensor| Some(tensor.clone()), lion);
    let unknown = ("state.group.kind".to_string(), "groups/2".to_string());
    assert_eq!(refused(kind), std::slice::from_ref(&unknown));
    // Faults of groups and of tensors together, and those of several groups.
    assert_eq!(
        refused(changed(&state, reshaped, lion)),
        [unknown, shape.clone()]
    );
    let wrong = |groups: &mut Vec<ModelStateGroupAssignment>| {
        for (group, key) in groups.iter_mut().zip(["beta1", "beta2"]) {
            group.optimizer.hyperparameters.remove(key);
        }
    };
    let absent = ["beta1", "beta2"].map(|key| {
        let code = "state.group.hyperparameter".to_string();
        (code, key.to_string())
    });
    assert_eq!(
        refused(changed(&state, reshaped, wrong)),
        [&absent[..], &[shape]].concat()
    );
    // The state of another optimizer than the group's.
    let kind = changed(
        &state,
        |tensor| Some(tensor.clone()),
        |groups| groups[2].optimizer.kind = "sgd".into(),
    );
    assert!(
        refused(kind)
            .iter()
            .all(|(code, _)| code == "state.group.state-words")
    );
}

#[test]
fn settings_that_contradict_the_state_need_an_override() {
    let state = state();
    let settings = bare(&settings(&json!({"type": "adamw"}), "f32"));
    let given: Map<String, Value> =
        serde_json::from_value(json!({"learning_rate": 0.5, "optimizer": {"beta1": 0.5}})).unwrap();
    let bundle = Bundle::without_files(shape());
    let error = state.settings(&bundle, &settings, &given, &[]).unwrap_err();
    let Error::ResumeMismatch(faults) = error else {
        panic!("{error}");
    };
    let keys: Vec<&str> = faults.iter().map(|fault| fault.key.as_str()).collect();
    assert_eq!(keys, ["learning_rate", "optimizer.beta1"]);
    let overrides = ["learning_rate", "optimizer.beta1"].map(String::from);
    let config = state.settings(&bundle, &settings, &given, &overrides);
    let config = config.unwrap();
    assert_eq!(config.learning_rate, 0.5);
}

#[test]
fn residency_elsewhere_is_reported_and_not_continued() {
    let state = state();
    let elsewhere = changed(
        &state,
        |tensor| Some(tensor.clone()),
        |groups| groups[1].residency = Some(Residency::Offloaded),
    )
    .unwrap();
    let settings = bare(&settings(&json!({"type": "adamw"}), "f32"));
    let notices = |state: &RunState, overrides: &[String]| {
        let run = resumed(state, &settings, &Map::new(), overrides).unwrap();
        assert_eq!(run.groups()[0].residency, Some(Residency::Device));
        let mut notices = run.notices().to_vec();
        notices.retain(|notice| notice.code == "state.residency");
        let subjects = notices.into_iter().map(|notice| notice.subject.unwrap());
        Vec::from_iter(subjects)
    };
    assert_eq!(notices(&elsewhere, &[]), ["\"groups/1\""]);
    assert!(notices(&state, &[]).is_empty());
}

/// Groups of different rates share the largest, and each has its part of it.
#[test]
fn rates_of_groups_become_scales() {
    let state = state();
    let rates = [0.3, 0.007, 0.1];
    let state = changed(
        &state,
        |tensor| Some(tensor.clone()),
        |groups| {
            for (group, rate) in groups.iter_mut().zip(rates) {
                let settings = &mut group.optimizer.hyperparameters;
                settings.insert("learning_rate".into(), rate);
                group.parameter_semantics.learning_rate_scale = 1.0;
            }
        },
    )
    .unwrap();
    let settings = bare(&settings(&json!({"type": "adamw"}), "f32"));
    let bundle = Bundle::without_files(shape());
    let config = state.settings(&bundle, &settings, &Map::new(), &[]);
    let config = config.unwrap();
    assert_eq!(config.learning_rate, 0.3);
    for (group, rate) in config.groups.iter().zip(rates) {
        assert_eq!(group.learning_rate_scale * config.learning_rate, rate);
    }
}

fn golden(path: &str) -> Rc<dyn ByteSource> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("golden")
        .join(path);
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    Rc::new(MemorySource::new(name, std::fs::read(path).unwrap()))
}

/// The state that `torch.optim.AdamW` saved over three groups continues with PyTorch's own losses, alone or next to its weights.
#[test]
fn state_of_a_torch_optimizer_continues_with_its_losses() {
    let losses = golden("torch/losses.json");
    let mut bytes = vec![0; losses.len() as usize];
    losses.read_at(0, &mut bytes).unwrap();
    let losses: Vec<f64> = serde_json::from_slice(&bytes).unwrap();
    let weights = golden("torch/model.safetensors");
    let optimizer = golden("torch/optimizer.safetensors");
    let model = vec![golden("models/llama3/config.json"), Rc::clone(&weights)];
    let model = tabtune::model::open_model(model).unwrap();
    let tokens = (0..1000u32).map(|i| (i * i / 3 + i) % 12).collect();
    let settings = json!({"steps": 15, "batch_size": 2, "seq_len": 16, "data_order": "sequential", "max_grad_norm": 1e9});
    let settings = TrainConfig::default().overlaid(settings).unwrap();
    for files in [vec![Rc::clone(&optimizer)], vec![weights, optimizer]] {
        let state = block_on(RunState::open(&files, Some(&model))).unwrap();
        let config = state.settings(&model, &settings, &Map::new(), &[]).unwrap();
        assert_eq!(config.learning_rate, 2e-3);
        let data = Dataset::from_tokens(Vec::clone(&tokens), 0.0).unwrap();
        let (device, interrupt) = (cpu().inner(), Interrupt::none());
        let run = state.resume(&model, config, &[], data, &device, &interrupt);
        let mut run = block_on(run).unwrap();
        let steps: Vec<u64> = run
            .groups()
            .iter()
            .map(|group| group.applied_steps)
            .collect();
        assert_eq!(steps, [5, 5, 5]);
        for (own, torch) in go(&mut run, 15).into_iter().zip(&losses) {
            // Both compute in f32; eps is added before PyTorch's correction of v and after ours.
            assert!((own - torch).abs() < 1e-5, "{own} {torch}");
        }
    }
}

/// PyTorch's SGD counts no steps: its buffers continue as those of one step.
#[test]
fn buffers_of_torch_sgd_continue() {
    let name = "model.norm.weight";
    let groups = json!([{"lr": 0.1, "momentum": 0.9, "dampening": 0, "weight_decay": 0, "nesterov": false, "param_names": [name]},
        {"lr": 0.1, "momentum": 0.9, "dampening": 0, "weight_decay": 0, "nesterov": false, "param_names": []}]);
    let mut groups = groups;
    let model = start(settings(&json!({"type": "adamw"}), "f32"), &cpu().inner());
    let others: Vec<String> = model
        .model()
        .parameters()
        .into_iter()
        .map(|info| info.name)
        .filter(|other| other != name)
        .collect();
    groups[1]["param_names"] = json!(others);
    let header = json!({
        "__metadata__": {"param_groups": groups.to_string()},
        format!("state.{name}.momentum_buffer"): {"dtype": "F32", "shape": [8], "data_offsets": [0, 32]},
    });
    let header = header.to_string();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.bytes());
    bytes.extend([0; 32]);
    let files = shared(vec![("optimizer.safetensors".into(), bytes)]);
    let weights = exported(&model, json!({"format": "safetensors"}));
    let bundle = tabtune::model::open_model(weights).unwrap();
    let state = block_on(RunState::open(&files, Some(&bundle))).unwrap();
    assert_eq!(state.completed_steps(), 1);
    let config = state
        .settings(
            &bundle,
            &bare(&settings(&json!({"type": "adamw"}), "f32")),
            &Map::new(),
            &[],
        )
        .unwrap();
    let (device, interrupt) = (cpu().inner(), Interrupt::none());
    let run = state.resume(&bundle, config, &[], dataset(), &device, &interrupt);
    assert_eq!(block_on(run).unwrap().optim().with_state(), [name]);
}
