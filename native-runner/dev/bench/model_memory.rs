//! Measures bytes on the device in a step of a model, by purpose.

use std::path::Path;

use futures_lite::future::block_on;
use serde_json::{Map, json};
use tabtune::bundle::Bundle;
use tabtune::config::TrainConfig;
use tabtune::data::Dataset;
use tabtune::device::Device;
use tabtune::gpu::launch::{is_software, set_binding_limit};
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune::train::{Trainer, memory_plan};

use super::usage::{cleaned, most, usage};
use super::{BenchArgs, mega};
use tabtune_native::error::Result;
use tabtune_native::files::open_model;
use tabtune_native::output::Output;
use tabtune_native::settings::resolve;

const SEQ_LEN: u64 = 512;

fn config(args: &BenchArgs) -> Result<TrainConfig> {
    let mut given = Map::new();
    // Gradient release has no global norm to clip by.
    for (key, value) in [
        ("steps", json!(2)),
        ("batch_size", json!(1)),
        ("seq_len", json!(args.seq_len.unwrap_or(SEQ_LEN))),
        (
            "max_grad_norm",
            json!(if args.gradient_release { 0.0 } else { 1.0 }),
        ),
        ("precision", json!(args.precision)),
        ("optimizer", json!({ "type": args.optimizer })),
        ("gradient_release", json!(args.gradient_release)),
        (
            "gradient_accumulation_steps",
            json!(args.gradient_accumulation_steps),
        ),
        ("gradient_checkpointing", json!(args.gradient_checkpointing)),
    ] {
        given.insert(key.into(), value);
    }
    if let Some(blocks) = args.block_coordinate {
        // Both steps are in the first turn of blocks.
        given.insert(
            "block_coordinate".into(),
            json!({ "blocks": blocks, "order": args.block_order }),
        );
        given.insert("gradient_checkpointing".into(), json!(true));
    }
    if let Some(rank) = args.rank {
        given.insert(
            "adapter".into(),
            json!({ "r": rank, "target_modules": "all-linear" }),
        );
        given.insert("base_storage".into(), json!("stored"));
    }
    resolve(given, None)
}

/// Bytes on the device in a step, by purpose.
pub struct Parts {
    pub parameters: usize,
    /// Bytes in use after the model is loaded: parameters, and tables that are not parameters.
    pub weights: u64,
    /// Bytes that the first step adds: the moments.
    pub state: u64,
    /// Planned bytes of the gradients that exist at once.
    pub gradients: u64,
    /// Planned total in bytes.
    pub planned: u64,
    /// Peak of the bytes in use during the second step.
    pub in_use: u64,
    pub reserved: u64,
    pub secs: f64,
}

impl Parts {
    /// Returns the bytes of activations, logits, and other temporary buffers.
    pub fn rest(&self) -> f64 {
        self.in_use as f64 - (self.weights + self.state + self.gradients) as f64
    }

    pub fn each(&self, bytes: u64) -> f64 {
        bytes as f64 / self.parameters as f64
    }
}

/// Trains two steps and measures the second, in which the optimizer's state exists; `bundle` are the files of the model, if it has any.
///
/// # Errors
/// Errors of the model and the trainer; `cli.usage` on a device that does not count its bytes.
pub fn parts(
    bundle: Option<&Bundle>,
    model: impl FnOnce() -> Result<Model>,
    config: TrainConfig,
    device: &Device,
) -> Result<Parts> {
    let before = cleaned(device)?;
    let model = model()?;
    let (parameters, vocabulary) = (model.num_parameters(), model.config().vocab_size as u64);
    let software = is_software(&device.inner());
    let plan = memory_plan(model.config(), &config, bundle, software)?;
    let (gradients, planned) = (plan.gradients, plan.total());
    let weights = usage(device)?.in_use - before.in_use;
    let windows = 3 * config.gradient_accumulation_steps as u64;
    let tokens = (0..windows * config.seq_len as u64 + 1)
        .map(|i| (i * 7919 % vocabulary) as u32)
        .collect();
    let mut trainer = Trainer::new(model, Dataset::from_tokens(tokens, 0.0)?, config)?;
    block_on(trainer.step())?;
    let state = cleaned(device)?.in_use - before.in_use - weights;
    let mut secs = 0.0;
    let most = most(|| {
        secs = block_on(trainer.step())?.secs;
        Ok(())
    })?;
    let [in_use, reserved] = [most.in_use, most.reserved].map(|bytes| bytes - before.in_use);
    Ok(Parts {
        parameters,
        weights,
        state,
        gradients,
        planned,
        in_use,
        reserved,
        secs,
    })
}

/// Measures a step of the model at `path` and prints one line.
///
/// # Errors
/// Errors of [`parts`] and of opening the model.
pub fn run(path: &Path, args: &BenchArgs, device: &Device, output: &Output) -> Result<()> {
    let config = config(args)?;
    let (seq_len, inner) = (config.seq_len, device.inner());
    if let Some(mebibytes) = args.binding {
        set_binding_limit(&inner, mebibytes << 20);
    }
    let bundle = open_model(path)?;
    let load = || {
        let none = Interrupt::none();
        let model = Model::for_run(&bundle, &config, &inner, &none);
        Ok(block_on(model)?)
    };
    let parts = parts(Some(&bundle), load, config.clone(), device)?;
    let Parts {
        parameters,
        weights,
        state,
        gradients,
        planned,
        in_use,
        reserved,
        secs,
    } = parts;
    let line = json!({
        "parameters": parameters, "tokens": seq_len, "weights": weights, "state": state, "gradients": gradients, "in_use": in_use, "planned": planned,
        "reserved": reserved, "rest": parts.rest(), "bytes_per_parameter": parts.each(in_use), "secs": secs, "adapter": device.info().adapter
    });
    output.line(&line, || {
        let [in_use, planned, reserved, weights, state, gradients] = [in_use, planned, reserved, weights, state, gradients].map(mega);
        format!(
            "{parameters} parameters, {seq_len} tokens: {in_use:.1} MB in use at most in a step ({planned:.1} planned), {reserved:.1} MB reserved\nweights {weights:.1}, state {state:.1}, gradients {gradients:.1}, the rest {:.1} MB; {:.3} bytes per parameter in all",
            parts.rest() / 1e6,
            parts.each(parts.in_use)
        )
    })
}
