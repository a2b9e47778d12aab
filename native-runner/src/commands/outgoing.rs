//! Output of `export`, `convert` and `adapter merge`.

use std::fmt;
use std::rc::Rc;

use futures_lite::future::block_on;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tabtune::bundle::{Bundle, FileStream};
use tabtune::config::Precision;
use tabtune::error::{Warning, Word};
use tabtune::export::{ExportDtype, ExportFormat, ExportOptions, ExportSource, GgufTypes, export};
use tabtune::formats::ByteSource;
use tabtune::state::Conversion;

use crate::args::{CardArgs, OutputArgs};
use crate::error::{Result, RunError};
use crate::files::{base_sources, file_name};
use crate::output::{Output, warn};
use crate::place::{Folder, OneFile, Place};

/// Warning about a merge that leaves little of the adapter's change.
const LOST: Word = tabtune::error::word!("export.lora.lost");
/// Warning about an adapter whose pairs are all zero.
const ZERO: Word = tabtune::error::word!("adapter.zero");
/// Warnings that writing adds itself, known once it is done.
const OWN: [Word; 8] = [
    LOST,
    ZERO,
    tabtune::error::word!("adapter.base.unnamed"),
    tabtune::error::word!("export.gguf.end"),
    tabtune::error::word!("export.gguf.normalizer"),
    tabtune::error::word!("export.gguf.token-border"),
    tabtune::error::word!("export.gguf.type-kept"),
    tabtune::error::word!("export.gguf.type-unused"),
];

/// Warning about values that are NaN or infinite, if they are allowed.
const NON_FINITE: Word = tabtune::error::word!("tensor.non-finite");

/// Returns the crate's export options and the output location. Contradictory options and unusable locations are refused before anything is
/// read.
///
/// # Errors
/// `cli.usage` for options that do not go together, `output.occupied`, `sink.write`.
pub fn options(args: &OutputArgs) -> Result<(ExportOptions, Place)> {
    check_own(args)?;
    let (file, ending) = (file_name(&args.to), args.format.ending());
    if !file.to_ascii_lowercase().ends_with(ending) {
        return Err(RunError::Usage(format!(
            "with --format {} the name of --to ends in {ending}",
            args.format.word()
        )));
    }
    let folder = ending.is_empty();
    let of_file = |format: &ExportFormat| {
        !format.ending().is_empty() && file.to_ascii_lowercase().ends_with(format.ending())
    };
    if let Some(other) = ExportFormat::ALL
        .iter()
        .find(|format| folder && of_file(format))
    {
        let (word, ending) = (args.format.word(), other.ending());
        return Err(RunError::Usage(format!(
            "--format {word} writes a folder, and the name of --to ends in {ending}: give --format {}",
            other.word()
        )));
    }
    let stem = ExportFormat::ALL
        .into_iter()
        .filter(|format| !format.ending().is_empty());
    let stem = stem
        .into_iter()
        .find_map(|format| file.strip_suffix(format.ending()))
        .unwrap_or(&file);
    let name = args.card.name.clone().unwrap_or_else(|| stem.to_string());
    let mut fields = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        drop(value.map(|value| fields.insert(key.to_string(), value)))
    };
    put("format", Some(json!(args.format)));
    put("type", args.types.clone().map(Value::from));
    put("dtype", args.dtype.clone().map(Value::from));
    put("shard_bytes", args.shard_bytes.map(Value::from));
    put("optimizer", Some(json!(args.optimizer)));
    put("manifest", Some(json!(args.manifest)));
    put("requantise", Some(json!(args.requantise)));
    put("encoding", args.encoding.clone().map(Value::from));
    put("allow_non_finite", Some(json!(args.allow_non_finite)));
    put("name", Some(json!(name)));
    // The receipt names the file as it is named here.
    put("file_name", (!folder).then(|| json!(file)));
    put("card", card(&args.card));
    let options: ExportOptions = serde_json::from_value(Value::Object(fields))
        .map_err(|e| RunError::Usage(format!("the options of an export: {e}")))?;
    // A type that cannot be written is refused before anything is read.
    options
        .types
        .as_deref()
        .map(GgufTypes::from_word)
        .transpose()?;
    let place = if folder {
        Place::Folder(Folder::for_output(&args.to)?)
    } else {
        Place::File(OneFile::new(&args.to)?)
    };
    Ok((options, place))
}

/// Refuses options that the format does not have.
fn check_own(args: &OutputArgs) -> Result<()> {
    let given = [
        ("type", args.types.is_some()),
        ("dtype", args.dtype.is_some()),
        ("shard_bytes", args.shard_bytes.is_some()),
        ("optimizer", args.optimizer),
        ("encoding", args.encoding.is_some()),
        ("base", !args.base.is_empty()),
        ("requantise", args.requantise),
        ("manifest", args.manifest),
    ];
    let notes = [
        ("license", &args.card.license),
        ("base-model", &args.card.base_model),
        ("data-note", &args.card.data_note),
        ("note", &args.card.note),
    ];
    if let Some((option, _)) = notes
        .into_iter()
        .find(|(_, note)| note.is_some())
        .filter(|_| !args.format.ending().is_empty())
    {
        return Err(RunError::Usage(format!(
            "--{option} goes into a model card, which --format {} has not",
            args.format.word()
        )));
    }
    match given
        .into_iter()
        .find(|(option, given)| *given && !args.format.takes(option))
    {
        Some((option, _)) => {
            let formats: Vec<&str> = ExportFormat::ALL
                .into_iter()
                .filter(|format| format.takes(option))
                .map(ExportFormat::word)
                .collect();
            Err(RunError::Usage(format!(
                "--{} goes with --format {}",
                option.replace('_', "-"),
                formats.join(", ")
            )))
        }
        None => Ok(()),
    }
}

