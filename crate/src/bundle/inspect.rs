//! Finds out what a file is and whether it is sound: the report of `tabtune inspect` (crate/FORMATS.md, "Refusals"). It checks the file, not
//! the model.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::Serialize;

use super::adapter::LoraConfig;
use super::files::Files;
use super::gguf_tokenizer_check::check_tokenizer;
use super::index::open_index;
use super::kind::STATE_JSON;
use super::state_json::check_state_json;
use crate::error::{Error, Refusal, Result, Warning, shown, word};
use crate::formats::{
    ByteSource, Encoding, FileTensor, GgufFile, SafetensorsFile, base_name, count_non_finite,
    first_flaw, for_each_chunk, join_parts, stem_of, unreadable,
};

/// Format of a file that can be inspected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum FileFormat {
    /// A safetensors file.
    Safetensors,
    /// A GGUF file.
    Gguf,
    /// `model.safetensors.index.json`; its shards are siblings.
    Index,
    /// `adapter_config.json`.
    Peft,
    /// A JSON state dict.
    Json,
}

impl FileFormat {
    /// Reads a value of `--as`; `None` for a word that names no format.
    pub fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "safetensors" => Self::Safetensors,
            "gguf" => Self::Gguf,
            "index" => Self::Index,
            "peft" => Self::Peft,
            "json" => Self::Json,
            _ => return None,
        })
    }

    /// The format that the ending of a file's name indicates.
    pub fn of_name(name: &str) -> Option<Self> {
        let name = base_name(name).to_ascii_lowercase();
        let endings = [
            (".safetensors", Self::Safetensors),
            (".gguf", Self::Gguf),
            (".index.json", Self::Index),
            ("adapter_config.json", Self::Peft),
            (STATE_JSON, Self::Json),
        ];
        let mut endings = endings.into_iter();
        let (_, format) = endings.find(|(end, _)| name.ends_with(end))?;
        Some(format)
    }
}

/// Verdict on a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InspectReport {
    /// Name of the file, escaped.
    pub file: String,
    /// Format as which the file was read.
    pub format: Option<FileFormat>,
    /// True if nothing was refused.
    pub ok: bool,
    /// Code of the refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    /// `ok`, or the stage of the refusal: `open`, `bind`, `read`.
    pub stage: &'static str,
    /// Tensor, key or shard that was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Value that was found there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// Message of the refusal or error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Unusual but allowed properties of the file.
    pub warnings: Vec<Warning>,
    /// Number of NaN and infinite values by tensor; present only after reading, and only for tensors that have any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub non_finite: BTreeMap<String, u64>,
    /// Number of tensors.
    pub tensors: usize,
    /// List of the tensors.
    pub inventory: Vec<FileTensor>,
}

/// Checks one file: stages open and bind, and with `read` also every tensor's values. Without `format` the ending of the name decides.
/// `siblings` opens the files of its folder, where an index finds its shards and a part of a split model the other parts; it is called for
/// these alone.
pub fn inspect(
    source: &dyn ByteSource,
    format: Option<FileFormat>,
    siblings: impl FnOnce() -> Result<Vec<Rc<dyn ByteSource>>>,
    read: bool,
) -> InspectReport {
    let format = format.or_else(|| FileFormat::of_name(source.name()));
    let mut report = InspectReport {
        file: shown(base_name(source.name())),
        format,
        ok: true,
        stage: "ok",
        ..InspectReport::default()
    };
    let answer = match format {
        Some(FileFormat::Safetensors) => report.safetensors(source, read),
        Some(FileFormat::Gguf) => report.gguf(source, siblings, read),
        Some(FileFormat::Index) => {
            siblings().and_then(|siblings| report.index(source, &siblings, read))
        }
        Some(FileFormat::Peft) => {
            LoraConfig::open(source).map(|config| report.warnings = config.warnings)
        }
        Some(FileFormat::Json) => {
            check_state_json(source).map(|tensors| report.inventory = tensors)
        }
        None => Err(unknown(source).into()),
    };
    if let Err(error) = answer {
        report.refuse(&error);
    }
    report.tensors = report.inventory.len();
    report
}

