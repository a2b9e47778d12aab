//! Finds files of a model by their names, and reads its documents.

use std::rc::Rc;

use super::refusals::refused;
use crate::error::{Error, Refusal, Result, Warning, word};
use crate::formats::{ByteSource, base_name, known_mark, read_document};
use crate::tokenizer::TOKENIZER_FILE;

/// Files of one model.
pub(super) type Files = Vec<Rc<dyn ByteSource>>;

/// Name of the configuration in a folder.
pub(super) const CONFIG: &str = "config.json";
/// Document that states how to generate, and with it the ids that end a text.
pub(super) const GENERATION: &str = "generation_config.json";
/// Maximum size of an index, a manifest, a configuration or a template.
pub(super) const MAX_DOCUMENT_BYTES: u64 = 64 << 20;
/// Maximum size of tokenizer.json.
const MAX_TOKENIZER_BYTES: u64 = 256 << 20;

/// Lists the positions of the files whose names have this ending.
pub(super) fn named<S: ByteSource>(files: &[S], end: &str) -> Vec<usize> {
    (0..files.len())
        .filter(|&at| lower_name(&files[at]).ends_with(end))
        .collect()
}

/// Lists the positions of the GGUF files: by their names, or if no name has the ending, by their first bytes.
pub(crate) fn gguf_files<S: ByteSource>(files: &[S]) -> Vec<usize> {
    let named = named(files, ".gguf");
    if named.is_empty() {
        (0..files.len())
            .filter(|&at| known_mark(&files[at]) == Some("gguf"))
            .collect()
    } else {
        named
    }
}

pub(super) fn lower_name(file: &dyn ByteSource) -> String {
    base_name(file.name()).to_ascii_lowercase()
}

/// Creates the refusal of an adapter's file.
pub(super) fn adapter(name: &str) -> Refusal {
    let hint = "give the adapter's files by themselves as mergeAdapter (--merge-adapter), or open the base alone";
    refused(word!("bundle.adapter"), name, base_name(name))
        .expected("a model's own files")
        .found("an adapter")
        .hint(hint)
}

/// Weights of other programs: ending of their file's name, and their format in a refusal.
const OTHER_WEIGHTS: [(&str, &str); 8] = [
    (".bin", "pickle"),
    (".pt", "pickle"),
    (".pth", "pickle"),
    (".ckpt", "pickle"),
    (".h5", "weights of TensorFlow"),
    (".msgpack", "weights of Flax"),
    (".onnx", "a graph of ONNX"),
    (".npz", "arrays of NumPy"),
];

/// Creates the refusal of weights in a format of another program, if such a file is among these.
pub(super) fn other_weights(files: &Files) -> Option<Error> {
    let format = |file: &dyn ByteSource| {
        let name = lower_name(file);
        let (_, format) = OTHER_WEIGHTS
            .into_iter()
            .find(|(end, _)| name.ends_with(end))?;
        (format != "pickle" || matches!(known_mark(file), Some("zip" | "pickle"))).then_some(format)
    };
    let (file, format) = files.iter().find_map(|file| Some((file, format(file)?)))?;
    let hint = match format {
        "pickle" => {
            "Python pickles are never loaded; save the model as safetensors where it was made"
        }
        _ => "save the model as safetensors where it was made",
    };
    let refusal = Refusal::new(word!("format.unsupported")).of(file.name());
    Some(refusal.found(format).hint(hint).into())
}

/// Finds the position of the file `name`.
pub(super) fn find<S: ByteSource>(files: &[S], name: &str) -> Option<usize> {
    files.iter().position(|file| base_name(file.name()) == name)
}

/// Reads the bytes of the file `name`, if it is present.
pub(super) fn document<S: ByteSource>(files: &[S], name: &str) -> Result<Option<Vec<u8>>> {
    let limit = match name {
        TOKENIZER_FILE => MAX_TOKENIZER_BYTES,
        _ => MAX_DOCUMENT_BYTES,
    };
    find(files, name)
        .map(|at| read_document(&files[at], limit))
        .transpose()
}

/// Warns about each file that is not `used` and whose name has one of these endings.
pub(super) fn unused(files: &Files, used: &[usize], ends: &[&str]) -> Vec<Warning> {
    let left = (0..files.len()).filter(|at| !used.contains(at));
    left.map(|at| &files[at])
        .filter(|file| ends.iter().any(|end| lower_name(file).ends_with(end)))
        .map(|file| Warning::new(word!("bundle.unused"), base_name(file.name())))
        .collect()
}
