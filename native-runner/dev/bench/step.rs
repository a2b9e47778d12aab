//! Measures training steps of the benchmark's model, alternating with steps of the same model in Burn's own operations.

use std::fmt::{Display, Formatter};
use std::time::Instant;

use futures_lite::future::block_on;
use serde_json::{Value, json};
use tabtune::config::Precision;
use tabtune::data::{Dataset, Loader};
use tabtune::device::Device;
use tabtune::gpu::counter::dispatches;
use tabtune::gpu::read_f32;
use tabtune::gpu::trace::Bytes;
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune::train::Trainer;
use tabtune_bench::work::Shape;

use super::usage::{cleaned, most, usage};
use super::{BenchArgs, mega, middle};
use tabtune_native::commands::bench::wait_for_queue;
use tabtune_native::error::Result;
use tabtune_native::output::Output;

/// Number of warm-up steps: pipelines are compiled, pools are filled, memory is observed in the second, two are launched after it, and one is
/// recorded.
const WARM_UPS: usize = 5;

/// Seconds and losses of the steps of one of the two models.
#[derive(Default)]
struct Track {
    secs: Vec<f64>,
    losses: Vec<f64>,
}

impl Track {
    /// Measures one step made by `work`, which returns its loss.
    fn step(&mut self, device: &Device, work: impl FnOnce() -> Result<f64>) -> Result<()> {
        let clock = Instant::now();
        let loss = work()?;
        wait_for_queue(device)?;
        self.secs.push(clock.elapsed().as_secs_f64());
        self.losses.push(loss);
        Ok(())
    }

    /// Returns the median seconds of the measured steps, and the first and last loss.
    fn summary(&self) -> (f64, f64, f64) {
        let mut measured = self.secs.get(WARM_UPS..).unwrap_or(&self.secs).to_vec();
        (
            middle(&mut measured),
            self.losses.first().copied().unwrap_or(f64::NAN),
            self.losses.last().copied().unwrap_or(f64::NAN),
        )
    }
}

/// Bytes of one of the two models: those between steps, and those that a step adds. For the stock model, bytes in use are measured when its
/// forward pass is complete, so the peak of the step can only be higher. Its reserved bytes are measured after the step, because the
/// allocator keeps the memory that the step took.
#[derive(Default)]
struct Needs {
    held: u64,
    taken: Bytes,
}

impl Needs {
    /// Records a step: `idle` bytes were in use before it, by both models together; `most` is its peak.
    fn took(&mut self, idle: Bytes, most: Bytes) {
        self.taken = Bytes {
            in_use: most.in_use - idle.in_use,
            reserved: most.reserved - idle.in_use,
        };
    }

    fn json(&self) -> Value {
        json!({ "held": self.held, "in_use": self.held + self.taken.in_use, "reserved": self.held + self.taken.reserved })
    }
}

impl Display for Needs {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let [held, in_use, reserved] = [
            self.held,
            self.held + self.taken.in_use,
            self.held + self.taken.reserved,
        ]
        .map(mega);
        write!(
            f,
            "{in_use:.1} MB in use at most, {held:.1} MB of them between steps; {reserved:.1} MB reserved"
        )
    }
}

