//! A state dict as one JSON document (crate/FORMATS.md, "JSON state dict").

use std::fmt::Write as _;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use half::{bf16, f16};

use super::options::JsonEncoding;
use crate::bundle::{FileStream, JSON_FORMAT, MAX_JSON_BYTES};
use crate::error::{Error, Refusal, Result, word};
use crate::state::{
    ArtifactDigests, JSON_FILE, PortableModelStateDict, StateDigests, StateManifest, StatedDigests,
    Tensor, TensorRole, canonical, survey,
};

/// Largest integer that every JSON reader reads exactly.
const MAX_INTEGER: u64 = (1 << 53) - 1;
/// Magnitudes between which the plain notation of a number is never longer than that with an exponent.
const PLAIN: std::ops::Range<f32> = 0.01..1000.0;

impl PortableModelStateDict {
    /// Writes the state as a JSON document of this name. `manifest` is this state's own, completed with facts that a state dict does not have;
    /// without it, the document gets a manifest only if the state needs one (groups, state tensors, buffers). Reading the document and writing
    /// it again gives the same bytes.
    ///
    /// # Errors
    /// `export.json.non-finite` with each tensor and the index of its first NaN or infinity, unless they are allowed and the encoding is
    /// base64; `export.json.too-large` for more than 64 MiB, before anything is written; as numbers also `json.dtype` for another dtype and
    /// `json.value.range` for a larger integer.
    pub async fn export_json(
        &self,
        name: &str,
        manifest: Option<&StateManifest>,
        encoding: JsonEncoding,
        allow_non_finite: bool,
    ) -> Result<FileStream> {
        let tensors = self.tensors().values();
        let least: u64 = tensors
            .map(|entry| least_bytes(entry, encoding))
            .fold(0, u64::saturating_add);
        if least > MAX_JSON_BYTES {
            return Err(too_large(name, least));
        }
        self.check_values(name, encoding, allow_non_finite).await?;
        let plain = self.groups().is_empty()
            && self
                .traversal_records()
                .all(|tensor| tensor.role == TensorRole::Parameter);
        let manifest = manifest
            .cloned()
            .or_else(|| (!plain).then(|| self.manifest()));
        let known = match &manifest {
            Some(manifest) => ArtifactDigests::of_manifest(&manifest.identity, &manifest.groups)?,
            None => ArtifactDigests::default(),
        };
        let digests = self.digests().await?;
        let has_state = self.tensors().values().any(Tensor::is_state);
        let known = ArtifactDigests {
            weights: Some(digests.weights),
            optimizer: has_state.then_some(digests.optimizer),
            ..known
        };
        let start = start(manifest, encoding, &digests)?;
        let mut counted = Document {
            name,
            len: 0,
            out: None,
        };
        self.write_json(&mut counted, &start, encoding).await?;
        let mut out = Vec::new();
        let len = counted.len;
        usize::try_from(len)
            .ok()
            .and_then(|len| out.try_reserve_exact(len).ok())
            .ok_or_else(|| too_large(name, len))?;
        let mut document = Document {
            name,
            len: 0,
            out: Some(out),
        };
        self.write_json(&mut document, &start, encoding).await?;
        let mut stream = FileStream::summed();
        stream.push_bytes(name, document.out.unwrap_or_default());
        stream.know(known);
        Ok(stream)
    }

    async fn check_values(
        &self,
        name: &str,
        encoding: JsonEncoding,
        allow_non_finite: bool,
    ) -> Result<()> {
        let mut refusals = Vec::new();
        for (key, tensor) in self.tensors() {
            let refuse = |code| Refusal::new(code).stage("read").of(name).subject(key);
            if encoding == JsonEncoding::Numbers && !PLAIN_DTYPES.contains(&tensor.dtype.as_str()) {
                let refusal = refuse(word!("json.dtype"))
                    .found(&tensor.dtype)
                    .expected("a dtype that numbers can hold");
                refusals.push(refusal.hint("choose the encoding base64"));
                continue;
            }
            let found = survey(tensor).await?;
            let allowed = allow_non_finite && encoding == JsonEncoding::Base64;
            if let Some(first) = found.first.filter(|_| !allowed) {
                let refusal = refuse(word!("export.json.non-finite"))
                    .expected("finite values")
                    .found(format!("index {first}"));
                refusals.push(refusal.hint("base64 keeps them, where they are allowed"));
            }
            if found.bad_bool && encoding == JsonEncoding::Numbers {
                refusals.push(refuse(word!("safetensors.payload.bool")).expected("0 or 1"));
            }
        }
        if refusals.is_empty() {
            Ok(())
        } else {
            Err(Error::Refused(refusals))
        }
    }

