//! Measures training steps of an adapter on a packed base, alternating with steps on the same weights in f32.

use std::rc::Rc;
use std::time::Instant;

use futures_lite::future::block_on;
use serde_json::json;
use tabtune::bundle::{Bundle, ModelAssets, open_bundle};
use tabtune::config::{Precision, TrainConfig};
use tabtune::data::Dataset;
use tabtune::device::Device;
use tabtune::export::{ExportFormat, ExportOptions, ExportSource, Weights, export};
use tabtune::formats::{ByteSource, MemorySource};
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune::train::Trainer;
use tabtune_bench::work::{SMALL, Shape};

use super::{BenchArgs, middle};
use tabtune_native::commands::bench::wait_for_queue;
use tabtune_native::error::Result;
use tabtune_native::output::Output;

/// Storage types that an export can write.
const TYPES: [&str; 8] = [
    "f16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q4_k", "q6_k",
];

/// Number of warm-up steps, in which pipelines are compiled and memory pools are filled.
const WARM_UPS: usize = 2;

/// Returns the benchmark's small model with rows that are whole blocks of 256, and one sequence.
fn shape(args: &BenchArgs) -> Shape {
    Shape {
        ffn: 768,
        batch_size: 1,
        seq_len: args.seq_len.unwrap_or(SMALL.seq_len as u64) as usize,
        ..SMALL
    }
}

/// Makes the model as one GGUF file of this storage type.
fn packed(shape: &Shape, types: &str, device: &Device) -> Result<Bundle> {
    let model = block_on(Model::from_bundle(
        &shape.bundle()?,
        Precision::F32,
        &device.inner(),
        &Interrupt::none(),
    ))?;
    let source = ExportSource::of_weights(
        Weights::of_model(&model),
        ModelAssets::of_config(model.config(), None),
    );
    let options = ExportOptions {
        format: ExportFormat::Gguf,
        types: Some(types.into()),
        ..ExportOptions::default()
    };
    let mut stream = block_on(export(&source, Vec::new(), &options))?;
    let mut files: Vec<(String, Vec<u8>)> = stream
        .files()
        .iter()
        .map(|file| (file.name.clone(), Vec::new()))
        .collect();
    while let Some(chunk) = block_on(stream.next_chunk())? {
        if let Some((_, bytes)) = files.get_mut(chunk.file) {
            bytes.extend(chunk.bytes);
        }
    }
    files.retain(|(name, _)| name.ends_with(".gguf"));
    let sources = files
        .into_iter()
        .map(|(name, bytes)| Rc::new(MemorySource::new(name, bytes)) as Rc<dyn ByteSource>);
    Ok(open_bundle(sources.collect())?)
}

fn config(shape: &Shape, storage: &str) -> Result<TrainConfig> {
    let adapter = json!({ "r": 16, "alpha": 32.0, "target_modules": "all-linear" });
    let json = json!({ "steps": 1000, "batch_size": shape.batch_size, "seq_len": shape.seq_len, "learning_rate": 2e-4,
        "adapter": adapter, "base_storage": storage });
    Ok(TrainConfig::default().overlaid(json)?)
}

/// Prints one line for each storage type.
///
/// # Errors
/// Errors of the export, the model and the trainer.
pub fn run(args: &BenchArgs, device: &Device, output: &Output) -> Result<()> {
    let shape = shape(args);
    for types in TYPES {
        let bundle = packed(&shape, types, device)?;
        let mut runs = Vec::new();
        for storage in ["stored", "f32"] {
            let config = config(&shape, storage)?;
            let model = block_on(Model::for_run(
                &bundle,
                &config,
                &device.inner(),
                &Interrupt::none(),
            ))?;
            runs.push((
                Trainer::new(model, Dataset::from_tokens(shape.tokens(), 0.0)?, config)?,
                Vec::new(),
                0.0,
            ));
        }
        for taken in 0..WARM_UPS + args.measured_steps() {
            for (trainer, secs, loss) in &mut runs {
                let clock = Instant::now();
                *loss = block_on(trainer.step())?.loss;
                wait_for_queue(device)?;
                if taken >= WARM_UPS {
                    secs.push(clock.elapsed().as_secs_f64());
                }
            }
        }
        let [(_, stored, loss), (_, wide, same)] = &mut runs[..] else {
            continue;
        };
        let (stored, wide, equal) = (
            middle(stored),
            middle(wide),
            loss.to_bits() == same.to_bits(),
        );
        let ratio = stored / wide;
        let line = json!({ "storage": types, "secs": stored, "f32_secs": wide, "ratio": ratio, "equal": equal, "adapter": device.info().adapter });
        output.line(&line, || {
            format!(
                "{types}: step {stored:.3} s, with f32 {wide:.3} s, ratio {ratio:.2}, {}",
                if equal {
                    "equal losses"
                } else {
                    "OTHER LOSSES"
                }
            )
        })?;
    }
    Ok(())
}
