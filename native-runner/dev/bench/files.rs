//! Measures the readers and writers of model files on a model of 200 MB in memory, so that no disk is part of a figure.

use std::rc::Rc;
use std::time::Instant;

use futures_lite::future::block_on;
use serde_json::json;
use tabtune::bundle::{FileStream, ModelAssets, dequantise, open_bundle};
use tabtune::config::{ModelConfig, Precision};
use tabtune::device::Device;
use tabtune::export::{ExportOptions, ExportSource, Weights, export_folder, export_gguf};
use tabtune::families::config_from_hf;
use tabtune::formats::{
    ByteSource, Digest, FileTensor, GgmlType, GgufFile, MemorySource, TensorType, gguf_header,
};
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune::state::ModelStateTensorManifest;

use super::{mega, middle};
use tabtune_native::commands::bench::wait_for_queue;
use tabtune_native::error::Result;
use tabtune_native::output::Output;

const REPETITIONS: usize = 3;
/// Number of elements of the tensor that is decoded in each type, in rows of 512.
const ELEMENTS: u64 = 1 << 22;
/// Types of GGUF tensors that are decoded, by name.
const DECODED: [&str; 28] = [
    "F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K",
    "Q6_K", "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_NL", "IQ4_XS",
    "TQ1_0", "TQ2_0", "MXFP4", "NVFP4", "Q1_0", "Q2_0",
];

/// Returns a Llama of 49.5 million parameters, whose rows are whole blocks of every type.
fn shape() -> ModelConfig {
    let json = json!({
        "model_type": "llama", "vocab_size": 16_384, "hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 12,
        "num_attention_heads": 8, "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "tie_word_embeddings": true
    });
    config_from_hf(&json).expect("the shape of a Llama")
}

/// Prints one line per measurement, in megabytes of F32 values per second, except that hashing is in megabytes of its input.
///
/// # Errors
/// Errors of the exports, imports and decoders.
pub fn run(device: &Device, output: &Output) -> Result<()> {
    let model = block_on(Model::init(
        &shape(),
        1,
        Precision::F32,
        &device.inner(),
        &Interrupt::none(),
    ))?;
    let bytes = 4 * model.num_parameters() as u64;
    let (secs, files) = measured(REPETITIONS, || {
        files_of(&mut export_folder(
            &of_model(&model),
            &ExportOptions::default(),
        )?)
    })?;
    tell(
        output,
        "export",
        "folder of F32 from the device, with its sums",
        bytes,
        secs,
    )?;
    drop(model);
    let sources = || files.to_vec();
    let import = || -> Result<()> {
        let bundle = open_bundle(sources())?;
        block_on(Model::from_bundle(
            &bundle,
            Precision::F32,
            &device.inner(),
            &Interrupt::none(),
        ))?;
        wait_for_queue(device)
    };
    tell(
        output,
        "import",
        "folder of F32, opened and uploaded",
        bytes,
        measured(REPETITIONS, import)?.0,
    )?;

    let block = vec![7u8; 64 << 20];
    let (secs, _) = measured(REPETITIONS, || Ok(Digest::of(&block)))?;
    tell(output, "hash", "SHA-256", block.len() as u64, secs)?;
    drop(block);

    let bundle = Rc::new(open_bundle(sources())?);
    let source = ExportSource::of_bundle(&bundle)?;
    for word in TensorType::ALL
        .iter()
        .map(|one| one.word())
        .chain(["q4_k_m"])
    {
        let options = ExportOptions {
            types: Some(word.into()),
            ..ExportOptions::default()
        };
        let (secs, ()) = measured(1, || {
            drained(&mut block_on(export_gguf(&source, Vec::new(), &options))?)
        })?;
        tell(
            output,
            "encode",
            &format!("{word}, as a GGUF file with its sums"),
            bytes,
            secs,
        )?;
    }
    for name in DECODED {
        let file = random_file(name)?;
        let header = GgufFile::open(&file)?;
        let (secs, values) = measured(REPETITIONS, || {
            Ok(header.tensors.iter().try_fold(0, |sum, one| {
                Ok::<_, tabtune::Error>(sum + dequantise(&file, one)?.len())
            })?)
        })?;
        tell(output, "dequantise", name, 4 * values as u64, secs)?;
    }
    Ok(())
}

/// Returns the median of the seconds that `work` takes, and its last result.
fn measured<T>(repetitions: usize, mut work: impl FnMut() -> Result<T>) -> Result<(f64, T)> {
    let (mut secs, mut last) = (Vec::new(), None);
    for _ in 0..repetitions.max(1) {
        // The result of the previous round is freed before the clock starts.
        drop(last.take());
        let clock = Instant::now();
        last = Some(work()?);
        secs.push(clock.elapsed().as_secs_f64());
    }
    Ok((middle(&mut secs), last.expect("at least one round")))
}

fn tell(output: &Output, what: &str, of: &str, bytes: u64, secs: f64) -> Result<()> {
    let rate = mega(bytes) / secs;
    let line = json!({ "what": what, "of": of, "bytes": bytes, "secs": secs, "mb_per_sec": rate });
    output.line(&line, || {
        format!(
            "{what}, {of}: {rate:.0} MB/s ({:.0} MB in {secs:.2} s)",
            mega(bytes)
        )
    })
}

fn of_model(model: &Model) -> ExportSource {
    ExportSource::of_weights(
        Weights::of_model(model),
        ModelAssets::of_config(model.config(), None),
    )
}

/// Collects the configuration and the weights of a stream in memory.
fn files_of(stream: &mut FileStream) -> Result<Vec<Rc<dyn ByteSource>>> {
    let mut files: Vec<(String, Vec<u8>)> = stream
        .files()
        .iter()
        .map(|file| (file.name.clone(), Vec::new()))
        .collect();
    while let Some(chunk) = block_on(stream.next_chunk())? {
        files[chunk.file].1.extend(chunk.bytes);
    }
    let wanted = files
        .into_iter()
        .filter(|(name, _)| matches!(name.as_str(), "config.json" | "model.safetensors"));
    Ok(wanted
        .map(|(name, bytes)| Rc::new(MemorySource::new(name, bytes)) as Rc<dyn ByteSource>)
        .collect())
}

fn drained(stream: &mut FileStream) -> Result<()> {
    while block_on(stream.next_chunk())?.is_some() {}
    Ok(())
}

/// Makes a GGUF file with one tensor of this type, of pseudo-random bytes.
fn random_file(name: &str) -> Result<MemorySource> {
    let ggml_type = GgmlType::from_name(name).expect("a type of ggml");
    let shape = vec![ELEMENTS / 512, 512];
    let bytes = ModelStateTensorManifest::parameter("t", &ggml_type.dtype(), &shape)
        .byte_len()
        .expect("whole blocks");
    let header = gguf_header(&[], &[FileTensor::new("t", &ggml_type.dtype(), &shape)])?;
    let mut file = header.bytes;
    let mut word = 1u32;
    for _ in 0..bytes + header.spans.first().map_or(0, |span| span.padding) {
        word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        file.push((word >> 24) as u8);
    }
    Ok(MemorySource::new("random.gguf", file))
}