    async fn write_json(
        &self,
        out: &mut Document<'_>,
        start: &str,
        encoding: JsonEncoding,
    ) -> Result<()> {
        out.put(start)?;
        for (at, (key, tensor)) in self.tensors().iter().enumerate() {
            let shape = serde_json::Value::from(tensor.shape.clone());
            let (key_text, dtype) = (
                serde_json::Value::from(key.as_str()),
                serde_json::Value::from(tensor.dtype.as_str()),
            );
            out.put(&format!(
                "{}{key_text}:{{\"dtype\":{dtype},\"shape\":{shape},",
                if at == 0 { "" } else { "," }
            ))?;
            match encoding {
                JsonEncoding::Numbers => {
                    out.put("\"values\":[")?;
                    write_numbers(out, tensor).await?;
                    out.put("]}")?;
                }
                JsonEncoding::Base64 => {
                    out.put("\"data\":\"")?;
                    if out.out.is_none() {
                        out.count(base64_bytes(tensor.len()))?;
                    } else {
                        tensor
                            .for_each_whole(3, |piece| out.put(&BASE64.encode(piece)))
                            .await?;
                    }
                    out.put("\"}")?;
                }
            }
        }
        out.put("}}\n")
    }
}

/// Returns the text before the tensors.
fn start(
    manifest: Option<StateManifest>,
    encoding: JsonEncoding,
    digests: &StateDigests,
) -> Result<String> {
    let word = match encoding {
        JsonEncoding::Numbers => "numbers",
        JsonEncoding::Base64 => "base64",
    };
    let mut text = format!("{{\"format\":\"{JSON_FORMAT}\",\"version\":1,\"encoding\":\"{word}\"");
    let mut stated = StatedDigests {
        weights: Some(digests.weights),
        ..StatedDigests::default()
    };
    if let Some(mut manifest) = manifest {
        let others = manifest.digests.take().unwrap_or_default();
        let (optimizer, assignment, state) = (
            Some(digests.optimizer),
            Some(digests.assignment),
            Some(digests.state),
        );
        stated = StatedDigests {
            weights: stated.weights,
            optimizer,
            assignment,
            state,
            ..others
        };
        manifest.files = None;
        manifest
            .tensors
            .values_mut()
            .for_each(|record| record.file = JSON_FILE.to_string());
        text.push_str(&format!(",\"manifest\":{}", canonical(&manifest)?));
    }
    text.push_str(&format!(
        ",\"digests\":{},\"state_dict\":{{",
        canonical(&stated)?
    ));
    Ok(text)
}

/// A document that is only measured, or written.
struct Document<'a> {
    name: &'a str,
    len: u64,
    out: Option<Vec<u8>>,
}

impl Document<'_> {
    fn count(&mut self, bytes: u64) -> Result<()> {
        self.len = self.len.saturating_add(bytes);
        if self.len > MAX_JSON_BYTES {
            Err(too_large(self.name, self.len))
        } else {
            Ok(())
        }
    }

    fn put(&mut self, text: &str) -> Result<()> {
        self.count(text.len() as u64)?;
        if let Some(out) = &mut self.out {
            out.extend_from_slice(text.as_bytes());
        }
        Ok(())
    }
}

fn too_large(name: &str, found: u64) -> Error {
    let refusal = Refusal::new(word!("export.json.too-large"))
        .of(name)
        .expected(format!("at most {MAX_JSON_BYTES} bytes"));
    refusal
        .found(format!("at least {found}"))
        .hint("export it as safetensors")
        .into()
}

