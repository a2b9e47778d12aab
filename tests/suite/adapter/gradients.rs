//! Gradients of factors and saved norms against central differences, and what B = 0 means.

use std::collections::BTreeMap;

use burn::tensor::{Tensor, TensorData};
use serde_json::{Value, json};
use tabtune::data::Batch;
use tabtune::device::Device;
use tabtune::gpu::read_f32;
use tabtune::interrupt::Interrupt;
use tabtune::model::{Model, ParamMap};
use tabtune::ops::Moment;
use tabtune::train::{NamedGradients, accumulate, loss_sum};
use tabtune_tests::{block_on, cpu, devices};

use super::reference::Reference;
use super::{adapted, base, batch, opened, settings, shape};

/// A step in which dropout draws a mask.
const MOMENT: Moment = Moment { step: 5, micro_batch: 1 };
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

fn gradients(model: &Model, moment: Option<Moment>, recompute: bool) -> (f32, BTreeMap<String, Vec<f32>>) {
    gradients_of(model, &batch(), moment, recompute)
}

fn gradients_of(model: &Model, batch: &Batch, moment: Option<Moment>, recompute: bool) -> (f32, BTreeMap<String, Vec<f32>>) {
    let mut sums = NamedGradients::new();
    let loss = accumulate(model, batch, moment, SCALE, recompute, &|_| false, &mut sums).unwrap();
    let read = |(name, tensor)| (name, block_on(read_f32(tensor)).unwrap());
    (block_on(read_f32(loss)).unwrap()[0], sums.into_iter().map(read).collect())
}

/// Two sequences of five tokens.
fn short() -> Batch {
    let Batch { inputs, targets, .. } = batch();
    Batch { inputs: inputs[..10].to_vec(), targets: targets[..10].to_vec(), batch_size: 2, seq_len: 5, document_starts: None }
}

/// Every value of every trained tensor, beside a base in blocks. The differences are those of a loss in f64, which is exact to 1e-10; the
/// gradients are sums of some hundred products in f32.
#[test]
fn adapter_gradients_are_those_of_central_differences() {
    let bundle = opened(&base(&shape(), "q8_0"));
    let all = json!({ "r": 2, "alpha": 6.0, "target_modules": "all-linear", "dropout": 0.3, "rank_pattern": { "v_proj": 3 },
        "modules_to_save": ["input_layernorm", "norm"] });
    let plain = json!({ "r": 2, "alpha": 3.0, "rslora": true, "modules_to_save": ["post_attention_layernorm"] });
    for (adapter, dropout) in [(all, Some((0.3, 3, MOMENT))), (plain, None)] {
        let config = settings(adapter, Value::Null);
        let stirred = |device: &Device| adapted(&bundle, &config, device).map(&mut Stir(1));
        let model = stirred(&cpu());
        let mut reference = Reference::of(&model, &bundle, dropout);
        let names: Vec<String> = model.parameters().into_iter().map(|info| info.name).collect();
        let slopes: BTreeMap<&String, Vec<f64>> = names.iter().map(|name| (name, reference.slopes(name, &short()))).collect();
        for device in devices() {
            let (loss, found) = gradients_of(&stirred(&device), &short(), dropout.map(|_| MOMENT), true);
            let exact = reference.loss(&short());
            assert!((f64::from(loss) / exact - 1.0).abs() <= 1e-6, "a loss of {loss}, not {exact}");
            assert!(found.keys().eq(slopes.keys().copied()), "{:?}", found.keys());
            for (name, gradient) in &found {
                let slopes = &slopes[name];
                let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
                let off = norm(&mut gradient.iter().zip(slopes).map(|(found, slope)| f64::from(*found) - SCALE * slope));
                let all = norm(&mut slopes.iter().map(|slope| SCALE * slope));
                assert!(all > 0.0 && off <= 1e-5 * all, "{name} on {}: {off} of {all}", device.info().adapter);
            }
        }
    }
}

/// The first loss of a run is the base's, bit for bit; A then has no gradient at all, and B has one.
#[test]
fn new_adapter_changes_no_bit_of_the_loss() {
    for (types, device) in ["f32", "q8_0", "q5_1"].iter().flat_map(|types| devices().into_iter().map(move |device| (types, device))) {
        let bundle = opened(&base(&shape(), types));
        let plain = block_on(Model::from_bundle(&bundle, tabtune::config::Precision::F32, &device.inner(), &Interrupt::none())).unwrap();
        let expected = block_on(read_f32(loss_sum(&plain, &batch()).unwrap())).unwrap()[0];
        let config = settings(json!({ "r": 5, "alpha": 7.0, "target_modules": "all-linear" }), Value::Null);
        let model = adapted(&bundle, &config, &device);
        for recompute in [true, false] {
            let (found, gradients) = gradients(&model, None, recompute);
            assert_eq!(found.to_bits(), expected.to_bits());
            for (name, gradient) in gradients {
                let zero = gradient.iter().all(|value| *value == 0.0);
                assert_eq!(zero, name.contains("lora_A"), "{name}");
            }
        }
    }
}

/// A block that is run again for its backward pass draws the same masks.
#[test]
fn adapter_gradients_do_not_change_when_blocks_are_run_again() {
    let files = base(&shape(), "q4_0");
    let bundle = opened(&files);
    for device in devices() {
        let adapter = json!({ "r": 4, "target_modules": "all-linear", "dropout": 0.2 });
        let model = adapted(&bundle, &settings(adapter, Value::Null), &device).map(&mut Stir(2));
        assert_eq!(gradients(&model, Some(MOMENT), true), gradients(&model, Some(MOMENT), false));
        let other = Moment { step: 6, ..MOMENT };
        assert_ne!(gradients(&model, Some(MOMENT), true), gradients(&model, Some(other), true));
        assert_ne!(gradients(&model, Some(MOMENT), true), gradients(&model, None, true));
    }
}
