//! Gradients of factors and saved norms against central differences, and what B = 0 means.

use std::collections::BTreeMap;

use burn::tensor::{Tensor, TensorData};
use serde_json::{Value, json};
use tabtune::gpu::read_f32;
use tabtune::interrupt::Interrupt;
use tabtune::model::{Model, ParamMap};
use tabtune::ops::Moment;
use tabtune::train::{NamedGradients, accumulate, loss_sum};
use tabtune_tests::{block_on, cpu, devices};

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

/// Adds `by` to one value of one parameter.
struct Nudge<'a> {
    name: &'a str,
    at: usize,
    by: f32,
}

impl ParamMap for Nudge<'_> {
    fn map<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) -> Tensor<D> {
        if name != self.name {
            return tensor;
        }
        let (shape, device) = (tensor.dims(), tensor.device());
        let mut values = vec![0f32; shape.iter().product()];
        values[self.at] = self.by;
        tensor + Tensor::from_data(TensorData::new(values, shape), &device)
    }
}

fn gradients(model: &Model, moment: Option<Moment>, recompute: bool) -> (f32, BTreeMap<String, Vec<f32>>) {
    let mut sums = NamedGradients::new();
    let loss = accumulate(model, &batch(), moment, SCALE, recompute, &|_| false, &mut sums).unwrap();
    let read = |(name, tensor)| (name, block_on(read_f32(tensor)).unwrap());
    (block_on(read_f32(loss)).unwrap()[0], sums.into_iter().map(read).collect())
}

fn loss(model: &Model, moment: Option<Moment>) -> f64 {
    f64::from(gradients(model, moment, false).0) * SCALE
}

/// Along the gradient the loss of a whole tensor changes by the square of its norm: a difference in its direction has little noise.
#[test]
fn adapter_gradients_are_those_of_central_differences() {
    let files = base(&shape(), "q8_0");
    let bundle = opened(&files);
    for (adapter, moment) in [
        (json!({ "r": 3, "alpha": 6.0, "target_modules": "all-linear" }), None),
        (json!({ "r": 3, "alpha": 6.0, "target_modules": "all-linear", "dropout": 0.3 }), Some(MOMENT)),
        (json!({ "r": 2, "modules_to_save": ["input_layernorm", "norm"] }), None),
    ] {
        let config = settings(adapter.clone(), Value::Null);
        let model = adapted(&bundle, &config, &cpu()).map(&mut Stir(1));
        let (_, found) = gradients(&model, moment, true);
        let names: Vec<String> = model.parameters().into_iter().map(|info| info.name).collect();
        assert_eq!(found.keys().cloned().collect::<Vec<_>>(), {
            let mut sorted = names.clone();
            sorted.sort();
            sorted
        });
        for (name, gradient) in &found {
            // The values with the largest gradients: those of the others drown in the rounding of the loss.
            let mut places: Vec<usize> = (0..gradient.len()).collect();
            places.sort_by(|a, b| gradient[*b].abs().total_cmp(&gradient[*a].abs()));
            let (mut off, mut all) = (0.0, 0.0);
            for &at in places.iter().take(3) {
                let step = 1e-2f32;
                let moved = |by: f32| loss(&model.clone().map(&mut Nudge { name, at, by }), moment);
                let slope = (8.0 * (moved(step) - moved(-step)) - (moved(2.0 * step) - moved(-2.0 * step))) / (12.0 * f64::from(step));
                off += (slope - f64::from(gradient[at])).powi(2);
                all += f64::from(gradient[at]).powi(2);
            }
            // A loss of 4 in f32 is exact to 3e-7, so a slope to some 6e-5.
            assert!(off.sqrt() <= 2e-3 * all.sqrt() + 1e-4, "{adapter} {name}: {} of {}", off.sqrt(), all.sqrt());
        }
    }
}

/// The first loss of a run is the base's, bit for bit; A then has no gradient at all, and B has one.
#[test]
fn new_adapter_changes_no_bit_of_the_loss() {
    let files = base(&shape(), "f32");
    let bundle = opened(&files);
    for device in devices() {
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
