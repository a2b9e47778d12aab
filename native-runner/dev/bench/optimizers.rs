//! Measures one step of each optimizer, compared with a copy of the same number of bytes.

use std::collections::BTreeMap;

use burn::tensor::{DType, Tensor, TensorData};
use serde_json::json;
use tabtune::config::{
    AdafactorConfig, AdamwConfig, ApolloConfig, OptimizerConfig, SgdConfig, TrainConfig,
};
use tabtune::device::Device;
use tabtune::gpu::trace::{self, Launched};
use tabtune::gpu::{self, Buffer, copy as u32_copy};
use tabtune::optim::{Gate, Optim, ParamInfo};

use super::{REPETITIONS, WARM_UPS, median};
use tabtune_native::error::Result;
use tabtune_native::output::Output;

const COLUMNS: usize = 2048;

/// Prints one line per optimizer and precision.
///
/// # Errors
/// Errors of the optimizers and the device.
pub fn run(elements: usize, device: &Device, output: &Output) -> Result<()> {
    let rows = (elements / COLUMNS).max(1);
    output.fragment(&format!(
        "{} · {}, matrix [{rows}, {COLUMNS}]\n",
        device.info().adapter,
        device.info().backend
    ))?;
    for (name, rule, passes) in rules() {
        for dtype in [DType::F32, DType::BF16] {
            let (bytes, secs, launches) = optimizer(device, &rule, passes, dtype, rows)?;
            let dispatches = launches.len();
            let copy_secs = copy(device, bytes)?;
            let rate = |secs: f64| bytes as f64 / secs / 1e9;
            let precision = if dtype == DType::F32 { "f32" } else { "bf16" };
            let line = json!({
                "optimizer": name, "precision": precision, "elements": rows * COLUMNS, "bytes": bytes, "secs": secs, "copy_secs": copy_secs,
                "dispatches": dispatches, "gb_per_sec": rate(secs), "copy_gb_per_sec": rate(copy_secs), "ratio": copy_secs / secs,
                "adapter": device.info().adapter, "backend": device.info().backend,
                // For the browser, where the same launches are timed (tests/bench/optimizers.mjs).
                "texts": launches.iter().map(|l| (l.kernel.name, l.kernel.assembled())).collect::<BTreeMap<_, _>>(),
                "launches": launches.iter().map(|l| json!([l.kernel.name, l.words, l.params, l.groups])).collect::<Vec<_>>()
            });
            output.line(&line, || {
                let (mega, milli) = (bytes as f64 / 1e6, secs * 1e3);
                let (own, plain, ratio) = (rate(secs), rate(copy_secs), copy_secs / secs);
                format!(
                    "{name} {precision}: {mega:.1} MB in {milli:.2} ms and {dispatches} dispatches, {own:.2} GB/s; copy {plain:.2} GB/s; ratio {ratio:.3}"
                )
            })?;
        }
    }
    Ok(())
}

/// Returns name, rule, and the number of times that a step reads the gradient.
fn rules() -> Vec<(&'static str, OptimizerConfig, usize)> {
    let momentum = SgdConfig {
        momentum: 0.9,
        ..SgdConfig::default()
    };
    let apollo = |rank| {
        OptimizerConfig::Apollo(ApolloConfig {
            rank: Some(rank),
            ..ApolloConfig::default()
        })
    };
    vec![
        ("adamw", OptimizerConfig::Adamw(AdamwConfig::default()), 1),
        (
            "adafactor",
            OptimizerConfig::Adafactor(AdafactorConfig::default()),
            3,
        ),
        ("apollo", apollo(1), 2),
        ("apollo_8", apollo(8), 3),
        ("apollo_64", apollo(64), 3),
        ("sgd", OptimizerConfig::Sgd(SgdConfig::default()), 1),
        ("sgd_momentum", OptimizerConfig::Sgd(momentum), 1),
    ]
}

/// Returns the bytes that a step moves (gradient once per pass; parameter and state read and written), its median seconds, and its launches.
fn optimizer(
    device: &Device,
    rule: &OptimizerConfig,
    passes: usize,
    dtype: DType,
    rows: usize,
) -> Result<(u64, f64, Vec<Launched>)> {
    let (tensors, shape) = (device.inner(), [rows, COLUMNS]);
    let info = ParamInfo {
        name: "matrix".into(),
        shape: shape.to_vec(),
        dtype,
        outside_blocks: false,
    };
    let config = TrainConfig {
        optimizer: rule.clone(),
        ..TrainConfig::default()
    };
    let mut optim = Optim::new(&config, std::slice::from_ref(&info))?;
    let n = info.elements();
    let bytes = (4 * n * passes + 2 * dtype.size() * n) as u64 + 2 * optim.state_bytes();
    // 0.5 in both dtypes: the upper half of the f32 pattern is the bf16 pattern.
    let half = 0.5f32.to_le_bytes();
    let pattern = if dtype == DType::BF16 {
        &half[2..]
    } else {
        &half[..]
    };
    let data = TensorData::from_bytes_vec(pattern.repeat(n), shape, dtype);
    let mut held = Some(Tensor::<2>::from_data(data, (&tensors, dtype)));
    let values: Vec<f32> = (0..n).map(|i| ((i % 251) as f32 - 125.0) * 1e-3).collect();
    let made = || Tensor::<2>::from_data(TensorData::new(values.clone(), shape), &tensors);
    let mut gradients: Vec<Tensor<2>> = (0..WARM_UPS + REPETITIONS + 1).map(|_| made()).collect();
    let gate = Gate::open(1.0, &tensors);
    let mut step = || {
        // Moved, as the gradient is, so that both are uniquely owned and the step writes in place.
        if let Some(p) = held.take() {
            held = Some(optim.step_param("matrix", p, gradients.pop(), 1e-3, &gate)?);
        }
        Ok(())
    };
    let secs = median(device, &mut step)?;
    trace::start();
    step()?;
    Ok((bytes, secs, trace::finish()))
}

/// Returns the median seconds of a kernel that reads half of `bytes` and writes the other half.
///
/// # Errors
/// Errors of the launch and the device.
pub fn copy(device: &Device, bytes: u64) -> Result<f64> {
    let words = (bytes / 8) as usize;
    let x = Buffer::from(Tensor::<1>::ones([words], &device.inner()));
    let mut y = Some(Buffer::from(Tensor::<1>::zeros([words], &device.inner())));
    median(device, || {
        if let Some(held) = y.take() {
            let [written] = gpu::run(
                &u32_copy::KERNEL,
                [x.clone()],
                [held],
                &u32_copy::Params::whole(words),
                u32_copy::KERNEL.groups(words),
            )?;
            y = Some(written);
        }
        Ok(())
    })
}
