//! Steps whose loss or gradient norm is not finite: the state that they leave, and how a run skips them.

use std::rc::Rc;

use burn::tensor::Tensor;
use serde_json::{Value, json};
use tabtune::bundle::{FileStream, open_bundle};
use tabtune::config::{Precision, TrainConfig};
use tabtune::data::{Batch, Dataset, Loader};
use tabtune::device::Device;
use tabtune::error::Error;
use tabtune::families::{config_from_hf, config_to_hf};
use tabtune::formats::{ByteSource, MemorySource};
use tabtune::interrupt::Interrupt;
use tabtune::model::{Model, ParamMap};
use tabtune::train::Trainer;
use tabtune_tests::{block_on, cpu, gpu, weights};

const VOCAB: u32 = 13;
/// A token that occurs once in the data, among the inputs of step 3 only.
const RARE: u32 = 12;
const RARE_AT: u32 = 56;

fn dataset() -> Dataset {
    let tokens = (0..400u32)
        .map(|at| {
            if at == RARE_AT {
                RARE
            } else {
                (at * at / 3 + at) % RARE
            }
        })
        .collect();
    Dataset::from_tokens(tokens, 0.0).unwrap()
}

fn config(changes: Value) -> TrainConfig {
    let json = json!({
        "steps": 9, "batch_size": 2, "seq_len": 6, "gradient_accumulation_steps": 2, "learning_rate": 1e-2, "seed": 3,
        "data_order": "sequential", "optimizer": {"type": "adamw"}
    });
    serde_json::from_value(tabtune::config::overlay(json, changes)).unwrap()
}

/// Multiplies the rows of a parameter, from a first one on, by a factor. Both are given by the parameter's name.
struct Scale<F>(F);

impl<F: Fn(&str) -> Option<(usize, f32)>> ParamMap for Scale<F> {
    fn map<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) -> Tensor<D> {
        let Some((first, factor)) = (self.0)(name) else {
            return tensor;
        };
        let dims = tensor.dims();
        let rows: [_; D] = std::array::from_fn(|dim| {
            if dim == 0 {
                first..dims[0]
            } else {
                0..dims[dim]
            }
        });
        let values = tensor.clone().slice(rows.clone()).mul_scalar(factor);
        tensor.slice_assign(rows, values)
    }
}

/// Makes a model of one layer with separate embedding and head; `scale` changes rows of its parameters.
fn model(device: &Device, scale: impl Fn(&str) -> Option<(usize, f32)>) -> Model {
    let json = json!({
        "model_type": "llama", "vocab_size": VOCAB, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 8, "rms_norm_eps": 1e-5,
        "tie_word_embeddings": false
    });
    let shape = config_from_hf(&json).unwrap();
    block_on(Model::init(
        &shape,
        3,
        Precision::F32,
        &device.inner(),
        &Interrupt::none(),
    ))
    .unwrap()
    .map(&mut Scale(scale))
}

/// Makes a model in which only results that depend on [`RARE`] are NaN.
fn poisoned(device: &Device) -> Model {
    model(device, |name| {
        (name == "model.embed_tokens.weight").then_some((RARE as usize, f32::NAN))
    })
}

/// Makes a model whose loss is finite, but whose gradient exceeds f32 on its way back through the attention.
fn steep(device: &Device) -> Model {
    model(device, |name| match name {
        "lm_head.weight" => Some((0, 1e12)),
        "model.layers.0.self_attn.o_proj.weight" => Some((0, 1e35)),
        "model.layers.0.self_attn.v_proj.weight" => Some((0, 1e-30)),
        _ => None,
    })
}

#[test]
fn batches_are_skipped_and_training_continues_with_the_next() {
    for device in [Some(cpu()), gpu()].into_iter().flatten() {
        let mut trainer = Trainer::new(poisoned(&device), dataset(), config(json!({}))).unwrap();
        let mut losses: Vec<f64> = (0..2)
            .map(|_| block_on(trainer.step()).unwrap().loss)
            .collect();
        let (before, at) = (weights(trainer.model()), trainer.loader_state());
        for _ in 0..2 {
            // The refusal itself changes nothing, so the next call is refused again.
            let error = block_on(trainer.step()).unwrap_err();
            assert!(
                matches!(error, Error::NonFinite { step: 3, ref tensor, value } if tensor == "loss" && value.is_nan()),
                "{error}"
            );
            assert_eq!(
                (weights(trainer.model()) == before, trainer.loader_state()),
                (true, at.clone())
            );
        }
        trainer.skip_batch().unwrap();
        assert_eq!(
            (
                trainer.progress().completed_steps,
                trainer.loader_state().cursor
            ),
            (2, at.cursor + 4),
            "two micro-batches of two"
        );
        for step in 3..6 {
            let report = block_on(trainer.step()).unwrap();
            assert_eq!(report.step, step);
            losses.push(report.loss);
        }

        // The same run on the same batches without that of the third step.
        let (data, config) = (dataset(), config(json!({})));
        let mut loader = Loader::for_run(&data, &config).unwrap();
        let steps: Vec<[Batch; 2]> = (0..6)
            .map(|_| [loader.next(&data).unwrap(), loader.next(&data).unwrap()])
            .collect();
        let mut other = Trainer::new(poisoned(&device), data, config).unwrap();
        let kept = steps.iter().enumerate().filter(|(index, _)| *index != 2);
        let expected: Vec<f64> = kept
            .map(|(_, batches)| block_on(other.step_on(batches)).unwrap().loss)
            .collect();
        assert_eq!(losses, expected);
        assert!(
            weights(trainer.model()) == weights(other.model()),
            "other weights"
        );
    }
}

