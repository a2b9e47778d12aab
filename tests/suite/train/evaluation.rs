//! Evaluation of a model: its loss, and the share of targets that are its arg max.

use burn::tensor::{Int, Tensor};
use serde_json::json;
use tabtune::config::Precision;
use tabtune::data::{Batch, IGNORE_INDEX};
use tabtune::device::Device;
use tabtune::families::config_from_hf;
use tabtune::gpu::read_f32;
use tabtune::interrupt::Interrupt;
use tabtune::model::{Model, Span};
use tabtune::train::{evaluate, loss_sum};
use tabtune_tests::{block_on, devices, in_full};

const T: usize = 32;

fn model(vocab: usize, device: &Device) -> Model {
    let json = json!({
        "model_type": "llama", "vocab_size": vocab, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "tie_word_embeddings": true, "initializer_range": 0.3
    });
    block_on(Model::init(
        &config_from_hf(&json).unwrap(),
        5,
        Precision::F32,
        &device.inner(),
        &Interrupt::none(),
    ))
    .unwrap()
}

fn ids(model: &Model, ids: &[i32]) -> Tensor<1, Int> {
    Tensor::from_ints(ids, model.device())
}

/// Returns the arg max of each position of a batch: the lowest of the most likely ids.
fn argmax(model: &Model, inputs: &[i32], batch_size: usize) -> Vec<i32> {
    let vocab = model.config().vocab_size;
    let logits = model.forward(
        ids(model, inputs),
        Span::whole(batch_size, inputs.len() / batch_size),
    );
    let logits = block_on(read_f32(logits)).unwrap();
    let best = |row: &[f32]| {
        let first = |best: usize, c: usize| {
            if f64::from(row[c]) > f64::from(row[best]) {
                c
            } else {
                best
            }
        };
        (1..vocab).fold(0, first) as i32
    };
    logits.chunks(vocab).map(best).collect()
}

/// Makes batches of targets: a third is the model's arg max, a third is another id, and a third does not count.
fn batches(model: &Model) -> Vec<Batch> {
    let vocab = model.config().vocab_size as i32;
    [3usize, 2]
        .into_iter()
        .enumerate()
        .map(|(at, batch_size)| {
            let inputs: Vec<i32> = (0..(batch_size * T) as i32)
                .map(|i| (i * 37 + i * i + at as i32) % vocab)
                .collect();
            let said = argmax(model, &inputs, batch_size);
            let target = |(i, &id): (usize, &i32)| match i % 3 {
                0 => id,
                1 => (i as i32 * 11) % vocab,
                _ => IGNORE_INDEX,
            };
            let targets = said.iter().enumerate().map(target).collect();
            Batch {
                inputs,
                targets,
                batch_size,
                seq_len: T,
                document_starts: None,
            }
        })
        .collect()
}

/// 300 rows of logits fill one run of the head, 3 million do not: then the sums of several runs are added.
#[test]
fn accuracy_is_the_share_of_targets_that_the_arg_max_gives() {
    for device in devices() {
        // A large vocabulary is counted in parts by kernels, but not by their twins.
        let vocabularies: &[usize] = if device.info().backend == "cpu" && !in_full() {
            &[61]
        } else {
            &[61, 300_000]
        };
        for &vocab in vocabularies {
            let model = model(vocab, &device);
            let batches = if vocab == 61 {
                batches(&model)
            } else {
                batches(&model).split_off(1)
            };
            let (mut hits, mut counted, mut sum) = (0, 0, 0.0);
            for batch in &batches {
                let said = argmax(&model, &batch.inputs, batch.batch_size);
                hits += said
                    .iter()
                    .zip(&batch.targets)
                    .filter(|(said, target)| said == target)
                    .count();
                counted += batch.counted();
                sum += f64::from(block_on(read_f32(loss_sum(&model, batch).unwrap())).unwrap()[0]);
            }
            assert!(hits * 3 > counted && hits < counted, "{hits} of {counted}");
            let report = block_on(evaluate(
                &model,
                batches.into_iter().map(Ok),
                &Interrupt::none(),
            ))
            .unwrap();
            assert_eq!(
                (report.accuracy, report.tokens),
                (hits as f64 / counted as f64, counted as u64)
            );
            // The loss has the bits of a training step's.
            assert_eq!(report.loss, sum / counted as f64);
        }
    }
}

/// A model whose tokens all have the same row: all logits are equal, and the lowest id is the arg max.
#[test]
fn of_equal_logits_the_lowest_id_is_the_arg_max() {
    struct Zeros;
    impl tabtune::model::ParamMap for Zeros {
        fn map<const D: usize>(&mut self, _: &str, tensor: Tensor<D>) -> Tensor<D> {
            tensor.zeros_like()
        }
    }
    for device in devices() {
        let model = model(61, &device).map(&mut Zeros);
        let batch = Batch {
            inputs: vec![7; 8],
            targets: vec![0, 1, 60, 0, IGNORE_INDEX, 30, 0, 2],
            batch_size: 1,
            seq_len: 8,
            document_starts: None,
        };
        let report = block_on(evaluate(
            &model,
            std::iter::once(Ok(batch)),
            &Interrupt::none(),
        ))
        .unwrap();
        assert_eq!((report.accuracy, report.tokens), (3.0 / 7.0, 7));
    }
}

#[test]
fn a_perplexity_beyond_f64_is_absent_and_said() {
    struct Louder;
    impl tabtune::model::ParamMap for Louder {
        fn map<const D: usize>(&mut self, _: &str, tensor: Tensor<D>) -> Tensor<D> {
            tensor.mul_scalar(100.0)
        }
    }
    for device in devices() {
        let of = |model: &Model| {
            let report = block_on(evaluate(
                model,
                batches(model).into_iter().map(Ok),
                &Interrupt::none(),
            ))
            .unwrap();
            (report.loss, serde_json::to_value(report).unwrap())
        };
        let quiet = model(61, &device);
        let (loss, line) = of(&quiet);
        assert_eq!(
            (&line["perplexity"], line.get("perplexity_overflow")),
            (&json!(loss.exp()), None)
        );
        // exp(710) is more than the largest f64.
        let (loss, line) = of(&quiet.map(&mut Louder));
        assert!(loss > 710.0, "{loss}");
        assert_eq!(
            (line.get("perplexity"), &line["perplexity_overflow"]),
            (None, &json!(true))
        );
    }
}
