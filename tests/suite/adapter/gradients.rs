//! Gradients of factors and saved norms against central differences, and the effect of B = 0.

use std::collections::BTreeMap;

use burn::tensor::{Tensor, TensorData};
use serde_json::{Value, json};
use tabtune::data::Batch;
use tabtune::device::Device;
use tabtune::gpu::read_f32;
use tabtune::interrupt::Interrupt;
use tabtune::model::{Model, ParamMap};
use tabtune::ops::DropoutStep;
use tabtune::train::{NamedGradients, accumulate, loss_sum};
use tabtune_tests::kernels::relative_l2;
use tabtune_tests::{as_a_gpu, block_on, cpu, devices, in_full};

use super::reference::Reference;
use super::{adapted, base, batch, opened, settings, shape};

/// A step in which dropout draws a mask.
const DROPOUT_STEP: DropoutStep = DropoutStep {
    step: 5,
    micro_batch: 1,
};
/// Scale of the loss.
const SCALE: f64 = 1.0 / 18.0;

/// Adds noise to every trained tensor, so that no B is zero.
struct Stir(u32);

impl ParamMap for Stir {
    fn map<const D: usize>(&mut self, _name: &str, tensor: Tensor<D>) -> Tensor<D> {
        let (shape, device) = (tensor.dims(), tensor.device());
        let noise = (0..shape.iter().product::<usize>()).map(|_| {
            self.0 = self.0.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
            (f64::from(self.0 >> 8) / f64::from(1 << 24) - 0.5) as f32 * 0.4
        });
        tensor + Tensor::from_data(TensorData::new(noise.collect::<Vec<f32>>(), shape), &device)
    }
}

fn gradients(
    model: &Model,
    dropout_step: Option<DropoutStep>,
    recompute: bool,
) -> (f32, BTreeMap<String, Vec<f32>>) {
    gradients_of(model, &batch(), dropout_step, recompute)
}

fn gradients_of(
    model: &Model,
    batch: &Batch,
    dropout_step: Option<DropoutStep>,
    recompute: bool,
) -> (f32, BTreeMap<String, Vec<f32>>) {
    let mut sums = NamedGradients::new();
    let loss = accumulate(
        model,
        batch,
        dropout_step,
        SCALE,
        recompute,
        &|_| false,
        &mut sums,
    )
    .unwrap();
    let read = |(name, tensor)| (name, block_on(read_f32(tensor)).unwrap());
    (
        block_on(read_f32(loss)).unwrap()[0],
        sums.into_iter().map(read).collect(),
    )
}

/// Makes two sequences of five tokens.
fn short() -> Batch {
    let Batch {
        inputs, targets, ..
    } = batch();
    Batch {
        inputs: inputs[..10].to_vec(),
        targets: targets[..10].to_vec(),
        batch_size: 2,
        seq_len: 5,
        document_starts: None,
    }
}

/// Makes two sequences of 16 tokens, enough rows for tiles.
fn long() -> Batch {
    let token = |i: i32| (i * i / 3 + 5 * i) % 48;
    let (inputs, targets) = (0..32).map(|i| (token(i), token(i + 1))).unzip();
    Batch {
        inputs,
        targets,
        batch_size: 2,
        seq_len: 16,
        document_starts: None,
    }
}

/// Checks every third value of every trained tensor, in the full form every value, on a base in blocks. The differences are those of a loss
/// in f64, which is exact to 1e-10; the gradients are sums of some hundred products in f32.
#[test]
fn adapter_gradients_are_those_of_central_differences() {
    let each = if in_full() { 1 } else { 3 };
    let bundle = opened(&base(&shape(), "q8_0"));
    let all = json!({ "r": 2, "alpha": 6.0, "target_modules": "all-linear", "dropout": 0.3, "rank_pattern": { "v_proj": 3 },
        "modules_to_save": ["input_layernorm", "norm"] });
    let plain = json!({ "r": 2, "alpha": 3.0, "rslora": true, "modules_to_save": ["post_attention_layernorm"] });
    for (adapter, dropout) in [(all, Some((0.3, 3, DROPOUT_STEP))), (plain, None)] {
        let config = settings(adapter, Value::Null);
        let stirred = |device: &Device| adapted(&bundle, &config, device).map(&mut Stir(1));
        let model = stirred(&cpu());
        let mut reference = Reference::of(&model, &bundle, dropout);
        let names: Vec<String> = model
            .parameters()
            .into_iter()
            .map(|info| info.name)
            .collect();
        let slopes: BTreeMap<&String, Vec<f64>> = names
            .iter()
            .map(|name| (name, reference.slopes(name, &short(), each)))
            .collect();
        for device in devices() {
            let (loss, found) = gradients_of(
                &stirred(&device),
                &short(),
                dropout.map(|_| DROPOUT_STEP),
                true,
            );
            let exact = reference.loss(&short());
            assert!(
                (f64::from(loss) / exact - 1.0).abs() <= 1e-6,
                "a loss of {loss}, not {exact}"
            );
            assert!(
                found.keys().eq(slopes.keys().copied()),
                "{:?}",
                found.keys()
            );
            for (name, gradient) in &found {
                let slopes = &slopes[name];
                let slopes: Vec<f64> = slopes.iter().map(|slope| SCALE * slope).collect();
                let gradient: Vec<f32> = gradient.iter().copied().step_by(each).collect();
                let off = relative_l2(&gradient, &slopes);
                assert!(
                    off <= 1e-5,
                    "{name} on {}: off by {off:e}",
                    device.info().adapter
                );
            }
        }
    }
}