#[test]
fn norm_that_is_not_finite_changes_nothing() {
    for device in [Some(cpu()), gpu()].into_iter().flatten() {
        let mut trainer = Trainer::new(steep(&device), dataset(), config(json!({}))).unwrap();
        let before = weights(trainer.model());
        let error = block_on(trainer.step()).unwrap_err();
        assert!(
            matches!(error, Error::NonFinite { step: 1, ref tensor, value } if tensor.starts_with("gradient of model.") && !value.is_finite()),
            "{error}"
        );
        assert!(
            error.to_string().contains("Nothing was changed") && weights(trainer.model()) == before
        );
    }
}

#[test]
fn released_norm_that_is_not_finite_says_that_parameters_changed() {
    let released =
        json!({"gradient_release": true, "gradient_accumulation_steps": 1, "max_grad_norm": 0.0});
    for device in [Some(cpu()), gpu()].into_iter().flatten() {
        let mut trainer =
            Trainer::new(steep(&device), dataset(), config(released.clone())).unwrap();
        let before = weights(trainer.model());
        let error = block_on(trainer.step()).unwrap_err();
        assert!(
            matches!(error, Error::NonFiniteReleased { step: 1, value } if !value.is_finite()),
            "{error}"
        );
        assert_eq!(
            (error.code(), error.kind()),
            ("train.non-finite", "NON_FINITE")
        );
        assert!(
            error.to_string().contains("were changed")
                && !error.to_string().contains("Nothing was changed"),
            "{error}"
        );
        assert!(
            weights(trainer.model()) != before,
            "the text would be untrue"
        );
        // Such a step cannot be skipped; its data order is unchanged.
        let at = trainer.loader_state();
        assert_eq!(trainer.skip_batch().unwrap_err().code(), "config.invalid");
        assert_eq!(trainer.loader_state(), at);
    }
}

#[test]
fn weights_of_a_file_that_are_no_numbers_are_counted_and_refused_with_every_tensor() {
    let cpu = cpu();
    let shape = poisoned(&cpu).config().clone();
    let scaled = model(&cpu, |name| match name {
        "model.embed_tokens.weight" => Some((RARE as usize, f32::NAN)),
        "lm_head.weight" => Some((11, f32::INFINITY)),
        _ => None,
    });
    let mut stream = FileStream::new();
    stream.push_bytes(
        "config.json",
        serde_json::to_vec(&config_to_hf(&shape)).unwrap(),
    );
    stream
        .push_safetensors(
            "model.safetensors",
            scaled.stream_tensors(),
            &Default::default(),
        )
        .unwrap();
    let mut files = vec![Vec::new(); 2];
    while let Some(chunk) = block_on(stream.next_chunk()).unwrap() {
        files[chunk.file].extend(chunk.bytes);
    }
    let sources = stream.files().iter().zip(files);
    let sources = sources.map(|(file, bytes)| {
        Rc::new(MemorySource::new(file.name.clone(), bytes)) as Rc<dyn ByteSource>
    });
    let bundle = open_bundle(sources.collect()).unwrap();
    for precision in [Precision::F32, Precision::Bf16] {
        let loaded = block_on(Model::from_bundle(
            &bundle,
            precision,
            &cpu.inner(),
            &Interrupt::none(),
        ))
        .unwrap();
        let Err(Error::Refused(refusals)) = loaded.check_finite() else {
            panic!("not refused")
        };
        let found: Vec<_> = refusals
            .iter()
            .map(|r| {
                (
                    r.code,
                    r.subject.as_deref().unwrap(),
                    r.found.as_deref().unwrap(),
                )
            })
            .collect();
        let expected = [
            ("model.embed_tokens.weight", "8 NaN or infinite"),
            ("lm_head.weight", "16 NaN or infinite"),
        ];
        assert_eq!(
            found,
            expected.map(|(tensor, count)| ("model.non-finite", tensor, count))
        );
    }
    model(&cpu, |_| None).check_finite().unwrap();
}