/// Creates the refusal of a file whose name shows no format, which says what its first bytes show.
fn unknown(source: &dyn ByteSource) -> Refusal {
    let refusal = Refusal::new(word!("format.unsupported")).of(source.name());
    match first_flaw(source) {
        Some(flaw) => flaw.describe(refusal.expected("a file of a model")),
        None => refusal.hint("say the format with --as"),
    }
}

impl InspectReport {
    /// Records a refusal; only the first one counts.
    fn refuse(&mut self, error: &Error) {
        if !self.ok {
            return;
        }
        self.ok = false;
        self.code = Some(error.code());
        self.stage = "open";
        self.message = Some(error.to_string());
        if let Error::Refused(list) = error
            && let Some(first) = list.first()
        {
            self.stage = first.stage;
            self.subject.clone_from(&first.subject);
            self.found.clone_from(&first.found);
        }
    }

    /// Reads a tensor, counts its NaN and infinite values, and shows its bytes to `each`.
    fn count(
        &mut self,
        source: &dyn ByteSource,
        tensor: &FileTensor,
        mut each: impl FnMut(&[u8]),
    ) -> Result<()> {
        let FileTensor { name, dtype, .. } = tensor;
        let unit = Encoding::of_dtype(dtype).map_or(8, |encoding| encoding.unit().0);
        let mut non_finite = 0;
        for_each_chunk(source, tensor.begin, tensor.end(), unit, |piece| {
            non_finite += count_non_finite(dtype, piece);
            each(piece);
            Ok(())
        })?;
        if non_finite > 0 {
            self.non_finite.insert(name.clone(), non_finite);
            let warning = Warning::new(word!("tensor.non-finite"), name);
            self.warnings.push(warning);
        }
        Ok(())
    }

    fn safetensors(&mut self, source: &dyn ByteSource, read: bool) -> Result<()> {
        let file = SafetensorsFile::open(source)?;
        self.warnings.extend(file.warnings);
        self.inventory.extend_from_slice(&file.tensors);
        for tensor in file.tensors.iter().filter(|_| read) {
            let mut bad_bool = false;
            self.count(source, tensor, |piece| {
                bad_bool |= tensor.dtype == "BOOL" && piece.iter().any(|&byte| byte > 1);
            })?;
            if bad_bool {
                let refusal = Refusal::new(word!("safetensors.payload.bool"))
                    .stage("read")
                    .of(source.name())
                    .subject(&tensor.name);
                self.refuse(&refusal.expected("0 or 1").into());
            }
        }
        Ok(())
    }

    fn gguf(
        &mut self,
        source: &dyn ByteSource,
        siblings: impl FnOnce() -> Result<Vec<Rc<dyn ByteSource>>>,
        read: bool,
    ) -> Result<()> {
        let file = GgufFile::open_part(source)?;
        if file.is_part() {
            let own = base_name(source.name());
            let (mut parts, mut names) = (vec![(0, file.clone())], vec![own.to_owned()]);
            for other in siblings()? {
                let name = base_name(other.name());
                let is_gguf = name.to_ascii_lowercase().ends_with(".gguf");
                if name != own && is_gguf && stem_of(name) == stem_of(own) {
                    parts.push((names.len(), GgufFile::open_part(&other)?));
                    names.push(name.to_owned());
                }
            }
            if parts.len() == 1 {
                file.check_whole(own)?;
            }
            join_parts(parts, |at| names[at].clone())?;
        }
        self.warnings.extend_from_slice(&file.warnings);
        self.inventory.extend_from_slice(&file.tensors);
        if let Err(error) = check_tokenizer(&file) {
            self.refuse(&error.in_file(source.name()));
        }
        for tensor in file.tensors.iter().filter(|_| read) {
            let dtype = &tensor.dtype;
            let readable = Encoding::of_dtype(dtype).is_some() || !dtype.starts_with("GGML:");
            if tensor.bytes.is_some() && readable {
                self.count(source, tensor, |_| {})?;
            } else {
                self.refuse(&unreadable(dtype, &tensor.name, source.name()).into());
            }
        }
        Ok(())
    }

    fn index(&mut self, source: &dyn ByteSource, siblings: &Files, read: bool) -> Result<()> {
        let (shards, warning) = open_index(source, siblings)?;
        for (at, _) in shards {
            self.safetensors(&siblings[at], read)?;
        }
        self.warnings.extend(warning);
        Ok(())
    }
}
