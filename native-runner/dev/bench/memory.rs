//! Measures bytes on the device per trained parameter: weights, gradients and optimizer state, without activations.

use futures_lite::future::block_on;
use serde_json::json;
use tabtune::config::{
    AdafactorConfig, AdamwConfig, ApolloConfig, ModelConfig, OptimizerConfig, Precision, Projected,
    SgdConfig, TrainConfig,
};
use tabtune::data::{Batch, Dataset};
use tabtune::device::Device;
use tabtune::families::config_from_hf;
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune::train::{NamedGradients, Trainer, accumulate};

use super::model_memory::parts;
use super::usage::usage;
use tabtune_native::commands::Outcome;
use tabtune_native::error::Result;
use tabtune_native::output::Output;

const VOCABULARY: usize = 4096;
const SEQ_LEN: usize = 16;

/// Returns a Llama with 0.85 million parameters per block.
fn shape(layers: usize) -> ModelConfig {
    let json = json!({
        "model_type": "llama", "vocab_size": VOCABULARY, "hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": layers,
        "num_attention_heads": 4, "max_position_embeddings": SEQ_LEN, "rms_norm_eps": 1e-5, "tie_word_embeddings": true
    });
    config_from_hf(&json).expect("the shape of a Llama")
}

/// Returns name, rule, precision, and the accepted maximum of bytes per parameter of each run.
fn runs() -> Vec<(&'static str, OptimizerConfig, Precision, f64)> {
    let adamw = OptimizerConfig::Adamw(AdamwConfig::default());
    let adafactor = OptimizerConfig::Adafactor(AdafactorConfig::default());
    let apollo = OptimizerConfig::Apollo(ApolloConfig {
        rank: Some(1),
        projected: Projected::All,
        ..ApolloConfig::default()
    });
    let sgd = OptimizerConfig::Sgd(SgdConfig::default());
    vec![
        ("adamw", adamw.clone(), Precision::F32, 16.5),
        ("adamw", adamw, Precision::Bf16, 10.5),
        ("adafactor", adafactor.clone(), Precision::F32, 8.5),
        ("adafactor", adafactor, Precision::Bf16, 6.5),
        ("apollo", apollo.clone(), Precision::F32, 8.5),
        ("apollo", apollo, Precision::Bf16, 6.5),
        ("sgd", sgd.clone(), Precision::F32, 8.5),
        ("sgd", sgd, Precision::Bf16, 6.5),
    ]
}

/// Prints one line per optimizer and precision. Returns `Bad` if a bound is exceeded.
///
/// # Errors
/// Errors of the model and the trainer; `cli.usage` on a device that does not count its bytes.
pub fn run(layers: usize, device: &Device, output: &Output) -> Result<Outcome> {
    let mut good = true;
    for (name, rule, precision, bound) in runs() {
        device.inner().memory_cleanup();
        let before = usage(device)?;
        let config = TrainConfig {
            steps: 3,
            batch_size: 1,
            seq_len: SEQ_LEN,
            precision,
            optimizer: rule,
            ..TrainConfig::default()
        };
        let tokens = (0..8 * SEQ_LEN as u32).collect();
        let model = block_on(Model::init(
            &shape(layers),
            config.seed,
            precision,
            &device.inner(),
            &Interrupt::none(),
        ))?;
        let parameters = model.num_parameters() as f64;
        let mut trainer = Trainer::new(model, Dataset::from_tokens(tokens, 0.0)?, config)?;
        block_on(trainer.step())?;
        block_on(trainer.step())?;
        let between = usage(device)?;
        // The gradients of a third step are kept; the memory of its activations is free again.
        let mut gradients = NamedGradients::new();
        let batch = Batch {
            inputs: (0..SEQ_LEN as i32).collect(),
            targets: (1..=SEQ_LEN as i32).collect(),
            batch_size: 1,
            seq_len: SEQ_LEN,
            document_starts: None,
        };
        accumulate(
            trainer.model(),
            &batch,
            None,
            1.0,
            false,
            &|name| trainer.optim().frozen(name),
            &mut gradients,
        )?;
        let held = usage(device)?;
        drop(gradients);
        drop(trainer);
        let each = |bytes: u64| bytes as f64 / parameters;
        let (in_use, idle) = (
            each(held.in_use - before.in_use),
            each(between.in_use - before.in_use),
        );
        let ok = in_use <= bound;
        good &= ok;
        let word = if precision == Precision::F32 {
            "f32"
        } else {
            "bf16"
        };
        let line = json!({
            "optimizer": name, "precision": word, "parameters": parameters, "bytes_per_parameter": in_use, "between_steps": idle,
            "reserved_per_parameter": each(held.reserved), "bound": bound, "ok": ok, "adapter": device.info().adapter
        });
        output.line(&line, || {
            let reserved = each(held.reserved);
            let verdict = if ok { "ok" } else { "TOO MUCH" };
            format!("{name} {word}: {in_use:.3} bytes per parameter with gradients (at most {bound}: {verdict}), {idle:.3} between steps, {reserved:.3} reserved")
        })?;
    }
    good &= released(layers, device, output)?;
    Ok(if good { Outcome::Good } else { Outcome::Bad })
}

/// Measures gradient release: the peak of a whole step, in which at most the gradients of one block and those outside the blocks exist.
fn released(layers: usize, device: &Device, output: &Output) -> Result<bool> {
    let (precision, optimizer) = (
        Precision::Bf16,
        OptimizerConfig::Adafactor(AdafactorConfig::default()),
    );
    let config = TrainConfig {
        steps: 2,
        batch_size: 1,
        seq_len: SEQ_LEN,
        precision,
        optimizer,
        gradient_release: true,
        max_grad_norm: 0.0,
        ..TrainConfig::default()
    };
    let model = || {
        Ok(block_on(Model::init(
            &shape(layers),
            config.seed,
            precision,
            &device.inner(),
            &Interrupt::none(),
        ))?)
    };
    let parts = parts(None, model, config.clone(), device)?;
    // 16 tokens need few activations. A second gradient of the embedding would add 0.4 bytes per parameter with one block.
    let bound = parts.each(parts.weights + parts.state + parts.gradients) + 0.2;
    let (found, reserved) = (parts.each(parts.in_use), parts.each(parts.reserved));
    let ok = found <= bound;
    let line = json!({
        "optimizer": "adafactor", "precision": "bf16", "gradient_release": true, "parameters": parts.parameters, "bytes_per_parameter": found,
        "between_steps": parts.each(parts.weights + parts.state), "reserved_per_parameter": reserved, "bound": bound, "ok": ok,
        "adapter": device.info().adapter
    });
    output.line(&line, || {
        let verdict = if ok { "ok" } else { "TOO MUCH" };
        format!("adafactor bf16, gradient release: {found:.3} bytes per parameter at most in a step (at most {bound:.3}: {verdict}), {reserved:.3} reserved")
    })?;
    Ok(ok)
}
