//! Reads the JSON state dict (crate/FORMATS.md, "JSON state dict"): values as numbers, or stored bytes as base64.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use half::{bf16, f16};

use super::json_document::parsed;
use crate::error::{Error, Refusal, Result, Word, word};
use crate::formats::{ByteSource, Digest, FileTensor, Json, read_document};
use crate::state::{
    Bytes, CheckResult, JSON_FILE, StateDigests, StateManifest, StatedDigests, Tensor, byte_len,
};

/// Maximum size of the document.
pub(crate) const MAX_JSON_BYTES: u64 = 64 << 20;
/// Value of the document's field `format`.
pub(crate) const JSON_FORMAT: &str = "tabtune.torch_state_dict_json";
/// Maximum number of tensors in the document.
const MAX_TENSORS: usize = 50_000;
const MAX_RANK: usize = 8;

/// A document that passed every check.
pub(crate) struct StateJson {
    /// True if its values are numbers, false if they are base64.
    pub(crate) numbers: bool,
    /// Tensors, ascending by name.
    pub(crate) tensors: Vec<Tensor>,
    /// Manifest with groups, roles and paths.
    pub(crate) manifest: Option<StateManifest>,
    /// Digests that the document states.
    pub(crate) stated: StatedDigests,
    /// Results of the comparison of digests.
    pub(crate) checks: BTreeMap<&'static str, CheckResult>,
    /// SHA-256 of the document.
    pub(crate) sha256: Digest,
}

/// Reads the document and checks every tensor, the manifest and the stated digests.
pub(crate) fn read_state_json(source: &dyn ByteSource) -> Result<StateJson> {
    if source.len() > MAX_JSON_BYTES {
        return Err(Refusal::new(word!("json.size"))
            .of(source.name())
            .expected(format!("at most {MAX_JSON_BYTES} bytes"))
            .found(source.len())
            .into());
    }
    let bytes = read_document(source, MAX_JSON_BYTES)?;
    read(&bytes, source.name()).map_err(|error| error.in_file(source.name()))
}

/// Lists the tensors of a document that passed every check.
pub(super) fn check_state_json(source: &dyn ByteSource) -> Result<Vec<FileTensor>> {
    let tensors = read_state_json(source)?.tensors.into_iter();
    let listed = tensors.map(|one| FileTensor::new(&one.name, &one.dtype, &one.shape));
    Ok(listed.collect())
}

fn read(bytes: &[u8], artifact: &str) -> Result<StateJson> {
    let codes = [
        word!("json.syntax"),
        word!("json.depth"),
        word!("json.key.duplicate"),
    ];
    let document = parsed(bytes, codes, None)?;
    let [format, version, encoding, dict, given, given_digests] = document.fields([
        "format",
        "version",
        "encoding",
        "state_dict",
        "manifest",
        "digests",
    ]);
    if format.and_then(Json::text).as_deref() != Some(JSON_FORMAT) {
        return Err(Refusal::new(word!("json.format"))
            .expected(JSON_FORMAT)
            .into());
    }
    if version.and_then(Json::count) != Some(1) {
        return Err(Refusal::new(word!("json.version")).expected("1").into());
    }
    let numbers = match encoding.and_then(Json::text).as_deref() {
        Some("numbers") => true,
        Some("base64") => false,
        _ => {
            return Err(Refusal::new(word!("json.encoding"))
                .expected("numbers or base64")
                .into());
        }
    };
    let records = dict.and_then(Json::object).ok_or_else(|| {
        Refusal::new(word!("json.field.type"))
            .subject("state_dict")
            .expected("an object")
    })?;
    let count = records.clone().count();
    if count > MAX_TENSORS {
        return Err(Refusal::new(word!("json.size"))
            .expected(format!("at most {MAX_TENSORS} tensors"))
            .found(count)
            .into());
    }
    let mut records: Vec<_> = records.collect();
    records.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let read = records
        .into_iter()
        .map(|(name, record)| tensor(&name, record, numbers));
    let mut tensors = read.collect::<Result<Vec<_>>>()?;
    let manifest = given
        .map(|given| manifest(given, &tensors, artifact))
        .transpose()?;
    if let Some(manifest) = &manifest {
        let completed = tensors.into_iter().map(|tensor| manifest.complete(tensor));
        tensors = completed.collect();
    }
    let leaves = tensors.iter().filter_map(|tensor| {
        let leaf = (tensor.role, tensor.known_leaf()?);
        Some((tensor.name.clone(), leaf))
    });
    let groups = manifest
        .as_ref()
        .map_or(&[][..], |manifest| &manifest.groups);
    let digests = StateDigests::of(&leaves.collect(), groups)?;
    let stated = stated(given_digests, &digests)?;
    let checks = digests.verify(&stated, (true, true))?;
    Ok(StateJson {
        numbers,
        tensors,
        manifest,
        stated,
        checks,
        sha256: Digest::of(bytes),
    })
}

/// Reads the manifest inside the document, which must list exactly its tensors.
fn manifest(given: Json<'_>, tensors: &[Tensor], artifact: &str) -> Result<StateManifest> {
    let manifest = StateManifest::of_json(given, artifact)?;
    let found = tensors.iter().map(|tensor| {
        let (dtype, shape) = (tensor.dtype.clone(), tensor.shape.clone());
        (tensor.name.clone(), (dtype, shape, JSON_FILE.to_string()))
    });
    manifest.check_against(&found.collect(), artifact)?;
    Ok(manifest)
}

