//! Reads the JSON state dict (crate/FORMATS.md, "JSON state dict"): values as numbers, or stored bytes as base64.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use half::{bf16, f16};

use crate::error::{Error, Refusal, Result, Word, word};
use crate::formats::json::MAX_DEPTH;
use crate::formats::{
    ByteSource, Digest, FileTensor, Json, JsonFault, describe_flaw, json, read_document,
};
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
        let refusal = Refusal::new(word!("json.size"))
            .of(source.name())
            .expected(format!("at most {MAX_JSON_BYTES} bytes"));
        return Err(refusal.found(source.len()).into());
    }
    let bytes = read_document(source, MAX_JSON_BYTES)?;
    read(&bytes, source.name()).map_err(|error| error.in_file(source.name()))
}

/// Lists the tensors of a document that passed every check.
pub(super) fn check_state_json(source: &dyn ByteSource) -> Result<Vec<FileTensor>> {
    let listed = |tensor: &Tensor| FileTensor::new(&tensor.name, &tensor.dtype, &tensor.shape);
    Ok(read_state_json(source)?
        .tensors
        .iter()
        .map(listed)
        .collect())
}

fn read(bytes: &[u8], artifact: &str) -> Result<StateJson> {
    let not_json =
        |at: usize| describe_flaw(Refusal::new(word!("json.syntax")).at(at as u64), bytes);
    let text = std::str::from_utf8(bytes).map_err(|e| not_json(e.valid_up_to()))?;
    let document = json::parse(text, MAX_DEPTH).map_err(|fault| match fault {
        JsonFault::Syntax { at } => not_json(at),
        JsonFault::Depth { at } => Refusal::new(word!("json.depth")).at(at as u64),
        JsonFault::Duplicate { at, path } => Refusal::new(word!("json.key.duplicate"))
            .subject(&path)
            .at(at as u64),
    })?;
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
    let records = dict.and_then(Json::object);
    let records = records.ok_or_else(|| {
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
    let mut sorted: Vec<_> = records.collect();
    sorted.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let mut tensors = Vec::with_capacity(count);
    for (name, record) in sorted {
        tensors.push(tensor(&name, record, numbers)?);
    }
    let manifest = given
        .map(|given| manifest(given, &tensors, artifact))
        .transpose()?;
    if let Some(manifest) = &manifest {
        let completed = tensors.into_iter().map(|tensor| manifest.complete(tensor));
        tensors = completed.collect();
    }
    let leaf = |tensor: &Tensor| Some((tensor.name.clone(), (tensor.role, tensor.known_leaf()?)));
    let groups = manifest
        .as_ref()
        .map_or(&[][..], |manifest| &manifest.groups);
    let digests = StateDigests::of(&tensors.iter().filter_map(leaf).collect(), groups)?;
    let stated = stated(given_digests, &digests)?;
    let checks = digests.verify(&stated, (true, true))?;
    Ok(StateJson {
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
    let found = |tensor: &Tensor| {
        let (dtype, shape) = (tensor.dtype.clone(), tensor.shape.clone());
        (tensor.name.clone(), (dtype, shape, JSON_FILE.to_string()))
    };
    manifest.check_against(&tensors.iter().map(found).collect(), artifact)?;
    Ok(manifest)
}

/// Reads the stated digests; a value that is no digest counts as different from the computed one.
fn stated(given: Option<Json<'_>>, found: &StateDigests) -> Result<StatedDigests> {
    let one = |name: &str, found: Option<Digest>| {
        let Some(value) = given.and_then(|given| given.get(name)) else {
            return Ok(None);
        };
        let wrong = || {
            let refusal = Refusal::new(word!("digest.mismatch"))
                .subject(name)
                .expected("a SHA-256 in lower-case hex");
            Error::from(found.map_or(refusal.clone(), |found| refusal.found(found)))
        };
        value
            .text()
            .as_deref()
            .and_then(Digest::from_hex)
            .map(Some)
            .ok_or_else(wrong)
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
    let plain = matches!(
        dtype,
        "F32"
            | "F16"
            | "BF16"
            | "BOOL"
            | "U8"
            | "I8"
            | "U16"
            | "I16"
            | "U32"
            | "I32"
            | "U64"
            | "I64"
    );
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
    let bytes = if numbers {
        let values = values
            .and_then(Json::list)
            .ok_or_else(|| refuse(word!("json.field.type")).expected("values, a list"))?;
        let (count, elements) = (values.clone().count() as u64, shape.iter().product::<u64>());
        if count != elements {
            return Err(refuse(word!("json.tensor.length"))
                .expected(elements)
                .found(count)
                .into());
        }
        let mut bytes = Vec::with_capacity(usize::try_from(need).unwrap_or(0));
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
        bytes
    } else {
        let data = data
            .and_then(Json::text)
            .ok_or_else(|| refuse(word!("json.field.type")).expected("data, a text"))?;
        let bytes = BASE64
            .decode(data.as_bytes())
            .map_err(|_| refuse(word!("json.base64")).expected("the standard alphabet, padded"))?;
        if bytes.len() as u64 != need {
            return Err(refuse(word!("json.tensor.length"))
                .expected(need)
                .found(bytes.len())
                .into());
        }
        bytes
    };
    let sum = Digest::of(&bytes);
    let tensor = Tensor::parameter(name, dtype, &shape, Bytes::host(bytes));
    tensor.remember(sum);
    Ok(tensor)
}

/// Appends the little-endian bytes of a number; `None` if the dtype cannot hold it.
fn store(dtype: &str, digits: &str, out: &mut Vec<u8>) -> Option<()> {
    if matches!(dtype, "F32" | "F16" | "BF16") {
        let value: f32 = digits
            .parse()
            .ok()
            .filter(|value: &f32| value.is_finite())?;
        match dtype {
            "F16" => out.extend(
                Some(f16::from_f32(value))
                    .filter(|half| half.to_f32() == value)?
                    .to_le_bytes(),
            ),
            "BF16" => out.extend(
                Some(bf16::from_f32(value))
                    .filter(|half| half.to_f32() == value)?
                    .to_le_bytes(),
            ),
            _ => out.extend(value.to_le_bytes()),
        }
        return Some(());
    }
    // Larger integers are not exact in every JSON reader.
    let value: i64 = digits
        .parse()
        .ok()
        .filter(|value: &i64| value.unsigned_abs() < 1 << 53)?;
    let (bytes, low, high) = match dtype {
        "BOOL" => (1, 0, 1),
        "U8" => (1, 0, i64::from(u8::MAX)),
        "I8" => (1, i64::from(i8::MIN), i64::from(i8::MAX)),
        "U16" => (2, 0, i64::from(u16::MAX)),
        "I16" => (2, i64::from(i16::MIN), i64::from(i16::MAX)),
        "U32" => (4, 0, i64::from(u32::MAX)),
        "I32" => (4, i64::from(i32::MIN), i64::from(i32::MAX)),
        "U64" => (8, 0, i64::MAX),
        _ => (8, i64::MIN, i64::MAX),
    };
    (low..=high)
        .contains(&value)
        .then(|| out.extend_from_slice(&value.to_le_bytes()[..bytes]))
}