/// Returns a lower bound of the bytes that the values take: a digit and a comma each, or their base64.
fn least_bytes(tensor: &Tensor, encoding: JsonEncoding) -> u64 {
    match encoding {
        JsonEncoding::Numbers => tensor
            .numel()
            .map_or(u64::MAX, |count| count.saturating_mul(2).saturating_sub(1)),
        JsonEncoding::Base64 => base64_bytes(tensor.len()),
    }
}

fn base64_bytes(bytes: u64) -> u64 {
    bytes.div_ceil(3).saturating_mul(4)
}

const PLAIN_DTYPES: [&str; 12] = [
    "F32", "F16", "BF16", "BOOL", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64",
];

async fn write_numbers(out: &mut Document<'_>, tensor: &Tensor) -> Result<()> {
    let (mut text, mut first) = (String::new(), true);
    let out_of_range = |value: &dyn std::fmt::Display| {
        let refusal = Refusal::new(word!("json.value.range"))
            .stage("read")
            .subject(&tensor.name)
            .expected(format!("at most {MAX_INTEGER}"));
        Error::from(refusal.found(value).hint("choose the encoding base64"))
    };
    tensor
        .for_each_piece(|piece| {
            let mut put = |value: Number| {
                text.clear();
                if !std::mem::take(&mut first) {
                    text.push(',');
                }
                match value {
                    Number::Float(value) => shortest(value, &mut text),
                    Number::Integer(value) if value.unsigned_abs() > u128::from(MAX_INTEGER) => {
                        return Err(out_of_range(&value));
                    }
                    Number::Integer(value) => text.push_str(&value.to_string()),
                }
                out.put(&text)
            };
            let float = Number::Float;
            match tensor.dtype.as_str() {
                "F32" => piece
                    .as_chunks()
                    .0
                    .iter()
                    .try_for_each(|b| put(float(f32::from_le_bytes(*b)))),
                "F16" => piece
                    .as_chunks()
                    .0
                    .iter()
                    .try_for_each(|b| put(float(f16::from_le_bytes(*b).to_f32()))),
                "BF16" => piece
                    .as_chunks()
                    .0
                    .iter()
                    .try_for_each(|b| put(float(bf16::from_le_bytes(*b).to_f32()))),
                "I8" => piece
                    .as_chunks()
                    .0
                    .iter()
                    .try_for_each(|b| put(Number::of(i8::from_le_bytes(*b)))),
                "U16" => piece
                    .as_chunks()
                    .0
                    .iter()
                    .try_for_each(|b| put(Number::of(u16::from_le_bytes(*b)))),
                "I16" => piece
                    .as_chunks()
                    .0
                    .iter()
                    .try_for_each(|b| put(Number::of(i16::from_le_bytes(*b)))),
                "U32" => piece
                    .as_chunks()
                    .0
                    .iter()
                    .try_for_each(|b| put(Number::of(u32::from_le_bytes(*b)))),
                "I32" => piece
                    .as_chunks()
                    .0
                    .iter()
                    .try_for_each(|b| put(Number::of(i32::from_le_bytes(*b)))),
                "U64" => piece
                    .as_chunks()
                    .0
                    .iter()
                    .try_for_each(|b| put(Number::of(u64::from_le_bytes(*b)))),
                "I64" => piece
                    .as_chunks()
                    .0
                    .iter()
                    .try_for_each(|b| put(Number::of(i64::from_le_bytes(*b)))),
                _ => piece.iter().try_for_each(|&byte| put(Number::of(byte))),
            }
        })
        .await
}

enum Number {
    Float(f32),
    Integer(i128),
}

impl Number {
    fn of(value: impl Into<i128>) -> Self {
        Self::Integer(value.into())
    }
}

/// Appends the shortest decimal that reads back as this value, in plain notation if both notations are equally long. A half in f32 has the
/// digits that distinguish it from its neighbours in f32, since readers use f32 as well.
fn shortest(value: f32, out: &mut String) {
    let start = out.len();
    // Writing to a string does not fail.
    let _ = write!(out, "{value}");
    if value != 0.0 && !PLAIN.contains(&value.abs()) {
        let short = format!("{value:e}");
        if short.len() < out.len() - start {
            out.truncate(start);
            out.push_str(&short);
        }
    }
}
