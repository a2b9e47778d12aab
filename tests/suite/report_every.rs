//! Steps whose reports are read together: the same bits as one by one; a step that is not finite changes nothing, wherever it is among the
//! submitted steps.

use serde_json::{Value, json};
use tabtune::config::{Precision, TrainConfig};
use tabtune::data::{Batch, Dataset, IGNORE_INDEX, LoaderState};
use tabtune::device::Device;
use tabtune::error::Error;
use tabtune::families::config_from_hf;
use tabtune::interrupt::Interrupt;
use tabtune::model::{Model, ParamMap};
use tabtune::train::{StepReport, Trainer};
use tabtune_tests::{block_on, cpu, gpu, weights};

pub const VOCAB: u32 = 13;
/// A token whose embedding is NaN.
pub const RARE: u32 = 12;
const STEPS: u64 = 17;
/// Tokens of a step: two sequences of six.
const PER_STEP: usize = 12;

/// Makes data in order, with [`RARE`] among the inputs of one step, or of none.
fn dataset(rare: Option<u64>) -> Dataset {
    let at = rare.map(|step| (step as usize - 1) * PER_STEP + 3);
    let tokens = (0..400)
        .map(|i| {
            if Some(i) == at {
                RARE
            } else {
                (i as u32 * i as u32 / 3 + i as u32) % RARE
            }
        })
        .collect();
    Dataset::from_tokens(tokens, 0.0).unwrap()
}

fn config(changes: Value) -> TrainConfig {
    let json = json!({
        "steps": 40, "batch_size": 2, "seq_len": 6, "learning_rate": 1e-2, "seed": 3, "data_order": "sequential", "max_grad_norm": 0.5,
        "report_every": 8, "optimizer": {"type": "adamw"}
    });
    serde_json::from_value(tabtune::config::overlay(json, changes)).unwrap()
}

struct Poison;

impl ParamMap for Poison {
    fn map<const D: usize>(
        &mut self,
        name: &str,
        tensor: burn::tensor::Tensor<D>,
    ) -> burn::tensor::Tensor<D> {
        // Burn has no arithmetic for packed bf16; no run with it reads the token.
        if name != "model.embed_tokens.weight" || tensor.dtype() != burn::tensor::DType::F32 {
            return tensor;
        }
        let rows: [_; D] = std::array::from_fn(|dim| {
            if dim == 0 {
                RARE as usize..VOCAB as usize
            } else {
                0..tensor.dims()[dim]
            }
        });
        let values = tensor.clone().slice(rows.clone()).mul_scalar(f32::NAN);
        tensor.slice_assign(rows, values)
    }
}

pub fn trainer(device: &Device, rare: Option<u64>, changes: Value) -> Trainer {
    let config = config(changes);
    let json = json!({
        "model_type": "llama", "vocab_size": VOCAB, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 8, "rms_norm_eps": 1e-5,
        "tie_word_embeddings": false
    });
    let shape = config_from_hf(&json).unwrap();
    let model = block_on(Model::init(
        &shape,
        3,
        config.precision,
        &device.inner(),
        &Interrupt::none(),
    ))
    .unwrap();
    Trainer::new(model.map(&mut Poison), dataset(rare), config).unwrap()
}

fn devices() -> Vec<Device> {
    [Some(cpu()), gpu()].into_iter().flatten().collect()
}

/// All state that a step depends on.
#[derive(Debug, PartialEq)]
pub struct State {
    pub weights: Vec<(String, Vec<u8>)>,
    states: Vec<(String, Vec<u8>)>,
    step: u64,
    tokens: u64,
    loader: LoaderState,
}

pub fn state(trainer: &Trainer) -> State {
    let states = trainer
        .optim()
        .state_tensors()
        .into_iter()
        .map(|(name, tensor)| (name, block_on(tensor.bytes()).unwrap()))
        .collect();
    let progress = trainer.progress();
    // Runs with the rare token have other data, and are compared in everything else.
    let loader = LoaderState {
        digest: String::new(),
        ..trainer.loader_state()
    };
    State {
        weights: weights(trainer.model()),
        states,
        step: progress.completed_steps,
        tokens: progress.tokens,
        loader,
    }
}

pub fn losses(reports: &[StepReport]) -> Vec<(u64, f64, f64)> {
    reports
        .iter()
        .map(|report| (report.step, report.loss, report.grad_norm))
        .collect()
}

#[test]
fn reports_read_together_are_those_of_steps_one_by_one() {
    for device in devices() {
        for changes in [
            json!({}),
            json!({"gradient_accumulation_steps": 3, "precision": "bf16", "optimizer": {"type": "apollo", "rank": 2}}),
        ] {
            let changed = |report_every: u64| {
                tabtune::config::overlay(changes.clone(), json!({ "report_every": report_every }))
            };
            let run = |report_every: u64| {
                let mut trainer = trainer(&device, None, changed(report_every));
                let mut reports = Vec::new();
                let mut most = 0;
                for step in 1..=STEPS {
                    reports.extend(block_on(trainer.advance()).unwrap());
                    most = most.max(step - reports.last().map_or(0, |report| report.step));
                }
                reports.extend(block_on(trainer.settle()).unwrap());
                (losses(&reports), state(&trainer), most)
            };
            let (expected, end, behind) = run(1);
            assert_eq!((expected.len() as u64, behind), (STEPS, 0));
            for report_every in [2, 8] {
                let (found, other, behind) = run(report_every);
                assert!(
                    found == expected && other == end,
                    "other bits with reports of {report_every}"
                );
                assert_eq!(
                    behind,
                    report_every + 1,
                    "a report comes two steps after the last of its window"
                );
            }
        }
    }
}

