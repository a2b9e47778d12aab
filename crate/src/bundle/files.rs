//! Finds files of a model by their names, and reads its documents.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::error::{Error, Refusal, Result, Warning, word};
use crate::formats::{ByteSource, base_name, known_mark, read_document};

/// Files of one model.
pub(super) type Files = Vec<Rc<dyn ByteSource>>;

/// Maximum size of an index, a manifest, a configuration or a template.
pub(super) const MAX_DOCUMENT_BYTES: u64 = 64 << 20;

/// Returns the positions of the files whose names have this ending.
pub(super) fn named<S: ByteSource>(files: &[S], end: &str) -> Vec<usize> {
    (0..files.len())
        .filter(|&at| lower_name(&files[at]).ends_with(end))
        .collect()
}

/// Returns the positions of the GGUF files: by their names, or if no name has the ending, by their first bytes.
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

/// Returns the refusal of an adapter's file.
pub(super) fn adapter(name: &str) -> Refusal {
    let hint = "give the adapter's files by themselves as mergeAdapter (--merge-adapter), or open the base alone";
    Refusal::new(word!("bundle.adapter"))
        .of(name)
        .subject(base_name(name))
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

/// Returns the refusal of weights in a format of another program, if such a file is among these.
pub(super) fn other_weights(files: &Files) -> Option<Error> {
    let format = |file: &dyn ByteSource| {
        let name = lower_name(file);
        let (_, format) = OTHER_WEIGHTS
            .into_iter()
            .find(|(end, _)| name.ends_with(end))?;
        (format != "pickle" || matches!(known_mark(file), Some("zip" | "pickle"))).then_some(format)
    };
    let (file, format) = files
        .iter()
        .find_map(|file| Some((file, format(file.as_ref())?)))?;
    let hint = match format {
        "pickle" => {
            "Python pickles are never loaded; save the model as safetensors where it was made"
        }
        _ => "save the model as safetensors where it was made",
    };
    Some(
        Refusal::new(word!("format.unsupported"))
            .of(file.name())
            .found(format)
            .hint(hint)
            .into(),
    )
}

/// Returns the position of the file `name`.
pub(super) fn find(files: &Files, name: &str) -> Option<usize> {
    files.iter().position(|file| base_name(file.name()) == name)
}

/// Reads the bytes of the file `name`, if it is present.
pub(super) fn document(files: &Files, name: &str, limit: u64) -> Result<Option<Vec<u8>>> {
    find(files, name)
        .and_then(|at| files.get(at))
        .map(|file| read_document(file.as_ref(), limit))
        .transpose()
}

/// How a model is used whose tokenizer was refused.
pub(super) const WITHOUT_TOKENIZER: &str = "The model is used without a tokenizer.";

/// Turns the refusal of a tokenizer into a warning, because the tensors stay usable; a file that cannot be read remains an error.
pub(super) fn or_refused<T>(
    result: Result<Option<T>>,
    refused: &mut Option<Error>,
    warnings: &mut Vec<Warning>,
) -> Result<Option<T>> {
    match result {
        Err(error) if of_tokenizer(&error) => {
            warnings.push(Warning::of_error(&error, "tokenizer", WITHOUT_TOKENIZER));
            *refused = Some(error);
            Ok(None)
        }
        other => other,
    }
}

fn of_tokenizer(error: &Error) -> bool {
    let code = error.code();
    code.starts_with("tokenizer.")
        || code.starts_with("template.")
        || code == word!("source.too-large").text()
}

/// Returns a warning for each unused file whose name `counts` accepts.
pub(super) fn unused(
    files: &Files,
    used: &BTreeSet<usize>,
    counts: impl Fn(&str) -> bool,
) -> Vec<Warning> {
    let left = files
        .iter()
        .enumerate()
        .filter(|(at, _)| !used.contains(at))
        .map(|(_, file)| file);
    left.filter(|file| counts(&lower_name(file.as_ref())))
        .map(|file| Warning::new(word!("bundle.unused"), base_name(file.name())))
        .collect()
}
