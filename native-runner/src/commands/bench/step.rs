//! Training steps of the benchmark's model, and in turns those of its stock form.

use std::time::Instant;

use serde_json::json;
use tabtune::config::Precision;
use tabtune::data::{Dataset, Loader};
use tabtune::device::Device;
use tabtune::kernels::launch::dispatches;
use tabtune::model::Model;
use tabtune::train::Trainer;

use super::stock::Stock;
use super::work::Shape;
use super::{BenchArgs, middle, settle};
use crate::error::Result;
use crate::output::Output;
use crate::wait::wait;

/// Steps before the measured ones: pipelines are compiled, pools filled.
const WARM_UPS: usize = 3;

/// Seconds and losses of the steps of one path.
#[derive(Default)]
struct Track {
    secs: Vec<f64>,
    losses: Vec<f64>,
}

impl Track {
    /// One step by `work`, which gives its loss.
    fn step(&mut self, device: &Device, work: impl FnOnce() -> Result<f64>) -> Result<()> {
        let clock = Instant::now();
        let loss = work()?;
        settle(device)?;
        self.secs.push(clock.elapsed().as_secs_f64());
        self.losses.push(loss);
        Ok(())
    }

    /// Median seconds of the measured steps, first and last loss.
    fn summary(&self) -> (f64, f64, f64) {
        let mut measured = self.secs.get(WARM_UPS..).unwrap_or(&self.secs).to_vec();
        (middle(&mut measured), self.losses.first().copied().unwrap_or(f64::NAN), self.losses.last().copied().unwrap_or(f64::NAN))
    }
}

/// Prints one line.
pub fn run(args: &BenchArgs, device: &Device, output: &Output) -> Result<()> {
    let shape = args.shape();
    let mut trainer = trainer(&shape, device)?;
    let per_layer = dispatches_per_layer(&shape, device)?;
    let data = Dataset::from_tokens(shape.tokens(), 0.0)?;
    let config = shape.train_config();
    let mut loader = Loader::ordered(&data, config.batch_size, config.seq_len, config.seed, config.data_order)?;
    let mut stock = args.stock.then(|| Stock::new(shape, device.autodiff()));

    let (mut ours, mut theirs) = (Track::default(), Track::default());
    let (mut launched, mut early) = (0, None);
    for taken in 0..WARM_UPS + args.steps as usize {
        let before = dispatches();
        ours.step(device, || Ok(wait(trainer.step())?.loss))?;
        launched = dispatches() - before;
        if taken == 1 {
            early = live(device);
        }
        if let Some(stock) = &mut stock {
            let batch = loader.next(&data);
            theirs.step(device, || stock.step(&batch))?;
        }
    }
    let (secs, first_loss, last_loss) = ours.summary();
    let tokens_per_sec = (shape.batch_size * shape.seq_len) as f64 / secs;
    let info = device.info();
    let parameters: usize = trainer.model().parameters().iter().map(|p| p.elements()).sum();
    let mut line = json!({
        "size": format!("{:?}", args.size).to_lowercase(), "parameters": parameters, "steps": args.steps, "secs": secs,
        "tokens_per_sec": tokens_per_sec, "first_loss": first_loss, "last_loss": last_loss, "dispatches": launched,
        "dispatches_per_layer": per_layer, "adapter": info.adapter, "backend": info.backend
    });
    let mut text = format!(
        "{} · {}: step {secs:.3} s, {tokens_per_sec:.0} tokens/s, loss {first_loss:.4} → {last_loss:.4}, {launched} dispatches, {per_layer} per layer",
        info.adapter, info.backend
    );
    if let Some(((buffers, bytes), (late_buffers, late_bytes))) = early.zip(live(device)).filter(|_| stock.is_none()) {
        line["live"] = json!({ "buffers": [buffers, late_buffers], "bytes": [bytes, late_bytes] });
        let mega = |bytes: u64| bytes as f64 / 1e6;
        text += &format!(
            "\nalive after step 2: {buffers} buffers, {:.1} MB; after the last: {late_buffers} buffers, {:.1} MB",
            mega(bytes),
            mega(late_bytes)
        );
    }
    if stock.is_some() {
        let (stock_secs, stock_first, stock_last) = theirs.summary();
        line["stock"] = json!({ "secs": stock_secs, "first_loss": stock_first, "last_loss": stock_last, "ratio": stock_secs / secs });
        text +=
            &format!("\nstock operations: step {stock_secs:.3} s, loss {stock_first:.4} → {stock_last:.4}; ratio {:.2}", stock_secs / secs);
    }
    output.line(&line, || text)
}

pub fn trainer(shape: &Shape, device: &Device) -> Result<Trainer> {
    let model = Model::from_bundle(&shape.bundle()?, Precision::F32, &device.inner())?;
    Ok(Trainer::new(model, Dataset::from_tokens(shape.tokens(), 0.0)?, shape.train_config())?)
}

/// Buffers that are alive and their bytes, without those that only wait to be used again (the allocator's pools, CubeCL's cache of at most 512
/// launch parameters).
fn live(device: &Device) -> Option<(u64, u64)> {
    device.inner().memory_cleanup();
    device.inner().memory_pool_usage().map(|usage| (usage.number_allocs, usage.bytes_in_use))
}

/// Kernels of the catalogue that one more layer costs in a step: the difference between one layer and two. Burn's own operations (views, the
/// sum with a scalar) are not counted.
fn dispatches_per_layer(shape: &Shape, device: &Device) -> Result<u64> {
    let mut counts = [0, 0];
    for (layers, count) in (1..).zip(&mut counts) {
        let mut trainer = trainer(&Shape { layers, ..*shape }, device)?;
        let before = dispatches();
        wait(trainer.step())?;
        *count = dispatches() - before;
    }
    Ok(counts[1] - counts[0])
}