/// Measures the steps and prints one line.
///
/// # Errors
/// Errors of the trainer and the device.
pub fn run(args: &BenchArgs, device: &Device, output: &Output) -> Result<()> {
    let shape = args.shape();
    let mut trainer = trainer(&shape, device)?;
    trainer.record_steps();
    let per_layer = dispatches_per_layer(&shape, device)?;
    let data = Dataset::from_tokens(shape.tokens(), 0.0)?;
    let config = shape.train_config();
    let mut loader = Loader::for_run(&data, &config)?;
    let mut stock = args.stock.then(|| shape.stock(device.autodiff()));
    let counts_bytes = device.inner().memory_pool_usage().is_some();

    let (mut ours, mut theirs) = (Track::default(), Track::default());
    let (mut our_needs, mut their_needs) = (Needs::default(), Needs::default());
    let (mut launched, mut early) = (0, None);
    for taken in 0..WARM_UPS + args.measured_steps() {
        // In the first step the moments do not exist yet.
        let weighed = counts_bytes && taken == 1;
        let before = dispatches();
        let mut step = || ours.step(device, || Ok(block_on(trainer.step())?.loss));
        if weighed {
            our_needs.took(cleaned(device)?, most(step)?);
        } else {
            step()?;
        }
        launched = dispatches() - before;
        if taken + 1 == WARM_UPS {
            early = live(device);
        }
        if let Some(stock) = &mut stock {
            let batch = loader.next(&data)?;
            let idle = if weighed {
                cleaned(device)?
            } else {
                Bytes::default()
            };
            let mut in_use = 0;
            theirs.step(device, || {
                let forward = stock.forward(&batch);
                if weighed {
                    in_use = usage(device)?.in_use;
                }
                let loss = block_on(read_f32(stock.update(forward)))?;
                Ok(loss.first().map_or(f64::NAN, |&loss| f64::from(loss)))
            })?;
            if weighed {
                their_needs.took(
                    idle,
                    Bytes {
                        in_use,
                        ..usage(device)?
                    },
                );
            }
        }
    }
    let (secs, first_loss, last_loss) = ours.summary();
    let tokens_per_sec = (shape.batch_size * shape.seq_len) as f64 / secs;
    let info = device.info();
    let parameters: usize = trainer
        .model()
        .parameters()
        .iter()
        .map(|p| p.elements())
        .sum();
    let mut line = json!({
        "size": format!("{:?}", args.size).to_lowercase(), "parameters": parameters, "steps": args.measured_steps(), "secs": secs,
        "tokens_per_sec": tokens_per_sec, "first_loss": first_loss, "last_loss": last_loss, "dispatches": launched,
        "dispatches_per_layer": per_layer, "adapter": info.adapter, "backend": info.backend
    });
    let mut text = format!(
        "{} · {}: step {secs:.3} s, {tokens_per_sec:.0} tokens/s, loss {first_loss:.4} → {last_loss:.4}, {launched} dispatches, {per_layer} per layer",
        info.adapter, info.backend
    );
    if let Some(((buffers, bytes), (late_buffers, late_bytes))) =
        early.zip(live(device)).filter(|_| stock.is_none())
    {
        line["live"] = json!({ "buffers": [buffers, late_buffers], "bytes": [bytes, late_bytes] });
        text += &format!(
            "\nalive after step {WARM_UPS}: {buffers} buffers, {:.1} MB; after the last: {late_buffers} buffers, {:.1} MB",
            mega(bytes),
            mega(late_bytes)
        );
    }
    if stock.is_some() {
        let (stock_secs, stock_first, stock_last) = theirs.summary();
        line["stock"] = json!({ "secs": stock_secs, "first_loss": stock_first, "last_loss": stock_last, "ratio": stock_secs / secs });
        text += &format!(
            "\nstock operations: step {stock_secs:.3} s, loss {stock_first:.4} → {stock_last:.4}; ratio {:.2}",
            stock_secs / secs
        );
    }
    if counts_bytes {
        let (with_both, trained_stock) = (cleaned(device)?.in_use, stock.is_some());
        drop(trainer);
        let with_stock = cleaned(device)?.in_use;
        drop(stock);
        (our_needs.held, their_needs.held) =
            (with_both - with_stock, with_stock - cleaned(device)?.in_use);
        line["memory"] = our_needs.json();
        text += &format!("\nweights, moments and a step: {our_needs}");
        if trained_stock {
            line["stock"]["memory"] = their_needs.json();
            text += &format!("\nthe same of stock operations: {their_needs}");
        }
    }
    output.line(&line, || text)
}

/// Makes a trainer of the benchmark's model with this shape.
///
/// # Errors
/// Errors of the model and the trainer.
pub fn trainer(shape: &Shape, device: &Device) -> Result<Trainer> {
    let model = block_on(Model::from_bundle(
        &shape.bundle()?,
        Precision::F32,
        &device.inner(),
        &Interrupt::none(),
    ))?;
    Ok(Trainer::new(
        model,
        Dataset::from_tokens(shape.tokens(), 0.0)?,
        shape.train_config(),
    )?)
}

/// Returns number and bytes of the buffers in use, without those that are only kept for reuse (the allocator's pools, CubeCL's cache of at most
/// 512 launch parameters).
fn live(device: &Device) -> Option<(u64, u64)> {
    device.inner().memory_cleanup();
    device
        .inner()
        .memory_pool_usage()
        .map(|usage| (usage.number_allocs, usage.bytes_in_use))
}

/// Returns the number of kernel launches that one more layer adds to a step: the difference between one layer and two. Burn's own operations
/// (views, the sum with a scalar) are not counted.
fn dispatches_per_layer(shape: &Shape, device: &Device) -> Result<u64> {
    let mut counts = [0, 0];
    for (layers, count) in (1..).zip(&mut counts) {
        let mut trainer = trainer(&Shape { layers, ..*shape }, device)?;
        let before = dispatches();
        block_on(trainer.step())?;
        *count = dispatches() - before;
    }
    Ok(counts[1] - counts[0])
}
