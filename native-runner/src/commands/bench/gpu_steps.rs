//! Training steps of a model for `bench gpu`: f32 and bf16, one sequence and eight, each compared with PyTorch.

use std::path::Path;
use std::time::Instant;

use futures_lite::future::block_on;
use serde_json::{Value, json};
use tabtune::bundle::Bundle;
use tabtune::config::TrainConfig;
use tabtune::data::{Batch, Dataset, Loader};
use tabtune::device::Device;
use tabtune::gpu::profile::{KernelTimes, ProfileReport};
use tabtune::train::Trainer;

use super::torch::{Steps, Torch, wanted};
use super::wait_for_queue;
use crate::args::GpuArgs;
use crate::commands::{load_model, profile};
use crate::error::Result;
use crate::files::open_model;
use crate::output::Output;
use crate::settings;

const SEQ_LEN: u64 = 512;
const BATCH_SIZES: [usize; 2] = [1, 8];
const PRECISIONS: [&str; 2] = ["f32", "bf16"];

/// Number of steps with timestamps around each kernel, after the timed steps.
const PROFILED: usize = 3;

/// Number of warm-up steps, and of measured steps after them.
struct Counts {
    warm_ups: usize,
    steps: usize,
}

impl Counts {
    fn of(args: &GpuArgs) -> Self {
        let (warm_ups, steps) = if args.quick { (2, 3) } else { (20, 50) };
        Self {
            warm_ups,
            steps: args.steps.map_or(steps, |steps| steps as usize),
        }
    }

    fn all(&self) -> usize {
        self.warm_ups + self.steps
    }
}

/// Settings of a run: plain AdamW at a small constant rate, without weight decay, because PyTorch lacks its parameter groups.
fn config(precision: &str, batch_size: usize, seq_len: u64) -> Result<TrainConfig> {
    let given = [
        ("steps", json!(1_000_000)),
        ("batch_size", json!(batch_size)),
        ("seq_len", json!(seq_len)),
        ("learning_rate", json!(1e-5)),
        ("max_grad_norm", json!(1.0)),
        ("precision", json!(precision)),
        ("schedule", json!({ "type": "constant" })),
        (
            "optimizer",
            json!({ "type": "adamw", "eps": 1e-8, "weight_decay": 0.0 }),
        ),
    ];
    settings::resolve(
        given
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
        None,
    )
}

/// Returns pseudo-random token ids that hardly repeat, all below `vocabulary`.
fn tokens(count: usize, vocabulary: usize) -> Vec<u32> {
    let next = |state: &mut u64| {
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        Some(((*state >> 33) % vocabulary as u64) as u32)
    };
    std::iter::repeat_n((), count)
        .scan(1, |state, ()| next(state))
        .collect()
}

/// Makes the data of a run, enough that no step repeats any.
fn data(config: &TrainConfig, counts: &Counts, vocabulary: usize) -> Result<Dataset> {
    let windows = config.batch_size * (counts.all() + PROFILED);
    Ok(Dataset::from_tokens(
        tokens(windows * config.seq_len + 1, vocabulary),
        0.0,
    )?)
}

/// Returns the batches that a run trains on, for PyTorch.
fn batches(config: &TrainConfig, data: &Dataset, counts: &Counts) -> Result<Vec<Batch>> {
    let mut loader = Loader::for_run(data, config)?;
    (0..counts.all()).map(|_| Ok(loader.next(data)?)).collect()
}

/// Returns the value at quantile `part` of `sorted`.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * part).round() as usize]
}

/// Returns the median and the 10th and 90th percentile of the measured steps.
fn spread(ms: &[f64], counts: &Counts) -> [f64; 3] {
    let mut sorted = ms[counts.warm_ups.min(ms.len() - 1)..].to_vec();
    sorted.sort_by(f64::total_cmp);
    [0.5, 0.1, 0.9].map(|part| quantile(&sorted, part))
}

/// Trains with tabtune. Returns the steps, and the time of each kernel.
fn ours(
    bundle: &Bundle,
    config: TrainConfig,
    precision: &str,
    counts: &Counts,
    device: &Device,
) -> Result<(Steps, ProfileReport)> {
    let (batch_size, model) = (
        config.batch_size,
        load_model(bundle, config.precision, device)?,
    );
    let data = data(&config, counts, model.config().vocab_size)?;
    let mut trainer = Trainer::new(model, data, config)?;
    trainer.record_steps();
    let (mut ms, mut losses) = (
        Vec::with_capacity(counts.all()),
        Vec::with_capacity(counts.all()),
    );
    for _ in 0..counts.all() {
        wait_for_queue(device)?;
        let clock = Instant::now();
        losses.push(block_on(trainer.step())?.loss);
        wait_for_queue(device)?;
        ms.push(clock.elapsed().as_secs_f64() * 1e3);
    }
    let mut times = KernelTimes::default();
    for _ in 0..PROFILED {
        profile::advance(&mut trainer, Some(&mut times))?;
    }
    Ok((
        Steps {
            precision: precision.into(),
            batch_size,
            ms,
            losses,
        },
        times.report(),
    ))
}

