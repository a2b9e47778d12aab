//! Exports: folders, GGUF files with and without a base, their receipts, and the memory that is held while they are written.

mod choices;
mod folder;
mod header;
mod patch;
mod pieces;
mod receipt;
mod recipe;
mod stored;
mod unsaid;
mod vocabulary;

use burn::tensor::Tensor;
use std::rc::Rc;
use tabtune::Result;
use tabtune::bundle::{Bundle, FileStream, ModelAssets, open_bundle};
use tabtune::config::Precision;
use tabtune::export::{ExportOptions, ExportSource, Weights, export_gguf};
use tabtune::formats::{ByteSource, FileTensor, GgufFile, GgufValue, MemorySource, gguf_header};
use tabtune::interrupt::Interrupt;
use tabtune::model::{Model, ParamMap};
use tabtune::state::{Base, RECEIPT};
use tabtune::tokenizer::Tokenizer;
use tabtune_tests::{block_on, cpu, golden};

fn source(name: &str, bytes: Vec<u8>) -> Rc<dyn ByteSource> {
    Rc::new(MemorySource::new(name, bytes))
}

fn goldens(names: &[&str]) -> Files {
    names
        .iter()
        .map(|name| source(name, golden(name)))
        .collect()
}

fn open(bytes: &[u8]) -> Bundle {
    open_bundle(vec![source("m.gguf", bytes.to_vec())]).unwrap()
}

fn load(bundle: &Bundle, precision: Precision) -> Model {
    block_on(Model::from_bundle(
        bundle,
        precision,
        &cpu().inner(),
        &Interrupt::none(),
    ))
    .unwrap()
}

/// Makes a source of a model on the device with this tokenizer and base.
fn of_model(model: &Model, tokenizer: Option<&Tokenizer>, base: Option<Base>) -> ExportSource {
    let assets = ModelAssets::of_config(model.config(), tokenizer.cloned());
    ExportSource {
        base,
        ..ExportSource::of_weights(Weights::of_model(model), assets)
    }
}

/// Makes a source of an opened model that is on no device.
fn of_files(files: Files) -> ExportSource {
    let bundle = Rc::new(open_bundle(files).unwrap());
    ExportSource::of_bundle(&bundle)
        .unwrap()
        .summed(&bundle)
        .unwrap()
}

fn named(name: &str, types: &str) -> ExportOptions {
    ExportOptions {
        name: Some(name.into()),
        types: Some(types.into()),
        ..ExportOptions::default()
    }
}

fn gguf_recipe(
    model: &Model,
    tokenizer: Option<&Tokenizer>,
    name: &str,
    types: &str,
) -> Result<FileStream> {
    block_on(export_gguf(
        &of_model(model, tokenizer, None),
        Vec::new(),
        &named(name, types),
    ))
}

fn gguf_patch(model: &Model, base: GgufBase, name: &str, types: &str) -> Result<FileStream> {
    block_on(export_gguf(
        &of_model(model, None, base.recorded),
        base.files,
        &named(name, types),
    ))
}

/// A GGUF file that a model is written into, and the base that is recorded for the model.
struct GgufBase {
    files: Files,
    recorded: Option<Base>,
}

type Files = Vec<Rc<dyn ByteSource>>;

/// Returns name and bytes of the only file of a stream besides its receipt; the file comes in pieces of 8 MiB.
fn written(mut stream: FileStream) -> (String, Vec<u8>) {
    let [file, receipt] = stream.files() else {
        panic!("{:?}", stream.files())
    };
    assert_eq!(receipt.name, RECEIPT);
    let file = file.clone();
    let mut bytes = Vec::new();
    while let Some(chunk) = block_on(stream.next_chunk()).unwrap() {
        if chunk.file == 1 {
            continue;
        }
        assert_eq!(
            chunk.bytes.len() as u64,
            (file.bytes - bytes.len() as u64).min(8 << 20)
        );
        bytes.extend(chunk.bytes);
    }
    assert_eq!(bytes.len() as u64, file.bytes);
    (file.name, bytes)
}

/// Returns name and bytes of each file of a stream, after checking the sum of their lengths.
fn all_files(stream: &mut FileStream) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = stream
        .files()
        .iter()
        .map(|file| (file.name.clone(), Vec::new()))
        .collect();
    while let Some(chunk) = block_on(stream.next_chunk()).unwrap() {
        files[chunk.file].1.extend(chunk.bytes);
    }
    assert!(
        stream
            .files()
            .iter()
            .zip(&files)
            .all(|(file, (_, bytes))| file.bytes == bytes.len() as u64)
    );
    files
}

fn sources(files: &[(String, Vec<u8>)]) -> Files {
    files
        .iter()
        .map(|(name, bytes)| source(name, bytes.clone()))
        .collect()
}

/// Adds one half to the parameters of these names, or to all if there are no names.
struct Raise<'a>(&'a [&'a str]);

impl ParamMap for Raise<'_> {
    fn map<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) -> Tensor<D> {
        if self.0.is_empty() || self.0.contains(&name) {
            tensor + 0.5
        } else {
            tensor
        }
    }
}

type Metadata = Vec<(String, GgufValue)>;
type Contents = Vec<(FileTensor, Vec<u8>)>;

/// Takes a GGUF file apart, changes it, and puts it together again.
fn rewritten(bytes: &[u8], edit: impl FnOnce(&mut Metadata, &mut Contents)) -> Vec<u8> {
    let file = GgufFile::open(&MemorySource::new("m.gguf", bytes)).unwrap();
    let contents = file.tensors.iter().map(|tensor| {
        let begin = tensor.begin as usize;
        let record = FileTensor::new(&tensor.name, &tensor.dtype, &tensor.shape);
        (
            record,
            bytes[begin..begin + tensor.bytes.unwrap() as usize].to_vec(),
        )
    });
    let mut contents: Contents = contents.collect();
    let mut metadata = file.metadata.clone();
    edit(&mut metadata, &mut contents);
    let records: Vec<FileTensor> = contents.iter().map(|(record, _)| record.clone()).collect();
    let header = gguf_header(&metadata, &records).unwrap();
    let mut out = header.bytes;
    for (span, (_, bytes)) in header.spans.iter().zip(contents) {
        assert_eq!(bytes.len() as u64, span.bytes);
        out.extend(bytes);
        out.resize(out.len() + span.padding as usize, 0);
    }
    out
}
