//! A state dict as one JSON document (crate/FORMATS.md, "JSON state dict").

use std::fmt::Write as _;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use half::{bf16, f16};
use serde_json::json;

use super::options::JsonEncoding;
use crate::bundle::{FileStream, JSON_FORMAT, MAX_JSON_BYTES};
use crate::error::{Error, Refusal, Result, refuse_all, word};
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
        let least = |tensor: &Tensor| least_bytes(tensor, encoding);
        let least = (self.tensors().values().map(least)).fold(0, u64::saturating_add);
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
        let mut document = Document::new(name);
        document.put(&start(manifest, encoding, &digests)?)?;
        self.write_tensors(&mut document, encoding).await?;
        let mut stream = FileStream::summed();
        stream.push_bytes(name, document.text.into_bytes());
        stream.know(ArtifactDigests {
            weights: Some(digests.weights),
            optimizer: has_state.then_some(digests.optimizer),
            ..known
        });
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
                let refusal = refuse(word!("json.dtype")).found(&tensor.dtype);
                let refusal = refusal.expected("a dtype that numbers can hold");
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
        refuse_all(refusals)
    }

    async fn write_tensors(&self, out: &mut Document<'_>, encoding: JsonEncoding) -> Result<()> {
        for (at, (key, tensor)) in self.tensors().iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let (key, dtype) = (json!(key), json!(tensor.dtype));
            let shape = json!(tensor.shape);
            out.put(&format!(
                "{comma}{key}:{{\"dtype\":{dtype},\"shape\":{shape},"
            ))?;
            match encoding {
                JsonEncoding::Numbers => {
                    out.put("\"values\":[")?;
                    write_numbers(out, tensor).await?;
                    out.put("]}")?;
                }
                JsonEncoding::Base64 => {
                    out.put("\"data\":\"")?;
                    out.reserve(base64_bytes(tensor.len()))?;
                    tensor
                        .for_each_whole(3, |piece| out.put(&BASE64.encode(piece)))
                        .await?;
                    out.put("\"}")?;
                }
            }
        }
        out.put("}}\n")
    }
}

/// The text before the tensors.
fn start(
    manifest: Option<StateManifest>,
    encoding: JsonEncoding,
    digests: &StateDigests,
) -> Result<String> {
    let mut text = format!(
        "{{\"format\":\"{JSON_FORMAT}\",\"version\":1,\"encoding\":{}",
        json!(encoding)
    );
    let mut stated = StatedDigests::default();
    if let Some(mut manifest) = manifest {
        stated = StatedDigests {
            optimizer: Some(digests.optimizer),
            assignment: Some(digests.assignment),
            state: Some(digests.state),
            ..manifest.digests.take().unwrap_or_default()
        };
        manifest.files = None;
        for record in manifest.tensors.values_mut() {
            record.file = JSON_FILE.to_string();
        }
        text += &format!(",\"manifest\":{}", canonical(&manifest)?);
    }
    stated.weights = Some(digests.weights);
    text += &format!(",\"digests\":{},\"state_dict\":{{", canonical(&stated)?);
    Ok(text)
}

/// A document that is being written.
struct Document<'a> {
    name: &'a str,
    text: String,
}

impl<'a> Document<'a> {
    fn new(name: &'a str) -> Self {
        let text = String::new();
        Self { name, text }
    }

    /// Refuses further text of this length if the document or memory cannot hold it.
    fn reserve(&mut self, bytes: u64) -> Result<()> {
        let len = (self.text.len() as u64).saturating_add(bytes);
        if len > MAX_JSON_BYTES {
            return Err(too_large(self.name, len));
        }
        // The limit fits into any memory's addresses.
        let reserved = self.text.try_reserve(bytes as usize);
        reserved.map_err(|_| too_large(self.name, len))
    }

    fn put(&mut self, text: &str) -> Result<()> {
        self.reserve(text.len() as u64)?;
        self.text.push_str(text);
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

/// A lower bound of the bytes that the values take: a digit and a comma each, or their base64.
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

/// Writes the values, separated by commas.
async fn write_numbers(out: &mut Document<'_>, tensor: &Tensor) -> Result<()> {
    let mut numbers = Numbers {
        out,
        name: &tensor.name,
        comma: "",
        text: String::new(),
    };
    tensor
        .for_each_piece(|piece| match tensor.dtype.as_str() {
            "F32" => numbers.floats(piece, f32::from_le_bytes),
            "F16" => numbers.floats(piece, |bytes| f16::from_le_bytes(bytes).to_f32()),
            "BF16" => numbers.floats(piece, |bytes| bf16::from_le_bytes(bytes).to_f32()),
            "I8" => numbers.integers(piece, i8::from_le_bytes),
            "U16" => numbers.integers(piece, u16::from_le_bytes),
            "I16" => numbers.integers(piece, i16::from_le_bytes),
            "U32" => numbers.integers(piece, u32::from_le_bytes),
            "I32" => numbers.integers(piece, i32::from_le_bytes),
            "U64" => numbers.integers(piece, u64::from_le_bytes),
            "I64" => numbers.integers(piece, i64::from_le_bytes),
            _ => numbers.integers(piece, u8::from_le_bytes),
        })
        .await
}

/// The values of a tensor that are being written.
struct Numbers<'a, 'b> {
    out: &'a mut Document<'b>,
    name: &'a str,
    /// Text before the next value.
    comma: &'static str,
    /// The last value and the comma before it.
    text: String,
}

impl Numbers<'_, '_> {
    fn floats<const N: usize>(&mut self, piece: &[u8], value: fn([u8; N]) -> f32) -> Result<()> {
        for bytes in piece.as_chunks().0 {
            self.begin();
            shortest(value(*bytes), &mut self.text);
            self.out.put(&self.text)?;
        }
        Ok(())
    }

    fn integers<const N: usize, T: Into<i128>>(
        &mut self,
        piece: &[u8],
        value: fn([u8; N]) -> T,
    ) -> Result<()> {
        for bytes in piece.as_chunks().0 {
            let value: i128 = value(*bytes).into();
            if value.unsigned_abs() > u128::from(MAX_INTEGER) {
                return Err(Refusal::new(word!("json.value.range"))
                    .stage("read")
                    .subject(self.name)
                    .expected(format!("at most {MAX_INTEGER}"))
                    .found(value)
                    .hint("choose the encoding base64")
                    .into());
            }
            self.begin();
            self.text += &value.to_string();
            self.out.put(&self.text)?;
        }
        Ok(())
    }

    fn begin(&mut self) {
        self.text.clear();
        self.text.push_str(std::mem::replace(&mut self.comma, ","));
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
