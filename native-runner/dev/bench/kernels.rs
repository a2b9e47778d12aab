//! Times each kernel that a training step launches, alone and at the shapes of that step, and compares it with a copy of as many bytes.

use std::collections::BTreeMap;
use std::time::Instant;

use futures_lite::future::block_on;
use serde_json::json;
use tabtune::device::Device;
use tabtune::gpu::Access;
use tabtune::gpu::launch::with_bounded_loops;
use tabtune::gpu::trace::{self, Launched};
use tabtune::interrupt::Interrupt;
use tabtune::measure::Repeated;

use super::optimizers::copy;
use super::{BenchArgs, REPETITIONS, middle, step};
use tabtune_native::commands::bench::wait_for_queue;
use tabtune_native::error::{Result, RunError};
use tabtune_native::output::Output;

/// Minimum duration of a measurement in seconds, so that waiting for the device does not dominate it.
const LEAST_SECS: f64 = 0.02;
const MOST_LAUNCHES: usize = 200;

/// Prints one line per kernel and shape, slowest first.
///
/// # Errors
/// `cli.usage` on a device that launches no kernels; errors of the trainer and the device.
pub fn run(args: &BenchArgs, device: &Device, output: &Output) -> Result<()> {
    let shape = args.shape();
    let mut trainer = step::trainer(&shape, device)?;
    block_on(trainer.step())?;
    trace::start();
    block_on(trainer.step())?;
    let launches = trace::finish();
    if launches.is_empty() {
        return Err(RunError::Usage(
            "bench kernels measures WGSL kernels: it needs --device wgpu".into(),
        ));
    }
    let mut distinct: BTreeMap<_, (Launched, usize)> = BTreeMap::new();
    for launched in launches {
        // The other parameters, such as a sign or an offset in a buffer, do not change the time.
        let key = (
            launched.kernel.name,
            launched.groups,
            launched.words.clone(),
        );
        distinct.entry(key).or_insert((launched, 0)).1 += 1;
    }
    let mut lines = Vec::with_capacity(distinct.len());
    for (launched, times) in distinct.into_values() {
        let (secs, bounded) = (
            time(device, &launched)?,
            with_bounded_loops(|| time(device, &launched))?,
        );
        let bytes = bytes(&launched);
        lines.push((
            launched,
            times,
            secs,
            bounded,
            bytes,
            copy(device, bytes.max(8))?,
        ));
    }
    lines.sort_by(|a, b| (b.1 as f64 * b.2).total_cmp(&(a.1 as f64 * a.2)));
    let info = device.info();
    output.fragment(&format!(
        "{} · {}, {:?}, one step\n",
        info.adapter, info.backend, args.size
    ))?;
    for (launched, times, secs, bounded, bytes, copy_secs) in lines {
        let rate = |amount: f64, secs: f64| amount / secs / 1e9;
        let flops = flops(&launched).map(|flops| rate(flops, secs));
        let (moved, copied) = (rate(bytes as f64, secs), rate(bytes as f64, copy_secs));
        let line = json!({
            "kernel": launched.kernel.name, "words": launched.words, "groups": launched.groups, "times": times, "secs": secs,
            "step_secs": secs * times as f64, "bounded_secs": bounded, "gflop_per_sec": flops, "bytes": bytes, "gb_per_sec": moved, "copy_gb_per_sec": copied,
            "copy_ratio": copy_secs / secs, "adapter": info.adapter, "backend": info.backend
        });
        output.line(&line, || {
            let flops = flops.map_or_else(String::new, |rate| format!(", {rate:.2} GFLOP/s"));
            let (name, words, milli, bounded) = (launched.kernel.name, &launched.words, secs * 1e3, bounded / secs);
            format!("{name} {words:?}: {times} × {milli:.3} ms{flops}, {moved:.2} GB/s; copy {copied:.2} GB/s; bounded loops {bounded:.2}")
        })?;
    }
    Ok(())
}

/// Returns the median seconds of one launch.
fn time(device: &Device, launched: &Launched) -> Result<f64> {
    let mut work = block_on(Repeated::new(
        std::slice::from_ref(launched),
        &device.inner(),
        &Interrupt::none(),
    ))?;
    work.pass()?;
    wait_for_queue(device)?;
    let clock = Instant::now();
    work.pass()?;
    wait_for_queue(device)?;
    let launches =
        ((LEAST_SECS / clock.elapsed().as_secs_f64().max(1e-9)) as usize).clamp(1, MOST_LAUNCHES);
    let mut secs = Vec::with_capacity(REPETITIONS);
    for _ in 0..REPETITIONS {
        wait_for_queue(device)?;
        let clock = Instant::now();
        (0..launches).try_for_each(|_| work.pass())?;
        wait_for_queue(device)?;
        secs.push(clock.elapsed().as_secs_f64() / launches as f64);
    }
    Ok(middle(&mut secs))
}

/// Returns the bytes of the buffers. Updated ones count twice, because they are read and written.
fn bytes(launched: &Launched) -> u64 {
    let times = |access: Access| if access == Access::Update { 2 } else { 1 };
    launched
        .words
        .iter()
        .zip(launched.kernel.bindings)
        .map(|(&words, binding)| 4 * words as u64 * times(binding.access))
        .sum()
}

/// Returns the floating point operations of a linear or attention kernel's products; `None` for other kernels, which are bound by memory.
fn flops(launched: &Launched) -> Option<f64> {
    let (name, params, words) = (launched.kernel.name, &launched.params, &launched.words);
    if let Some(linear) = name.strip_prefix("linear_") {
        // Rows n, widths m and k, some of which are counted in vectors of four: y [n, m] = x [n, k] w [m, k]ᵀ, or gradients of it.
        let [n, m, third] = [0, 1, 2].map(|i| params.get(i).map_or(0.0, |&size| f64::from(size)));
        let joint = linear.contains("_three_") || linear.contains("_two_");
        let sizes = match linear {
            _ if linear.starts_with("transpose") => return None,
            _ if linear.contains("_any") => n * m * third,
            _ if linear.starts_with("backward_tile") => {
                // Both gradients or one: the buffer of a gradient that is not requested is a placeholder.
                let made = words[3..].iter().filter(|&&words| words > 4).count();
                n * m * 4.0 * f64::from(*params.get(3)?) * made as f64
            }
            _ if joint && linear.starts_with("backward") => 2.0 * n * 4.0 * m * 4.0 * third,
            _ if linear.starts_with("backward") => n * 4.0 * m * 4.0 * third,
            _ => n * m * 4.0 * third,
        };
        return Some(2.0 * sizes);
    }
    let first = f64::from(u32::try_from(*words.first()?).ok()?);
    // Two products in the forward pass, three for the gradient of the queries, four for the gradients of keys and values; half of the square
    // is masked.
    let products = match name
        .trim_end_matches("_block")
        .trim_end_matches("_wide")
        .trim_end_matches("_tile")
    {
        "attention_forward" => 2.0,
        "attention_backward_query" => 3.0,
        "attention_backward_key_value" => 4.0,
        _ => return None,
    };
    let len = f64::from(*params.get(3)?);
    Some(products * first * (len + 1.0))
}