/// Returns the states before each of this many steps.
pub fn states(device: &Device, steps: u64) -> Vec<State> {
    let mut run = trainer(device, None, json!({"report_every": 1}));
    let mut before = vec![state(&run)];
    for _ in 1..steps {
        block_on(run.step()).unwrap();
        before.push(state(&run));
    }
    before
}

#[test]
fn loss_that_is_not_finite_changes_nothing_wherever_it_is() {
    for device in devices() {
        let before = states(&device, STEPS);
        for rare in 1..=STEPS {
            let mut run = trainer(&device, Some(rare), json!({}));
            let mut reports = Vec::new();
            let error = loop {
                match block_on(run.advance()) {
                    Ok(more) => reports.extend(more),
                    Err(error) => break error,
                }
            };
            assert!(
                matches!(error, Error::NonFinite { step, ref tensor, value } if step == rare && tensor == "loss" && value.is_nan()),
                "{error}"
            );
            assert_eq!(reports.len() as u64, rare - 1);
            assert!(
                state(&run) == before[rare as usize - 1],
                "step {rare} has changed something"
            );
            run.check_settled().unwrap();
            // The run continues after the batch.
            run.skip_batch().unwrap();
            for _ in 0..9 {
                block_on(run.advance()).unwrap();
            }
            assert_eq!(
                block_on(run.settle())
                    .unwrap()
                    .last()
                    .map(|report| report.step),
                Some(rare + 8)
            );
        }
    }
}

/// A sequence of one token that is not a counted target: the loss is finite although the token is NaN, but a gradient is not.
#[test]
fn gradient_that_is_not_finite_is_named_wherever_it_is() {
    let batch = |step: u64, rare: bool| {
        let mut inputs: Vec<i32> = (0..12)
            .map(|i| (i * i + 5 * i32::try_from(step).unwrap()) % 12)
            .collect();
        let mut targets: Vec<i32> = inputs.iter().map(|id| (id + 1) % 12).collect();
        (inputs[11], targets[11]) = (if rare { RARE as i32 } else { 0 }, IGNORE_INDEX);
        Batch {
            inputs,
            targets,
            batch_size: 12,
            seq_len: 1,
            document_starts: None,
        }
    };
    for device in devices() {
        let mut straight = trainer(&device, None, json!({"report_every": 1}));
        let mut before = vec![state(&straight)];
        for step in 1..STEPS {
            block_on(straight.step_on(&[batch(step, false)])).unwrap();
            before.push(state(&straight));
        }
        for rare in 1..=STEPS {
            let mut run = trainer(&device, None, json!({}));
            let refused =
                (1..).find_map(|step| block_on(run.advance_on(&[batch(step, step == rare)])).err());
            let Some(Error::NonFinite { step, tensor, .. }) = refused else {
                panic!("{refused:?}")
            };
            assert_eq!(
                (step, tensor.as_str()),
                (rare, "gradient of lm_head.weight")
            );
            assert!(
                state(&run) == before[rare as usize - 1],
                "step {rare} has changed something"
            );
        }
    }
}

/// Windows overlap: a step that counted for two of them would make a run look slower than it is.
#[test]
fn seconds_of_steps_are_no_more_than_those_of_the_run() {
    for report_every in [1, 2, 4] {
        let mut run = trainer(&cpu(), None, json!({ "report_every": report_every }));
        let clock = std::time::Instant::now();
        let mut reports = Vec::new();
        for _ in 0..24 {
            reports.extend(block_on(run.advance()).unwrap());
        }
        reports.extend(block_on(run.settle()).unwrap());
        let (of_steps, of_run) = (
            reports.iter().map(|report| report.secs).sum::<f64>(),
            clock.elapsed().as_secs_f64(),
        );
        assert!(
            reports.len() == 24 && of_steps > 0.0 && of_steps <= of_run,
            "reports of {report_every}: {of_steps} s in {of_run} s"
        );
    }
}

#[test]
fn state_is_refused_before_its_reports_are_there() {
    let mut run = trainer(&cpu(), Some(2), json!({}));
    for _ in 0..3 {
        assert_eq!(block_on(run.advance()).unwrap(), []);
    }
    assert_eq!(
        (
            run.progress().completed_steps,
            run.check_settled().unwrap_err().code()
        ),
        (3, "session.busy")
    );
    let reports = block_on(run.settle()).unwrap();
    // The second was refused; the next call reports it.
    assert_eq!((reports.len(), run.progress().completed_steps), (1, 1));
    run.check_settled().unwrap();
    assert_eq!(
        block_on(run.advance()).unwrap_err().code(),
        "train.non-finite"
    );
    let settings = |changes: Value| {
        config(changes)
            .validate()
            .map_err(|error| error.to_string())
    };
    let released = settings(json!({"gradient_release": true, "max_grad_norm": 0.0})).unwrap_err();
    assert!(
        released.contains("report_every") && settings(json!({"report_every": 0})).is_err(),
        "{released}"
    );
    assert_eq!(run.config().precision, Precision::F32);
}
