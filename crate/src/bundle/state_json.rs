//! The JSON state dict (crate/FORMATS.md, "JSON state dict"): values as numbers, or stored bytes as base64.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use half::{bf16, f16};

use super::digest::{Digest, leaf};
use super::index::MAX_DEPTH;
use super::inspect::InventoryTensor;
use super::json::{self, Json, JsonFault};
use super::source::{ByteSource, read_document};
use super::state::byte_len;
use super::state_digests::{StateDigests, StatedResult};
use super::{StateManifest, StatedDigests, TensorRole};
use crate::error::{Error, Refusal, Result, Word, word};

/// Maximum size of the document.
pub(crate) const MAX_JSON_BYTES: u64 = 64 << 20;
/// What the document says that it is.
pub(crate) const JSON_FORMAT: &str = "tabtune.torch_state_dict_json";
/// The file of its tensors in its manifest: the field that holds them.
pub(crate) const JSON_FILE: &str = "state_dict";
const MAX_RANK: usize = 8;

/// A document that passed every check.
pub(crate) struct StateJson {
    /// Its tensors, ascending by name.
    pub(crate) tensors: Vec<StateTensor>,
    /// What it says of groups, roles and paths.
    pub(crate) manifest: Option<StateManifest>,
    /// The digests that it states.
    pub(crate) stated: StatedDigests,
    /// What became of those that were compared.
    pub(crate) checks: BTreeMap<&'static str, StatedResult>,
    /// SHA-256 of the document.
    pub(crate) sha256: Digest,
}

/// One tensor with its stored bytes.
pub(crate) struct StateTensor {
    /// Name, dtype and shape.
    pub(crate) entry: InventoryTensor,
    /// Stored bytes.
    pub(crate) bytes: Vec<u8>,
    /// SHA-256 of the stored bytes.
    pub(crate) sum: Digest,
}

/// Reads the document and checks every tensor, the manifest and the stated digests.
pub(crate) fn read_state_json(source: &dyn ByteSource) -> Result<StateJson> {
    if source.len() > MAX_JSON_BYTES {
        let refusal = Refusal::new(word!("json.size")).of(source.name()).expected(format!("at most {MAX_JSON_BYTES} bytes"));
        return Err(refusal.found(source.len()).into());
    }
    let bytes = read_document(source, MAX_JSON_BYTES)?;
    read(&bytes, source.name()).map_err(|error| error.in_file(source.name()))
}

/// The tensors of a document that passed every check.
pub(super) fn check_state_json(source: &dyn ByteSource) -> Result<Vec<InventoryTensor>> {
    Ok(read_state_json(source)?.tensors.into_iter().map(|tensor| tensor.entry).collect())
}

fn read(bytes: &[u8], artifact: &str) -> Result<StateJson> {
    let text = std::str::from_utf8(bytes).map_err(|e| Refusal::new(word!("json.syntax")).at(e.valid_up_to() as u64))?;
    let document = json::parse_values(text, MAX_DEPTH).map_err(|fault| match fault {
        JsonFault::Syntax { at } => Refusal::new(word!("json.syntax")).at(at as u64),
        JsonFault::Depth { at } => Refusal::new(word!("json.depth")).at(at as u64),
        JsonFault::Duplicate { at, path } => Refusal::new(word!("json.key.duplicate")).subject(&path).at(at as u64),
    })?;
    if document.get("format").and_then(Json::text) != Some(JSON_FORMAT) {
        return Err(Refusal::new(word!("json.format")).expected(JSON_FORMAT).into());
    }
    if document.get("version").and_then(Json::count) != Some(1) {
        return Err(Refusal::new(word!("json.version")).expected("1").into());
    }
    let numbers = match document.get("encoding").and_then(Json::text) {
        Some("numbers") => true,
        Some("base64") => false,
        _ => return Err(Refusal::new(word!("json.encoding")).expected("numbers or base64").into()),
    };
    let records = document.get("state_dict").and_then(Json::object);
    let records = records.ok_or_else(|| Refusal::new(word!("json.field.type")).subject("state_dict").expected("an object"))?;
    let mut sorted: Vec<_> = records.iter().collect();
    sorted.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
    let tensors = sorted.into_iter().map(|(name, record)| tensor(name, record, numbers)).collect::<Result<Vec<_>>>()?;
    let manifest = document.get("manifest").map(|given| manifest(given, &tensors, artifact)).transpose()?;
    let role = |name: &str| manifest.as_ref().and_then(|manifest| manifest.tensors.get(name)).map_or(TensorRole::Parameter, |of| of.role);
    let leaf = |StateTensor { entry, sum, .. }: &StateTensor| {
        (entry.name.clone(), (role(&entry.name), leaf(&entry.name, &entry.dtype, &entry.shape, *sum)))
    };
    let groups = manifest.as_ref().map_or(&[][..], |manifest| &manifest.groups);
    let digests = StateDigests::of(&tensors.iter().map(leaf).collect(), groups)?;
    let stated = stated(document.get("digests"), &digests)?;
    let checks = digests.verify(&stated, (true, true))?;
    Ok(StateJson { tensors, manifest, stated, checks, sha256: Digest::of(bytes) })
}

