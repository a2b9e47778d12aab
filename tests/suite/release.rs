//! Gradient release compared with the usual step: the same losses and the same weights, bit for bit.

use std::path::PathBuf;
use std::rc::Rc;

use tabtune::bundle::open_bundle;
use tabtune::config::{AdafactorConfig, GroupConfig, OptimizerConfig, Precision, TrainConfig};
use tabtune::data::{Batch, Dataset};
use tabtune::device::Device;
use tabtune::formats::{ByteSource, MemorySource};
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune::train::Trainer;
use tabtune_tests::{block_on, devices, weights};

pub fn model(family: &str, precision: Precision, device: &Device) -> Model {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("golden/models")
        .join(family);
    let file = |name: &str| {
        Rc::new(MemorySource::new(
            name,
            std::fs::read(folder.join(name)).unwrap(),
        )) as Rc<dyn ByteSource>
    };
    let bundle = open_bundle(vec![file("config.json"), file("model.safetensors")]).unwrap();
    block_on(Model::from_bundle(
        &bundle,
        precision,
        &device.inner(),
        &Interrupt::none(),
    ))
    .unwrap()
}

pub fn batch() -> Batch {
    let inputs = (0..24).map(|i| i * i % 11).collect();
    let targets = (0..24)
        .map(|i| {
            if i % 5 == 0 {
                -100
            } else {
                (i + 1) * (i + 1) % 11
            }
        })
        .collect();
    Batch {
        inputs,
        targets,
        batch_size: 2,
        seq_len: 12,
        document_starts: None,
    }
}

fn config(precision: Precision, release: bool) -> TrainConfig {
    let optimizer = OptimizerConfig::Adafactor(AdafactorConfig::default());
    let freeze = GroupConfig {
        frozen: true,
        ..GroupConfig::new("*.1.mlp.*")
    };
    TrainConfig {
        batch_size: 2,
        seq_len: 12,
        max_grad_norm: 0.0,
        learning_rate: 1e-2,
        precision,
        optimizer,
        groups: vec![freeze, GroupConfig::new("*")],
        gradient_checkpointing: true,
        gradient_release: release,
        ..TrainConfig::default()
    }
}

#[test]
fn released_steps_equal_the_usual_ones_bitwise() {
    // Tied and untied heads, two embedding tables; qwen2's Conv-free blocks have biases.
    for (device, family) in devices()
        .into_iter()
        .flat_map(|d| ["llama3", "qwen2", "gpt2"].map(|f| (d.clone(), f)))
    {
        // One family has two documents per window.
        let document_starts =
            (family == "gpt2").then(|| (0..24).map(|at| if at % 12 < 7 { 0 } else { 7 }).collect());
        let batch = Batch {
            document_starts,
            ..batch()
        };
        for precision in [Precision::F32, Precision::Bf16] {
            let run = |release: bool| {
                let dataset = Dataset::from_tokens((0..64).map(|i| i % 11).collect(), 0.0).unwrap();
                let mut trainer = Trainer::new(
                    model(family, precision, &device),
                    dataset,
                    config(precision, release),
                )
                .unwrap();
                let reports: Vec<_> = (0..3)
                    .map(|_| block_on(trainer.step_on(std::slice::from_ref(&batch))).unwrap())
                    .collect();
                (reports, weights(trainer.model()))
            };
            let ((usual, expected), (released, found)) = (run(false), run(true));
            for (a, b) in usual.iter().zip(&released) {
                assert_eq!(a.loss, b.loss, "{family} {precision:?}");
                // The squares are summed in other groups.
                assert!(
                    (a.grad_norm - b.grad_norm).abs() <= 1e-6 * a.grad_norm,
                    "{family}: {} and {}",
                    a.grad_norm,
                    b.grad_norm
                );
            }
            assert!(usual[2].loss < usual[0].loss, "{family} learns: {usual:?}");
            assert_eq!(expected, found, "{family} {precision:?}");
        }
    }
}

#[test]
fn release_refuses_what_needs_all_gradients() {
    let wrong = TrainConfig {
        max_grad_norm: 1.0,
        gradient_accumulation_steps: 2,
        ..config(Precision::F32, true)
    };
    let error = wrong.validate().unwrap_err();
    assert_eq!(error.code(), "config.invalid");
    for key in ["max_grad_norm", "gradient_accumulation_steps"] {
        assert!(error.to_string().contains(key), "{error}");
    }
    // Both name the alternative.
    assert_eq!(
        error.to_string().matches("block_coordinate").count(),
        2,
        "{error}"
    );
    assert!(config(Precision::F32, true).validate().is_ok());
}
