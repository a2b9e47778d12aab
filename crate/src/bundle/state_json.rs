//! The JSON state dict (crate/FORMATS.md, "JSON state dict"): values as numbers, or stored bytes as base64.

use half::{bf16, f16};

use super::digest::{Digest, leaf, weights_digest};
use super::index::MAX_DEPTH;
use super::inspect::InventoryTensor;
use super::json::{self, Json, JsonFault};
use super::source::{ByteSource, read_document};
use super::state::byte_len;
use crate::error::{Refusal, Result, Word, word};

const MAX_BYTES: u64 = 64 << 20;
const MAX_RANK: usize = 8;
const FORMAT: &str = "tabtune.torch_state_dict_json";

/// One tensor with its stored bytes.
struct StateTensor {
    entry: InventoryTensor,
    bytes: Vec<u8>,
}

/// Reads the document, checks every tensor and the stated weights digest.
pub(super) fn check_state_json(source: &dyn ByteSource) -> Result<Vec<InventoryTensor>> {
    if source.len() > MAX_BYTES {
        let refusal = Refusal::new(word!("json.size")).of(source.name()).expected(format!("at most {MAX_BYTES} bytes"));
        return Err(refusal.found(source.len()).into());
    }
    let bytes = read_document(source, MAX_BYTES)?;
    check(&bytes).map_err(|error| error.in_file(source.name()))
}

fn check(bytes: &[u8]) -> Result<Vec<InventoryTensor>> {
    let text = std::str::from_utf8(bytes).map_err(|e| Refusal::new(word!("json.syntax")).at(e.valid_up_to() as u64))?;
    let document = json::parse(text, MAX_DEPTH).map_err(|fault| match fault {
        JsonFault::Syntax { at } => Refusal::new(word!("json.syntax")).at(at as u64),
        JsonFault::Depth { at } => Refusal::new(word!("json.depth")).at(at as u64),
        JsonFault::Duplicate { at, path } => Refusal::new(word!("json.key.duplicate")).subject(&path).at(at as u64),
    })?;
    if document.get("format").and_then(Json::text) != Some(FORMAT) {
        return Err(Refusal::new(word!("json.format")).expected(FORMAT).into());
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
    if let Some(stated) = document.get("digests").and_then(|digests| digests.get("weights")) {
        let found = digest(&tensors);
        if stated.text() != Some(found.as_str()) {
            return Err(Refusal::new(word!("digest.mismatch")).subject("weights").found(found).into());
        }
    }
    Ok(tensors.into_iter().map(|tensor| tensor.entry).collect())
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
        let values =
            record.get("values").and_then(Json::list).ok_or_else(|| refuse(word!("json.field.type")).expected("values, a list"))?;
        let elements = shape.iter().product::<u64>();
        if values.len() as u64 != elements {
            return Err(refuse(word!("json.tensor.length")).expected(elements).found(values.len()).into());
        }
        let mut bytes = Vec::new();
        for (at, value) in values.iter().enumerate() {
            let Json::Number(digits) = value else {
                return Err(refuse(word!("json.value.type")).expected("a number").found(format!("item {at}")).into());
            };
            store(dtype, digits, &mut bytes)
                .ok_or_else(|| refuse(word!("json.value.range")).expected(format!("a value of {dtype}")).found(digits))?;
        }
        bytes
    } else {
        let data = record.get("data").and_then(Json::text).ok_or_else(|| refuse(word!("json.field.type")).expected("data, a text"))?;
        let bytes = base64(data).ok_or_else(|| refuse(word!("json.base64")).expected("the standard alphabet, padded"))?;
        if bytes.len() as u64 != need {
            return Err(refuse(word!("json.tensor.length")).expected(need).found(bytes.len()).into());
        }
        bytes
    };
    Ok(StateTensor { entry: InventoryTensor { name: name.to_string(), dtype: dtype.to_string(), shape }, bytes })
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

/// Strict base64: padded, nothing else between, zero bits under the padding.
fn base64(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| {
        Some(match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        })
    };
    let bytes = text.as_bytes();
    if !bytes.len().is_multiple_of(4) {
        return None;
    }
    let pad = bytes.iter().rev().take(2).take_while(|&&byte| byte == b'=').count();
    let mut out = Vec::with_capacity(bytes.len() / 4 * 3);
    let body = &bytes[..bytes.len() - pad];
    for group in body.chunks(4) {
        let mut word = 0u32;
        for n in 0..4 {
            word = word << 6 | group.get(n).map_or(Some(0), |&byte| digit(byte)).map(u32::from)?;
        }
        let have = group.len() - 1;
        let [_, whole @ ..] = word.to_be_bytes();
        if whole[have..].iter().any(|&byte| byte != 0) {
            return None;
        }
        out.extend_from_slice(&whole[..have]);
    }
    Some(out)
}

/// The digest of the tensors, whose names are unique.
fn digest(tensors: &[StateTensor]) -> String {
    let leaf =
        |StateTensor { entry, bytes }: &StateTensor| (entry.name.clone(), leaf(&entry.name, &entry.dtype, &entry.shape, Digest::of(bytes)));
    weights_digest(&tensors.iter().map(leaf).collect()).to_string()
}
