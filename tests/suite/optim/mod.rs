//! The optimizers: rounding, layout independence, groups, state.

mod budget;
mod groups;
mod in_place;
mod kernels;
mod layout;
mod module;
mod own;
mod projector;
mod rounding;
mod state;
mod together;
mod truth;

use burn::tensor::{DType, Tensor, TensorData};
use tabtune::config::{OptimizerConfig, TrainConfig};
use tabtune::device::Device;
use tabtune::optim::{Gate, Optim, ParamInfo};
use tabtune_tests::block_on;
use tabtune_tests::kernels::{noise, packed};

/// Parses a rule from JSON.
fn rule(json: serde_json::Value) -> OptimizerConfig {
    serde_json::from_value(json).unwrap()
}

/// A few small parameters with one rule.
struct Run {
    optim: Optim,
    infos: Vec<ParamInfo>,
    values: Vec<Tensor<1>>,
    device: Device,
}

fn infos(dtype: DType) -> Vec<ParamInfo> {
    let shapes: [&[usize]; 4] = [&[7], &[16, 24], &[40, 9], &[2, 5, 4]];
    shapes
        .iter()
        .enumerate()
        .map(|(k, shape)| ParamInfo {
            name: format!("layer.{k}.weight"),
            shape: shape.to_vec(),
            dtype,
            outside_blocks: false,
        })
        .collect()
}

fn upload(values: &[f32], dtype: DType, device: &Device) -> Tensor<1> {
    let bytes = match dtype {
        DType::BF16 => {
            bytemuck::cast_slice::<u32, u8>(&packed(values).0)[..2 * values.len()].to_vec()
        }
        _ => bytemuck::cast_slice(values).to_vec(),
    };
    Tensor::from_data(
        TensorData::from_bytes_vec(bytes, [values.len()], dtype),
        (&device.inner(), dtype),
    )
}

impl Run {
    fn new(rule: &OptimizerConfig, infos: Vec<ParamInfo>, device: &Device) -> Self {
        let config = TrainConfig {
            optimizer: rule.clone(),
            seed: 42,
            ..TrainConfig::default()
        };
        let optim = Optim::new(&config, &infos).unwrap();
        let start = |info: &ParamInfo| {
            upload(
                &noise(info.elements(), info.elements() as u32),
                info.dtype,
                device,
            )
        };
        let values = infos.iter().map(start).collect();
        Self {
            optim,
            infos,
            values,
            device: device.clone(),
        }
    }

    fn step(&mut self, t: u32) {
        let gate = Gate::open(0.5, &self.device.inner());
        for (info, slot) in self.infos.iter().zip(&mut self.values) {
            let grad = upload(
                &noise(info.elements(), 1000 * t + info.elements() as u32),
                DType::F32,
                &self.device,
            );
            let value = std::mem::replace(slot, Tensor::zeros([1], &self.device.inner()));
            *slot = self
                .optim
                .step_param(&info.name, value, Some(grad), 1e-2, &gate)
                .unwrap();
        }
    }

    /// Returns parameters and states as bytes, by name.
    fn bytes(&self) -> std::collections::BTreeMap<String, Vec<u8>> {
        let params = self.infos.iter().zip(&self.values).map(|(info, value)| {
            (
                info.name.clone(),
                block_on(value.clone().into_data_async())
                    .unwrap()
                    .as_bytes()
                    .to_vec(),
            )
        });
        let states = self
            .optim
            .state_tensors()
            .into_iter()
            .map(|(name, state)| (name, block_on(state.bytes()).unwrap()));
        params.chain(states).collect()
    }
}

/// Returns every rule, with its less usual switches on, for properties that all rules have.
pub(crate) fn rules() -> Vec<OptimizerConfig> {
    use serde_json::json;
    [
        json!({"type": "adamw"}),
        json!({"type": "adamw", "stochastic_rounding": false, "weight_decay": 0.1}),
        json!({"type": "adafactor"}),
        json!({"type": "adafactor", "relative_step": true}),
        json!({"type": "apollo", "rank": 2, "update_steps": 2, "adamw_learning_rate_scale": 0.5}),
        json!({"type": "apollo", "mini": true, "projector": "orthogonal", "projected": "all", "scale": 64, "scale_front": true,
            "growth_limit": null, "update_steps": 3}),
        json!({"type": "sgd"}),
        json!({"type": "sgd", "momentum": 0.9, "nesterov": true, "weight_decay": 0.1}),
    ]
    .map(rule)
    .into()
}
