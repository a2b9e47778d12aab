//! Replays optimizer trajectories and compares every parameter and state after every step.

use std::collections::BTreeMap;

use burn::tensor::{DType, Tensor};
use serde_json::{Map, Value, json};

use super::Errors;
use super::values::{Recorded, decode, hex, usizes, words};
use crate::config::{OptimizerConfig, TrainConfig};
use crate::device::Device;
use crate::error::Result;
use crate::gpu::read_data;
use crate::optim::{Gate, Optim, ParamInfo};

/// Bounds of the file's replay class.
struct Bounds {
    exact: bool,
    /// The reference rounds moments from a fused multiply-add: where both cancel to nearly zero they may differ by `state`.
    fused_states: bool,
    per_step: f64,
    displacement: f64,
    state: f64,
}

/// One parameter during the replay.
struct Track {
    name: String,
    init: Vec<f32>,
    value: Option<Tensor<1>>,
}

/// Translates the reference's hyperparameters into our names.
fn config(root: &Value) -> Option<TrainConfig> {
    let mut hyper = root["hyper"].as_object()?.clone();
    if let Some(over) = root["replay"]["hyper"].as_object() {
        hyper.extend(over.clone());
    }
    let kind = root["optimizer"].as_str()?.to_lowercase();
    let mut ours = Map::new();
    let (beta1, beta2) = if kind == "adafactor" {
        ("", "beta2_cap")
    } else {
        ("beta1", "beta2")
    };
    for (key, value) in &hyper {
        match key.as_str() {
            "lr" => {}
            "betas" => {
                ours.insert(beta1.into(), value[0].clone());
                ours.insert(beta2.into(), value[1].clone());
            }
            "eps" if value.is_array() => {
                ours.insert("eps1".into(), value[0].clone());
                ours.insert("eps2".into(), value[1].clone());
            }
            "bf16_stochastic_round" => {
                ours.insert("stochastic_rounding".into(), value.clone());
            }
            _ => {
                ours.insert(key.clone(), value.clone());
            }
        }
    }
    ours.remove("");
    if let Some(steps) = root["projector"]["update_steps"].as_u64() {
        ours.insert("update_steps".into(), json!(steps));
    }
    if kind != "sgd" {
        ours.entry("weight_decay").or_insert(json!(0.0));
    }
    ours.insert("type".into(), json!(kind));
    let optimizer: OptimizerConfig = serde_json::from_value(Value::Object(ours)).ok()?;
    Some(TrainConfig {
        learning_rate: hyper["lr"].as_f64()?,
        seed: hex(&root["seed"]).unwrap_or(0),
        optimizer,
        ..TrainConfig::default()
    })
}

/// Replays the file. Returns the number of values that may be one bf16 ulp off, or `None` if the file has another form.
pub(super) async fn replay(
    root: &Value,
    device: &Device,
    errors: &mut Errors,
) -> Result<Option<usize>> {
    let Some(config) = config(root) else {
        return Ok(None);
    };
    let number = |key: &str| root["replay"][key].as_f64();
    let bounds = Bounds {
        exact: root["replay"]["class"] == "exact",
        fused_states: root["rule"] != "ours",
        per_step: number("per_step").unwrap_or(0.0),
        displacement: number("displacement").unwrap_or(0.0),
        state: number("state").unwrap_or(1e-5),
    };
    let tensors = device.inner();
    let Some((infos, mut tracks)) = parameters(root, &tensors) else {
        return Ok(None);
    };
    let mut optim = Optim::new(&config, &infos)?;
    let Some(first_step) = first_step(root) else {
        return Ok(None);
    };
    if first_step > 1 {
        infos
            .iter()
            .try_for_each(|info| optim.begin_after(&info.name, first_step - 1, &tensors))?;
    }
    let packed = infos.first().is_some_and(|info| info.dtype == DType::BF16);
    let mut draws = root["sr_draws"]
        .as_array()
        .filter(|_| packed && config.optimizer.stochastic_rounding())
        .map(|list| list.iter());
    let Some(steps) = root["steps"].as_array() else {
        return Ok(None);
    };
    let gate = Gate::open(1.0, &tensors);
    for (at, step) in steps.iter().enumerate() {
        let (Some(t), Some(entries)) = (step["t"].as_u64(), step["params"].as_array()) else {
            return Ok(None);
        };
        for (track, entry) in tracks.iter_mut().zip(entries) {
            let grad = Recorded::read(&entry["grad"]);
            if let (Some(draws), true) = (&mut draws, grad.is_some()) {
                // A seed comes first, then the noise.
                let Some(noise) = draws
                    .by_ref()
                    .nth(1)
                    .and_then(|draw| usizes(&draw["values"]))
                else {
                    return Ok(None);
                };
                let noise: Vec<u32> = noise.into_iter().map(|n| n as u32).collect();
                optim.give_noise(&track.name, words(&noise, &tensors));
            }
            if let (Some(matrix), true) = (projector(&entry["proj"]), grad.is_some()) {
                let n = matrix.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
                optim.give_projector(&track.name, words(&n, &tensors));
            }
            let Some(value) = track.value.take() else {
                return Ok(None);
            };
            let grad = grad.map(|grad| grad.widened(&tensors));
            track.value =
                Some(optim.step_param(&track.name, value, grad, config.learning_rate, &gate)?);
        }
        let states: BTreeMap<_, _> = optim.state_tensors().into_iter().collect();
        for (track, entry) in tracks.iter().zip(entries) {
            let (Some(expected), Some(value)) =
                (Recorded::read(&entry["param"]), track.value.clone())
            else {
                return Ok(None);
            };
            let data = read_data(value).await?;
            let found = decode(data.as_bytes(), expected.dtype);
            let steps = Some((at as u64 + 1, track.init.as_slice()));
            compare(
                &format!("{} at step {t}", track.name),
                &found,
                &expected,
                steps,
                &bounds,
                errors,
            );
            if recorded_step(&entry["step"])
                .is_some_and(|step| step != optim.step_count(&track.name))
            {
                errors.require(false, || {
                    format!(
                        "{} at step {t}: its step count is {}",
                        track.name,
                        optim.step_count(&track.name)
                    )
                });
            }
            for (theirs, ours) in [
                ("m", "m"),
                ("v", "v"),
                ("row", "row"),
                ("col", "col"),
                ("scaled_grad", "norm"),
                ("norm", "norm"),
                ("momentum", "momentum"),
            ] {
                let Some(expected) = Recorded::read(&entry[theirs]) else {
                    continue;
                };
                let key = format!("{}:{ours}", track.name);
                let Some(state) = states.get(&key) else {
                    errors.require(expected.values.iter().all(|&x| x == 0.0), || {
                        format!("no state {key} at step {t}")
                    });
                    continue;
                };
                let found = decode(&state.bytes().await?, expected.dtype);
                compare(
                    &format!("{key} at step {t}"),
                    &found,
                    &expected,
                    None,
                    &bounds,
                    errors,
                );
            }
        }
    }
    let compared = errors.exact.0 as f64;
    let on_twin = device.info().backend == "cpu";
    Ok(Some(match number("adapter_max_fraction") {
        Some(fraction) if !on_twin => (compared * fraction).max(2.0) as usize,
        _ => 0,
    }))
}