/// Reads the stated digests; a value that is no digest counts as different from the computed one.
fn stated(given: Option<Json<'_>>, found: &StateDigests) -> Result<StatedDigests> {
    let one = |name: &str, found: Option<Digest>| {
        let Some(value) = given.and_then(|given| given.get(name)) else {
            return Ok(None);
        };
        let digest = value.text().as_deref().and_then(Digest::from_hex);
        let refusal = || {
            let refusal = Refusal::new(word!("digest.mismatch"))
                .subject(name)
                .expected("a SHA-256 in lower-case hex");
            match found {
                Some(found) => refusal.found(found),
                None => refusal,
            }
        };
        digest.map(Some).ok_or_else(|| Error::from(refusal()))
    };
    Ok(StatedDigests {
        weights: one("weights", Some(found.weights))?,
        optimizer: one("optimizer", Some(found.optimizer))?,
        assignment: one("assignment", Some(found.assignment))?,
        state: one("state", Some(found.state))?,
        tokenizer: one("tokenizer", None)?,
        template: one("template", None)?,
        bundle: one("bundle", None)?,
    })
}

/// Dtypes of whole numbers: bytes of a value, the least and the greatest value.
const INTEGERS: [(&str, usize, i64, i64); 9] = [
    ("BOOL", 1, 0, 1),
    ("U8", 1, 0, u8::MAX as i64),
    ("I8", 1, i8::MIN as i64, i8::MAX as i64),
    ("U16", 2, 0, u16::MAX as i64),
    ("I16", 2, i16::MIN as i64, i16::MAX as i64),
    ("U32", 4, 0, u32::MAX as i64),
    ("I32", 4, i32::MIN as i64, i32::MAX as i64),
    ("U64", 8, 0, i64::MAX),
    ("I64", 8, i64::MIN, i64::MAX),
];

/// Finds the row of [`INTEGERS`] of a dtype.
fn integer(dtype: &str) -> Option<(&str, usize, i64, i64)> {
    INTEGERS.into_iter().find(|(word, ..)| *word == dtype)
}

fn tensor(name: &str, record: Json<'_>, numbers: bool) -> Result<Tensor> {
    let refuse = |code: Word| Refusal::new(code).subject(name);
    if record.object().is_none() {
        return Err(refuse(word!("json.field.type"))
            .expected("an object")
            .into());
    }
    let [dtype, shape, values, data] = record.fields(["dtype", "shape", "values", "data"]);
    let dtype = dtype
        .and_then(Json::text)
        .ok_or_else(|| refuse(word!("json.dtype")).expected("a dtype word"))?;
    let dtype = dtype.as_ref();
    let plain = matches!(dtype, "F32" | "F16" | "BF16") || integer(dtype).is_some();
    if numbers && !plain || byte_len(dtype, &[0]).is_none() {
        return Err(refuse(word!("json.dtype")).found(dtype).into());
    }
    let dims = shape
        .and_then(Json::list)
        .ok_or_else(|| refuse(word!("json.shape")).expected("a list of counts"))?;
    let shape: Option<Vec<u64>> = dims.take(MAX_RANK + 1).map(Json::count).collect();
    let shape = shape
        .filter(|shape| shape.len() <= MAX_RANK)
        .ok_or_else(|| refuse(word!("json.shape")).expected("up to 8 counts"))?;
    let need = byte_len(dtype, &shape)
        .ok_or_else(|| refuse(word!("json.shape")).found(format!("{shape:?}")))?;
    let check_length = |need: u64, found: u64| {
        let refusal = refuse(word!("json.tensor.length"));
        match need == found {
            true => Ok(()),
            false => Err(Error::from(refusal.expected(need).found(found))),
        }
    };
    let mut bytes = Vec::new();
    if numbers {
        let values = values
            .and_then(Json::list)
            .ok_or_else(|| refuse(word!("json.field.type")).expected("values, a list"))?;
        check_length(shape.iter().product(), values.clone().count() as u64)?;
        bytes.reserve_exact(usize::try_from(need).unwrap_or(0));
        for (at, value) in values.enumerate() {
            let Json::Number(digits) = value else {
                return Err(refuse(word!("json.value.type"))
                    .expected("a number")
                    .found(format!("item {at}"))
                    .into());
            };
            store(dtype, digits, &mut bytes).ok_or_else(|| {
                refuse(word!("json.value.range"))
                    .expected(format!("a value of {dtype}"))
                    .found(digits)
            })?;
        }
    } else {
        let data = data
            .and_then(Json::text)
            .ok_or_else(|| refuse(word!("json.field.type")).expected("data, a text"))?;
        bytes = BASE64
            .decode(data.as_bytes())
            .map_err(|_| refuse(word!("json.base64")).expected("the standard alphabet, padded"))?;
        check_length(need, bytes.len() as u64)?;
    }
    let sum = Digest::of(&bytes);
    let tensor = Tensor::parameter(name, dtype, &shape, Bytes::host(bytes));
    tensor.remember(sum);
    Ok(tensor)
}

/// Appends the little-endian bytes of a number; `None` if the dtype cannot hold it.
fn store(dtype: &str, digits: &str, out: &mut Vec<u8>) -> Option<()> {
    if let Some((_, bytes, low, high)) = integer(dtype) {
        // Larger integers are not exact in every JSON reader.
        let value: i64 = digits.parse().ok()?;
        let exact = value.unsigned_abs() < 1 << 53 && (low..=high).contains(&value);
        return exact.then(|| out.extend_from_slice(&value.to_le_bytes()[..bytes]));
    }
    let value: f32 = digits.parse().ok()?;
    let (half, brain) = (f16::from_f32(value), bf16::from_f32(value));
    let exact = match dtype {
        "F16" => half.to_f32() == value,
        "BF16" => brain.to_f32() == value,
        _ => true,
    };
    (exact && value.is_finite()).then(|| match dtype {
        "F16" => out.extend(half.to_le_bytes()),
        "BF16" => out.extend(brain.to_le_bytes()),
        _ => out.extend(value.to_le_bytes()),
    })
}