fn card(args: &CardArgs) -> Option<Value> {
    let fields = [
        ("name", &args.name),
        ("license", &args.license),
        ("base_model", &args.base_model),
        ("data", &args.data_note),
        ("text", &args.note),
    ];
    let given: Map<String, Value> = fields
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_string(), value.clone()?.into())))
        .collect();
    (!given.is_empty()).then_some(Value::Object(given))
}

/// Opens the files of the base, for formats that contain a whole model.
///
/// # Errors
/// `source.read`.
pub fn base(args: &OutputArgs) -> Result<Vec<Rc<dyn ByteSource>>> {
    if args.format.takes("base") && !args.format.is_of_adapter() {
        base_sources(&args.base)
    } else {
        Ok(Vec::new())
    }
}

/// Share of an adapter's change that remains in the weights it was merged into.
#[derive(Debug, Serialize)]
pub struct Survival {
    mean: f64,
    least: f64,
    /// Name of the tensor with the smallest share.
    tensor: String,
}

impl Survival {
    fn of(conversions: &[Conversion]) -> Option<Self> {
        let shares: Vec<(f64, &str)> = conversions
            .iter()
            .filter_map(|one| Some((one.survival?, one.tensor.as_str())))
            .collect();
        let (least, tensor) = shares.iter().copied().min_by(|a, b| a.0.total_cmp(&b.0))?;
        let mean = shares.iter().map(|(share, _)| share).sum::<f64>() / shares.len() as f64;
        Some(Self {
            mean,
            least,
            tensor: tensor.to_owned(),
        })
    }
}

impl fmt::Display for Survival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            mean,
            least,
            tensor,
        } = self;
        write!(
            f,
            "of the adapter's change {mean:.6} is left in the mean, {least:.6} at least ({tensor})"
        )
    }
}

/// Logs the warnings that the writing of an adapter or a model adds, once it is written.
pub fn warn_of_written(stream: &FileStream) {
    warn_of(stream, &OWN);
}

/// Logs those warnings of an export that have one of these codes.
fn warn_of(stream: &FileStream, words: &[Word]) {
    for told in stream
        .receipt()
        .into_iter()
        .flat_map(|receipt| &receipt.warnings)
    {
        if let Some(word) = words.iter().find(|word| word.text() == told.code) {
            let warning = Warning::new(*word, &told.subject);
            warn(&warning.message(), warning.code);
        }
    }
}

/// Returns the share of a merged adapter's change that remains in weights of this precision, and warns if it is small. Every weight is read
/// and rounded for this.
///
/// # Errors
/// Errors of reading the model and of the export.
pub fn survival_in(bundle: &Rc<Bundle>, precision: Precision) -> Result<Option<Survival>> {
    let dtype = match precision {
        Precision::F32 => ExportDtype::F32,
        Precision::Bf16 => ExportDtype::Bf16,
    };
    let options = ExportOptions {
        dtype,
        allow_non_finite: true,
        ..ExportOptions::default()
    };
    let source = ExportSource::of_bundle(bundle)?.summed(bundle)?;
    let mut stream = block_on(export(&source, Vec::new(), &options))?;
    while block_on(stream.next_chunk())?.is_some() {}
    warn_of(&stream, &[LOST, ZERO]);
    Ok(stream
        .receipt()
        .and_then(|receipt| Survival::of(&receipt.conversions)))
}

/// Writes the files and prints their paths; with `--json` the receipt too.
///
/// # Errors
/// `cli.usage` for a base that is not used, and errors of the export and of writing.
pub fn write(
    source: &ExportSource,
    base: Vec<Rc<dyn ByteSource>>,
    options: &ExportOptions,
    place: Place,
    output: &Output,
) -> Result<()> {
    if options.format == ExportFormat::Safetensors
        && source.adapter_settings.is_none()
        && !base.is_empty()
    {
        return Err(RunError::Usage(
            "--base with --format safetensors: expected the checkpoint of an adapter, which is merged into it".into(),
        ));
    }
    write_stream(block_on(export(source, base, options))?, place, output)
}

/// Writes the files of an export and prints their paths; with `--json` the receipt too.
///
/// # Errors
/// Errors of reading and writing.
pub fn write_stream(mut stream: FileStream, mut place: Place, output: &Output) -> Result<()> {
    let written = place.write(&mut stream)?;
    let files: Vec<String> = written
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    warn_of_written(&stream);
    for (name, count) in stream.non_finite() {
        warn(
            &Warning::new(NON_FINITE, &format!("{name} ({count})")).message(),
            NON_FINITE.text(),
        );
    }
    let survived = stream
        .receipt()
        .and_then(|receipt| Survival::of(&receipt.conversions))
        .map(|survival| survival.to_string());
    output.line(
        &json!({ "files": files, "receipt": stream.receipt() }),
        || {
            files
                .iter()
                .cloned()
                .chain(survived)
                .collect::<Vec<_>>()
                .join("\n")
        },
    )
}
