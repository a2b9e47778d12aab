//! Finds out what a file is and whether it is sound: the report of `tabtune inspect` (crate/FORMATS.md, "Refusals"). It checks the file, not
//! the model.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::Serialize;

use super::adapter::LoraConfig;
use super::gguf_tokenizer_check::check_tokenizer;
use super::index::open_index;
use super::state_json::check_state_json;
use crate::error::{Error, Refusal, Result, Warning, shown, word};
use crate::formats::{
    ByteSource, Encoding, FileTensor, GgufFile, SafetensorsFile, base_name, count_non_finite,
    dtype_bits, first_flaw, for_each_chunk, join_parts, stem_of, unreadable,
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
    /// Returns the format that a value of `--as` names.
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

    /// Returns the format that the ending of a file's name indicates.
    pub fn of_name(name: &str) -> Option<Self> {
        let name = base_name(name).to_ascii_lowercase();
        let ends = |end: &str| name.ends_with(end);
        Some(match () {
            () if ends(".safetensors") => Self::Safetensors,
            () if ends(".gguf") => Self::Gguf,
            () if ends(".index.json") => Self::Index,
            () if ends("adapter_config.json") => Self::Peft,
            () if ends(".state_dict.json") => Self::Json,
            () => return None,
        })
    }
}

/// Verdict on a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
        code: None,
        stage: "ok",
        subject: None,
        found: None,
        message: None,
        warnings: Vec::new(),
        non_finite: BTreeMap::new(),
        tensors: 0,
        inventory: Vec::new(),
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

/// Returns the refusal of a file whose name shows no format, which says what its first bytes show.
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
        let first = if let Error::Refused(list) = error {
            list.first()
        } else {
            None
        };
        if let Some(first) = first {
            self.stage = first.stage;
            self.subject.clone_from(&first.subject);
            self.found.clone_from(&first.found);
        }
    }

    fn count(&mut self, name: &str, non_finite: u64) {
        if non_finite > 0 {
            self.non_finite.insert(name.to_string(), non_finite);
            self.warnings
                .push(Warning::new(word!("tensor.non-finite"), name));
        }
    }

    fn safetensors(&mut self, source: &dyn ByteSource, read: bool) -> Result<()> {
        let file = SafetensorsFile::open(source)?;
        self.warnings.extend(file.warnings);
        self.inventory.extend(file.tensors.iter().cloned());
        for tensor in file.tensors.iter().filter(|_| read) {
            let unit = usize::try_from(dtype_bits(&tensor.dtype).unwrap_or(8) / 8).unwrap_or(1);
            let (mut non_finite, mut bad_bool) = (0, false);
            for_each_chunk(source, tensor.begin, tensor.end(), unit, |piece| {
                non_finite += count_non_finite(&tensor.dtype, piece);
                bad_bool |= tensor.dtype == "BOOL" && piece.iter().any(|&byte| byte > 1);
                Ok(())
            })?;
            self.count(&tensor.name, non_finite);
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
            let is_gguf = |name: &str| name.to_ascii_lowercase().ends_with(".gguf");
            let is_other =
                |name: &str| name != own && is_gguf(name) && stem_of(name) == stem_of(own);
            let others: Vec<_> = siblings()?
                .into_iter()
                .filter(|file| is_other(base_name(file.name())))
                .collect();
            if others.is_empty() {
                file.check_whole(own)?;
            }
            let opened = others
                .iter()
                .map(|part| GgufFile::open_part(part))
                .collect::<Result<Vec<_>>>()?;
            let parts = std::iter::once(file.clone())
                .chain(opened)
                .enumerate()
                .collect();
            let name = |at: usize| {
                at.checked_sub(1)
                    .map_or(own, |at| base_name(others[at].name()))
                    .to_owned()
            };
            join_parts(parts, name)?;
        }
        self.warnings.extend(file.warnings.iter().cloned());
        self.inventory.extend(file.tensors.iter().cloned());
        if let Err(error) = check_tokenizer(&file) {
            self.refuse(&error.in_file(source.name()));
        }
        for tensor in file.tensors.iter().filter(|_| read) {
            let (dtype, encoding) = (&tensor.dtype, Encoding::of_dtype(&tensor.dtype));
            if tensor.bytes.is_none() || encoding.is_none() && dtype.starts_with("GGML:") {
                self.refuse(&unreadable(dtype, &tensor.name, source.name()).into());
                continue;
            }
            let (mut non_finite, unit) = (0, encoding.map_or(8, |encoding| encoding.unit().0));
            for_each_chunk(source, tensor.begin, tensor.end(), unit, |piece| {
                non_finite += count_non_finite(dtype, piece);
                Ok(())
            })?;
            self.count(&tensor.name, non_finite);
        }
        Ok(())
    }

    fn index(
        &mut self,
        source: &dyn ByteSource,
        siblings: &[Rc<dyn ByteSource>],
        read: bool,
    ) -> Result<()> {
        let siblings: Vec<&dyn ByteSource> = siblings.iter().map(AsRef::as_ref).collect();
        let sharded = open_index(source, &siblings)?;
        for (at, _) in &sharded.shards {
            self.safetensors(siblings[*at], read)?;
        }
        // The shards' own warnings were added with their headers.
        self.warnings.extend(
            sharded
                .warnings
                .into_iter()
                .filter(|warning| warning.code.starts_with("index.")),
        );
        Ok(())
    }
}
