//! What `export`, `convert` and `adapter merge` write.

use serde_json::{Map, Value, json};
use tabtune::bundle::Warning;
use tabtune::error::Word;
use tabtune::export::{ExportOptions, ExportSource, GgufTypes};

use crate::args::{CardArgs, ExportFormat, OutputArgs};
use crate::error::{Result, RunError};
use crate::files::{base_sources, file_name};
use crate::output::Output;
use crate::wait::wait;
use crate::writer::{check_file, check_place, write_file, write_folder};

/// What is told of an export when it is written, and not before.
const LOST: Word = tabtune::error::word!("export.lora.lost");

/// The options of the crate, and whether they ask for one file. What cannot go together is refused before anything is read.
pub fn options(args: &OutputArgs) -> Result<ExportOptions> {
    if !matches!(args.format, ExportFormat::Gguf | ExportFormat::GgufAdapter) && args.types.is_some() {
        return Err(RunError::Usage("--type goes with --format gguf and gguf-adapter".into()));
    }
    if args.format == ExportFormat::Json && !args.base.is_empty() {
        return Err(RunError::Usage("--base goes with every format but json".into()));
    }
    if args.format != ExportFormat::Json && (args.encoding.is_some() || args.allow_non_finite) {
        return Err(RunError::Usage("--encoding and --allow-non-finite go with --format json".into()));
    }
    if args.format != ExportFormat::Safetensors && (args.dtype.is_some() || args.shard_bytes.is_some() || args.optimizer) {
        return Err(RunError::Usage("--dtype, --shard-bytes and --optimizer go with --format safetensors".into()));
    }
    let file = file_name(&args.to);
    let ending = match args.format {
        ExportFormat::Safetensors | ExportFormat::Peft => "",
        ExportFormat::Gguf | ExportFormat::GgufAdapter => ".gguf",
        ExportFormat::Json => ".state_dict.json",
    };
    if !file.to_ascii_lowercase().ends_with(ending) {
        return Err(RunError::Usage(format!("with --format {} the name of --to ends in {ending}", word(args.format))));
    }
    let stem = [".gguf", ".state_dict.json"].into_iter().find_map(|end| file.strip_suffix(end)).unwrap_or(&file);
    let name = args.card.name.clone().unwrap_or_else(|| stem.to_string());
    let mut fields = Map::new();
    let mut put = |key: &str, value: Option<Value>| drop(value.map(|value| fields.insert(key.to_string(), value)));
    put("format", Some(json!(word(args.format))));
    put("type", args.types.clone().map(Value::from));
    put("dtype", args.dtype.clone().map(Value::from));
    put("shard_bytes", args.shard_bytes.map(Value::from));
    put("optimizer", Some(json!(args.optimizer)));
    put("manifest", Some(json!(args.manifest)));
    put("requantise", Some(json!(args.requantise)));
    put("encoding", args.encoding.clone().map(Value::from));
    put("allow_non_finite", Some(json!(args.allow_non_finite)));
    put("name", Some(json!(name)));
    // The receipt calls the file what it is called here.
    put("file_name", (!args.format.is_folder()).then(|| json!(file)));
    put("card", card(&args.card));
    let place = if args.format.is_folder() { check_place(&args.to, None) } else { check_file(&args.to) };
    place?;
    let options: ExportOptions =
        serde_json::from_value(Value::Object(fields)).map_err(|e| RunError::Usage(format!("the options of an export: {e}")))?;
    // What cannot be written is refused before anything is read.
    options.types.as_deref().map(GgufTypes::from_word).transpose()?;
    Ok(options)
}

fn word(format: ExportFormat) -> &'static str {
    match format {
        ExportFormat::Safetensors => "safetensors",
        ExportFormat::Gguf => "gguf",
        ExportFormat::Json => "json",
        ExportFormat::Peft => "peft",
        ExportFormat::GgufAdapter => "gguf-adapter",
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
    let given: Map<String, Value> = fields.into_iter().filter_map(|(key, value)| Some((key.to_string(), value.clone()?.into()))).collect();
    (!given.is_empty()).then_some(Value::Object(given))
}

/// Writes the files, prints their paths, and with `--json` the receipt too.
pub fn write(source: &ExportSource, args: &OutputArgs, options: &ExportOptions, output: &Output) -> Result<()> {
    let whole = matches!(args.format, ExportFormat::Gguf | ExportFormat::Safetensors);
    let base = if whole { base_sources(&args.base)? } else { Vec::new() };
    if args.format == ExportFormat::Safetensors && source.adapter_settings.is_none() && !base.is_empty() {
        return Err(RunError::Usage(
            "--base with --format safetensors: expected the checkpoint of an adapter, which is merged into it".into(),
        ));
    }
    let mut stream = wait(tabtune::portable::export(source, base, options))?;
    let written = if args.format.is_folder() { write_folder(&args.to, None, &mut stream)? } else { write_file(&args.to, &mut stream)? };
    let files: Vec<String> = written.iter().map(|path| path.display().to_string()).collect();
    let lost = stream.receipt().into_iter().flat_map(|receipt| &receipt.warnings).filter(|warning| warning.code == LOST.text());
    for warning in lost.map(|warning| Warning::new(LOST, &warning.subject)) {
        log::warn!("{} [{}]", warning.message(), warning.code);
    }
    output.line(&json!({ "files": files, "receipt": stream.receipt() }), || files.join("\n"))
}