/// Returns the largest relative difference between the losses of a step.
fn loss_difference(ours: &[f64], theirs: &[f64]) -> f64 {
    ours.iter()
        .zip(theirs)
        .map(|(a, b)| (a - b).abs() / b.abs())
        .fold(0.0, f64::max)
}

/// Formats the line of one run, as JSON and as text.
fn line(library: &str, steps: &Steps, seq_len: usize, counts: &Counts) -> (Value, String) {
    let [ms, low, high] = spread(&steps.ms, counts);
    let Steps {
        precision,
        batch_size,
        losses,
        ..
    } = steps;
    let tokens_per_sec = (batch_size * seq_len) as f64 / ms * 1e3;
    let value = json!({
        "library": library, "precision": precision, "batch_size": batch_size, "seq_len": seq_len, "warm_ups": counts.warm_ups,
        "steps": counts.steps, "ms": ms, "ms_10": low, "ms_90": high, "tokens_per_sec": tokens_per_sec, "losses": losses
    });
    let text = format!(
        "{library} {precision}, {batch_size} × {seq_len}: {ms:.2} ms a step ({low:.2}–{high:.2}), {tokens_per_sec:.0} tokens/s, loss {:.4} → {:.4}",
        losses.first().copied().unwrap_or(f64::NAN),
        losses.last().copied().unwrap_or(f64::NAN)
    );
    (value, text)
}

/// Prints a line for each run, PyTorch's last.
///
/// # Errors
/// Errors of the model, the trainer and PyTorch.
pub fn run(
    path: &Path,
    args: &GpuArgs,
    torch: Option<&Torch<'_>>,
    device: &Device,
    output: &Output,
) -> Result<()> {
    let (counts, bundle) = (Counts::of(args), open_model(path)?);
    let (mut mine, mut asked, mut settings) = (Vec::new(), Vec::new(), None);
    for batch_size in BATCH_SIZES {
        for precision in PRECISIONS {
            let config = config(precision, batch_size, args.seq_len.unwrap_or(SEQ_LEN))?;
            let seq_len = config.seq_len;
            if torch.is_some() {
                let vocabulary = bundle.config.vocab_size;
                asked.push(wanted(
                    precision,
                    &batches(&config, &data(&config, &counts, vocabulary)?, &counts)?,
                ));
            }
            settings = Some(config.clone());
            let (steps, profile) = ours(&bundle, config, precision, &counts, device)?;
            device.inner().memory_cleanup();
            let (mut value, text) = line("tabtune", &steps, seq_len, &counts);
            value["profile"] = json!(profile);
            output.line(&json!({ "step": value }), || {
                let slowest = profile
                    .kernels
                    .iter()
                    .take(5)
                    .map(|row| format!("{} {:.0} %", row.kernel, 100.0 * row.share));
                format!(
                    "{text}\n  {:.2} ms of kernels: {} …",
                    profile.ms,
                    Vec::from_iter(slowest).join(", ")
                )
            })?;
            mine.push((steps, seq_len));
        }
    }
    let (Some(torch), Some(settings)) = (torch, settings) else {
        return Ok(());
    };
    output.line(&json!({ "torch": torch.about }), || {
        format!("PyTorch: {}", torch.about)
    })?;
    for theirs in torch.steps(path, &settings, &asked)? {
        let own = mine.iter().find(|(own, _)| {
            own.precision == theirs.precision && own.batch_size == theirs.batch_size
        });
        let Some((own, seq_len)) = own else { continue };
        let (mut value, text) = line("torch", &theirs, *seq_len, &counts);
        let ratio = spread(&own.ms, &counts)[0] / spread(&theirs.ms, &counts)[0];
        let difference = loss_difference(&own.losses, &theirs.losses);
        (value["ratio"], value["loss_difference"]) = (json!(ratio), json!(difference));
        output.line(&json!({ "step": value }), || {
            format!("{text}\n  tabtune takes {ratio:.2} of it; losses differ by {difference:.1e} at most")
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_leaves_warm_ups_out() {
        let counts = Counts {
            warm_ups: 2,
            steps: 11,
        };
        let ms: Vec<f64> = [900.0, 800.0]
            .into_iter()
            .chain((0..11).rev().map(f64::from))
            .collect();
        assert_eq!(spread(&ms, &counts), [5.0, 1.0, 9.0]);
    }

    #[test]
    fn losses_differ_by_the_worst_step() {
        assert_eq!(loss_difference(&[2.0, 4.0, 8.0], &[2.0, 5.0, 8.0]), 0.2);
    }

    #[test]
    fn tokens_are_of_the_vocabulary_and_hardly_repeat() {
        let ids = tokens(1000, 49_152);
        assert!(ids.iter().all(|&id| id < 49_152));
        assert!(ids.iter().collect::<std::collections::BTreeSet<_>>().len() > 950);
    }
}