fn parameters(root: &Value, device: &burn::tensor::Device) -> Option<(Vec<ParamInfo>, Vec<Track>)> {
    let mut infos = Vec::new();
    let mut tracks = Vec::new();
    for (k, param) in root["params"].as_array()?.iter().enumerate() {
        let init = Recorded::read(&param["init"])?;
        let name = param["name"]
            .as_str()
            .map_or_else(|| format!("param.{k}"), String::from);
        let shape = usizes(&param["shape"]).or(init.shape.clone())?;
        infos.push(ParamInfo {
            name: name.clone(),
            shape,
            dtype: init.dtype,
            outside_blocks: false,
        });
        tracks.push(Track {
            name,
            value: Some(init.tensor(device)),
            init: init.values,
        });
    }
    Some((infos, tracks))
}

/// Reads the recorded matrix as `[dim, rank]`.
fn projector(proj: &Value) -> Option<Vec<f32>> {
    let matrix = Recorded::read(&proj["A"])?;
    let (dim, rank) = (
        proj["dim"].as_u64()? as usize,
        proj["rank"].as_u64()? as usize,
    );
    if proj["type"] == "left" {
        return Some(matrix.values);
    }
    Some(
        (0..dim * rank)
            .map(|e| matrix.values[(e % rank) * dim + e / rank])
            .collect(),
    )
}

/// Returns the first step of the recording, from 1; `None` if the file states something else.
fn first_step(root: &Value) -> Option<u64> {
    match &root["first_step"] {
        Value::Null => Some(1),
        stated => stated.as_u64().filter(|step| *step > 0),
    }
}

fn recorded_step(value: &Value) -> Option<u64> {
    value
        .as_u64()
        .or_else(|| Recorded::read(value)?.values.first().map(|&x| x as u64))
}

/// Compares values with recorded ones. Parameters come with the number of steps taken and their initial values, states without.
fn compare(
    place: &str,
    found: &[f32],
    expected: &Recorded,
    param: Option<(u64, &[f32])>,
    bounds: &Bounds,
    errors: &mut Errors,
) {
    errors.require(found.len() == expected.values.len(), || {
        format!(
            "{place}: {} values, expected {}",
            found.len(),
            expected.values.len()
        )
    });
    let largest = |values: &mut dyn Iterator<Item = f64>| {
        values.fold(0.0, |a: f64, b| {
            if b.is_nan() {
                f64::INFINITY
            } else {
                a.max(b.abs())
            }
        })
    };
    let size = largest(&mut expected.values.iter().map(|&e| f64::from(e)));
    if bounds.exact && expected.dtype == DType::BF16 {
        let ordered = |x: f32| {
            let bits = (x.to_bits() >> 16) as i32;
            if bits & 0x8000 != 0 {
                -(bits & 0x7FFF)
            } else {
                bits
            }
        };
        for (i, (&f, &e)) in found.iter().zip(&expected.values).enumerate() {
            let near = bounds.fused_states
                && param.is_none()
                && f64::from((f - e).abs()) <= bounds.state * size;
            let ulp = if f.to_bits() == e.to_bits() || near {
                0
            } else {
                ordered(f).abs_diff(ordered(e)).max(1)
            };
            errors.equal(
                || format!("{place}, element {i}: expected {e:e}, found {f:e}"),
                ulp,
            );
        }
        return;
    }
    let pairs = || {
        found
            .iter()
            .zip(&expected.values)
            .map(|(&f, &e)| f64::from(f) - f64::from(e))
    };
    let error = largest(&mut pairs());
    let bound = match param {
        Some((steps, init)) => {
            let moved = largest(
                &mut expected
                    .values
                    .iter()
                    .zip(init)
                    .map(|(&e, &i)| f64::from(e) - f64::from(i)),
            );
            bounds.per_step * (steps + 2) as f64 * size + bounds.displacement * moved
        }
        None => bounds.state * size,
    };
    errors.bound(|| place.to_string(), error, bound);
}