/// The manifest inside the document, which lists exactly its tensors.
fn manifest(given: &Json<'_>, tensors: &[StateTensor], artifact: &str) -> Result<StateManifest> {
    let mut text = String::new();
    write(given, &mut text);
    let manifest = StateManifest::read(&text, artifact)?;
    let found =
        |StateTensor { entry, .. }: &StateTensor| (entry.name.clone(), (entry.dtype.clone(), entry.shape.clone(), JSON_FILE.to_string()));
    manifest.check_against(&tensors.iter().map(found).collect(), artifact)?;
    Ok(manifest)
}

/// The stated digests; a value that is no digest differs from the one that was found.
fn stated(given: Option<&Json<'_>>, found: &StateDigests) -> Result<StatedDigests> {
    let one = |name: &str, found: Option<Digest>| {
        let Some(value) = given.and_then(|given| given.get(name)) else { return Ok(None) };
        let wrong = || {
            let refusal = Refusal::new(word!("digest.mismatch")).subject(name).expected("a SHA-256 in lower-case hex");
            Error::from(found.map_or(refusal.clone(), |found| refusal.found(found)))
        };
        value.text().and_then(Digest::from_hex).map(Some).ok_or_else(wrong)
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

/// Appends the value as JSON; its numbers are written as they were read.
fn write(value: &Json<'_>, out: &mut String) {
    let text = |text: &str, out: &mut String| out.push_str(&serde_json::Value::from(text).to_string());
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Json::Number(digits) => out.push_str(digits),
        Json::Text(given) => text(given, out),
        Json::List(items) => {
            for (at, item) in items.iter().enumerate() {
                out.push(if at == 0 { '[' } else { ',' });
                write(item, out);
            }
            out.push_str(if items.is_empty() { "[]" } else { "]" });
        }
        Json::Long(text, _) => {
            out.push('[');
            out.push_str(text);
            out.push(']');
        }
        Json::Object(entries) => {
            for (at, (key, item)) in entries.iter().enumerate() {
                out.push(if at == 0 { '{' } else { ',' });
                text(key, out);
                out.push(':');
                write(item, out);
            }
            out.push_str(if entries.is_empty() { "{}" } else { "}" });
        }
    }
}

fn tensor(name: &str, record: &Json<'_>, numbers: bool) -> Result<StateTensor> {
    let refuse = |code: Word| Refusal::new(code).subject(name);
    if record.object().is_none() {
        return Err(refuse(word!("json.field.type")).expected("an object").into());
    }
    let dtype = record.get("dtype").and_then(Json::text).ok_or_else(|| refuse(word!("json.dtype")).expected("a dtype word"))?;
    let plain = matches!(dtype, "F32" | "F16" | "BF16" | "BOOL" | "U8" | "I8" | "U16" | "I16" | "U32" | "I32" | "U64" | "I64");
    if numbers && !plain || byte_len(dtype, &[0]).is_none() {
        return Err(refuse(word!("json.dtype")).found(dtype).into());
    }
    let dims = record.get("shape").and_then(Json::list).ok_or_else(|| refuse(word!("json.shape")).expected("a list of counts"))?;
    let shape: Option<Vec<u64>> = dims.iter().map(Json::count).collect();
    let shape = shape.filter(|shape| shape.len() <= MAX_RANK).ok_or_else(|| refuse(word!("json.shape")).expected("up to 8 counts"))?;
    let need = byte_len(dtype, &shape).ok_or_else(|| refuse(word!("json.shape")).found(format!("{shape:?}")))?;
    let bytes = if numbers {
        let absent = || refuse(word!("json.field.type")).expected("values, a list");
        let (count, values) = record.get("values").and_then(numbers_of).ok_or_else(absent)?;
        let elements = shape.iter().product::<u64>();
        if count != elements {
            return Err(refuse(word!("json.tensor.length")).expected(elements).found(count).into());
        }
        let mut bytes = Vec::new();
        for (at, digits) in values.enumerate() {
            let Some(digits) = digits else {
                return Err(refuse(word!("json.value.type")).expected("a number").found(format!("item {at}")).into());
            };
            store(dtype, digits, &mut bytes)
                .ok_or_else(|| refuse(word!("json.value.range")).expected(format!("a value of {dtype}")).found(digits))?;
        }
        bytes
    } else {
        let data = record.get("data").and_then(Json::text).ok_or_else(|| refuse(word!("json.field.type")).expected("data, a text"))?;
        let bytes = BASE64.decode(data).map_err(|_| refuse(word!("json.base64")).expected("the standard alphabet, padded"))?;
        if bytes.len() as u64 != need {
            return Err(refuse(word!("json.tensor.length")).expected(need).found(bytes.len()).into());
        }
        bytes
    };
    let sum = Digest::of(&bytes);
    Ok(StateTensor { entry: InventoryTensor { name: name.to_string(), dtype: dtype.to_string(), shape }, bytes, sum })
}

/// The digits of each item of a list; nothing for an item that is no number.
type Digits<'a> = Box<dyn Iterator<Item = Option<&'a str>> + 'a>;

/// Number of items of a list, and their digits up to the first item that is no number.
fn numbers_of<'a>(list: &'a Json<'a>) -> Option<(u64, Digits<'a>)> {
    match list {
        Json::List(items) => {
            let digits = |item: &'a Json<'a>| if let Json::Number(digits) = item { Some(*digits) } else { None };
            Some((items.len() as u64, Box::new(items.iter().map(digits))))
        }
        Json::Long(text, count) => {
            // Up to the first item that is no number, commas only separate.
            let is_number = |item: &&str| item.starts_with(|first: char| first == '-' || first.is_ascii_digit());
            Some((*count, Box::new(text.split(',').map(move |item| Some(item.trim_ascii()).filter(is_number)))))
        }
        _ => None,
    }
}

/// Appends the little-endian bytes of a number; `None` if the dtype cannot hold it.
fn store(dtype: &str, digits: &str, out: &mut Vec<u8>) -> Option<()> {
    if matches!(dtype, "F32" | "F16" | "BF16") {
        let value: f32 = digits.parse().ok().filter(|value: &f32| value.is_finite())?;
        match dtype {
            "F16" => out.extend(Some(f16::from_f32(value)).filter(|half| half.to_f32() == value)?.to_le_bytes()),
            "BF16" => out.extend(Some(bf16::from_f32(value)).filter(|half| half.to_f32() == value)?.to_le_bytes()),
            _ => out.extend(value.to_le_bytes()),
        }
        return Some(());
    }
    // Larger integers are not exact in every JSON reader.
    let value: i64 = digits.parse().ok().filter(|value: &i64| value.unsigned_abs() < 1 << 53)?;
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
    (low..=high).contains(&value).then(|| out.extend_from_slice(&value.to_le_bytes()[..bytes]))
}