/// Factors computed inside a GPU's large matrix products give the same gradients as separate operations.
#[test]
fn adapter_gradients_by_tiles_are_those_of_parts() {
    let Some(gpu) = as_a_gpu() else { return };
    for types in ["f32", "q8_0", "q5_1"] {
        let bundle = opened(&base(&shape(), types));
        let adapter = json!({ "r": 8, "alpha": 12.0, "target_modules": "all-linear", "rank_pattern": { "v_proj": 4 } });
        let config = settings(adapter, Value::Null);
        let of = |device: &Device| {
            gradients_of(
                &adapted(&bundle, &config, device).map(&mut Stir(3)),
                &long(),
                None,
                true,
            )
        };
        let ((loss, parts), (by_tiles, tiles)) = (of(&cpu()), of(&gpu));
        assert!(
            (by_tiles / loss - 1.0).abs() <= 1e-6,
            "{by_tiles}, not {loss}"
        );
        assert!(tiles.keys().eq(parts.keys()));
        for (name, gradient) in tiles {
            let off = relative_l2(
                &gradient,
                &parts[&name]
                    .iter()
                    .map(|&value| f64::from(value))
                    .collect::<Vec<_>>(),
            );
            assert!(off <= 1e-5, "{name} beside {types}: off by {off:e}");
        }
    }
}

/// The first loss of a run is that of the base, bit for bit; A has no gradient then, and B has one.
#[test]
fn new_adapter_changes_no_bit_of_the_loss() {
    let on = |types| {
        devices().into_iter().flat_map(move |device| {
            [(5, batch()), (4, long())].map(|(rank, batch)| (types, device.clone(), rank, batch))
        })
    };
    for (types, device, rank, batch) in ["f32", "q8_0", "q5_1"].into_iter().flat_map(on) {
        let bundle = opened(&base(&shape(), types));
        let plain = block_on(Model::from_bundle(
            &bundle,
            tabtune::config::Precision::F32,
            &device.inner(),
            &Interrupt::none(),
        ))
        .unwrap();
        let expected = block_on(read_f32(loss_sum(&plain, &batch).unwrap())).unwrap()[0];
        let config = settings(
            json!({ "r": rank, "alpha": 7.0, "target_modules": "all-linear" }),
            Value::Null,
        );
        let model = adapted(&bundle, &config, &device);
        for recompute in [true, false] {
            let (found, gradients) = gradients_of(&model, &batch, None, recompute);
            assert_eq!(found.to_bits(), expected.to_bits());
            for (name, gradient) in gradients {
                let zero = gradient.iter().all(|value| *value == 0.0);
                assert_eq!(zero, name.contains("lora_A"), "{name}");
            }
        }
    }
}

/// A block that is recomputed for its backward pass draws the same masks.
#[test]
fn adapter_gradients_do_not_change_when_blocks_are_run_again() {
    let files = base(&shape(), "q4_0");
    let bundle = opened(&files);
    for device in devices() {
        let adapter = json!({ "r": 4, "target_modules": "all-linear", "dropout": 0.2 });
        let model = adapted(&bundle, &settings(adapter, Value::Null), &device).map(&mut Stir(2));
        assert_eq!(
            gradients(&model, Some(DROPOUT_STEP), true),
            gradients(&model, Some(DROPOUT_STEP), false)
        );
        let other = DropoutStep {
            step: 6,
            ..DROPOUT_STEP
        };
        assert_ne!(
            gradients(&model, Some(DROPOUT_STEP), true),
            gradients(&model, Some(other), true)
        );
        assert_ne!(
            gradients(&model, Some(DROPOUT_STEP), true),
            gradients(&model, None, true)
        );
        // Without a mask, a GPU computes the factors inside its large products.
        assert_eq!(
            gradients_of(&model, &long(), None, true),
            gradients_of(&model, &long(), None, false)
        );
    }
}
