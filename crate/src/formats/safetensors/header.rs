//! Reads and checks the header of a safetensors file (crate/FORMATS.md, "safetensors").

use std::borrow::Cow;

use super::dtype::dtype_bits;
use crate::error::{Error, Refusal, Result, Warning, Word, add_warning, unusual, word};
use crate::formats::checksum::{Digest, Hasher};
use crate::formats::source::{ByteSource, read_range};
use crate::formats::{FileTensor, Json, JsonFault, json, or_mismatch, refuse_if};

const MAX_HEADER_BYTES: u64 = 100_000_000;
const MAX_TENSORS: usize = 100_000;
const MAX_NAME_BYTES: usize = 1_024;
const MAX_RANK: usize = 8;
const MAX_DEPTH: usize = 8;
/// Fields that the record of a tensor must have.
const FIELDS: [&str; 3] = ["dtype", "shape", "data_offsets"];

/// The header of a safetensors file that passed every check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SafetensorsFile {
    /// Tensors in the order of the header.
    pub tensors: Vec<FileTensor>,
    /// Free texts of `__metadata__`.
    pub metadata: SafetensorsMetadata,
    /// Unusual but allowed properties of the file.
    pub warnings: Vec<Warning>,
    /// SHA-256 of everything before the data.
    pub header_sha256: Digest,
}

/// Free texts of `__metadata__`, looked up in the text of the header on demand: a file may have millions that are never read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SafetensorsMetadata(String);

impl SafetensorsMetadata {
    /// Text under `key`; `None` if there is none.
    pub fn get(&self, key: &str) -> Option<String> {
        // The text was scanned with the header.
        let found = Json::Object(&self.0).get(key)?;
        found.text().map(Cow::into_owned)
    }
}

impl SafetensorsFile {
    /// Reads the header and checks everything that can be checked without the data.
    ///
    /// # Errors
    /// Codes `safetensors.*` (crate/FORMATS.md, "safetensors"), `format.mismatch` if the first bytes show another format, and the errors of the
    /// source.
    pub fn open(source: &dyn ByteSource) -> Result<Self> {
        let open = || judge(&read_header(source)?, source.len());
        open().map_err(|error| or_mismatch(error, source, "safetensors"))
    }
}

fn read_header(source: &dyn ByteSource) -> Result<Vec<u8>> {
    let len = source.len();
    refuse_if(len < 8, || {
        Refusal::new(word!("safetensors.header.truncated"))
            .expected("at least 8 bytes")
            .found(len)
    })?;
    let mut word = [0u8; 8];
    source.read_at(0, &mut word)?;
    let stated = u64::from_le_bytes(word);
    refuse_if(stated > MAX_HEADER_BYTES, || {
        Refusal::new(word!("safetensors.header.too-large"))
            .expected(format!("a header of at most {MAX_HEADER_BYTES} bytes"))
            .found(stated)
    })?;
    refuse_if(stated > len - 8, || {
        Refusal::new(word!("safetensors.header.past-end"))
            .expected(format!("at most {} bytes", len - 8))
            .found(stated)
    })?;
    read_range(source, 8, 8 + stated)
}

fn judge(header: &[u8], file_bytes: u64) -> Result<SafetensorsFile> {
    let text = std::str::from_utf8(header).map_err(|e| {
        Refusal::new(word!("safetensors.header.utf8"))
            .expected("UTF-8")
            .at(8 + e.valid_up_to() as u64)
    })?;
    refuse_if(!text.starts_with('{'), || {
        Refusal::new(word!("safetensors.header.start"))
            .expected("{")
            .found(text.get(..1).unwrap_or(""))
            .at(8)
    })?;
    let document = json::parse(text, MAX_DEPTH).map_err(|fault| match fault {
        JsonFault::Syntax { at } => Refusal::new(word!("safetensors.header.json"))
            .expected("JSON")
            .at(8 + at as u64),
        JsonFault::Depth { at } => Refusal::new(word!("safetensors.header.depth"))
            .expected(format!("at most {MAX_DEPTH} levels"))
            .at(8 + at as u64),
        JsonFault::Duplicate { at, path } => Refusal::new(word!("safetensors.key.duplicate"))
            .subject(&path)
            .at(8 + at as u64),
    })?;
    let metadata = metadata(document)?;
    let records = || {
        document
            .entries()
            .filter(|(name, _)| name != "__metadata__")
    };
    let count = records().count();
    refuse_if(count > MAX_TENSORS, || {
        Refusal::new(word!("safetensors.count.limit"))
            .expected(format!("at most {MAX_TENSORS} tensors"))
            .found(count)
    })?;
    let mut warnings = Vec::new();
    let mut tensors = Vec::with_capacity(count);
    for (name, record) in records() {
        tensors.push(tensor(&name, record, &mut warnings)?);
    }
    let start = 8 + header.len() as u64;
    layout(&tensors, file_bytes - start)?;
    for tensor in &mut tensors {
        // The ends were compared with the file's length, so the sum cannot overflow.
        tensor.begin += start;
    }
    let mut sum = Hasher::new();
    sum.update(&(header.len() as u64).to_le_bytes());
    sum.update(header);
    Ok(SafetensorsFile {
        tensors,
        metadata,
        warnings,
        header_sha256: sum.finish(),
    })
}

fn metadata(document: Json<'_>) -> Result<SafetensorsMetadata> {
    let Some(value) = document.get("__metadata__") else {
        return Ok(SafetensorsMetadata(String::new()));
    };
    let wrong = |key: &str| {
        Refusal::new(word!("safetensors.metadata.type"))
            .subject(key)
            .expected("text")
    };
    let Json::Object(text) = value else {
        return Err(wrong("__metadata__").into());
    };
    match value
        .entries()
        .find(|(_, value)| !matches!(value, Json::Text(_)))
    {
        Some((key, _)) => Err(wrong(&key).into()),
        None => Ok(SafetensorsMetadata(text.to_string())),
    }
}

fn tensor(name: &str, record: Json<'_>, warnings: &mut Vec<Warning>) -> Result<FileTensor> {
    let refuse = |code: Word| Refusal::new(code).subject(name);
    refuse_if(name.is_empty() || name.len() > MAX_NAME_BYTES, || {
        refuse(word!("safetensors.name.invalid"))
            .expected(format!("1 to {MAX_NAME_BYTES} bytes"))
            .found(name.len())
    })?;
    let typed = |what: &str| refuse(word!("safetensors.field.type")).expected(what);
    let fields = record.object().ok_or_else(|| typed("an object"))?;
    let given = record.fields(FIELDS);
    for (key, value) in FIELDS.iter().zip(given) {
        refuse_if(value.is_none(), || {
            refuse(word!("safetensors.field.missing")).expected(key)
        })?;
    }
    let [dtype, shape, offsets] = given.map(|value| value.unwrap_or(Json::Null));
    let dtype = dtype.text().ok_or_else(|| typed("dtype as text"))?;
    let dims = shape.list().ok_or_else(|| typed("shape as a list"))?;
    let mut ends = offsets.items();
    let (Some(begin), Some(end), None) = (ends.next(), ends.next(), ends.next()) else {
        return Err(typed("data_offsets as a list of two").into());
    };
    let bits = dtype_bits(&dtype)
        .ok_or_else(|| refuse(word!("safetensors.dtype.unknown")).found(&dtype))?;
    let rank = dims.clone().count();
    refuse_if(rank > MAX_RANK, || {
        refuse(word!("safetensors.shape.rank"))
            .expected(format!("at most {MAX_RANK}"))
            .found(rank)
    })?;
    let number = |value: Json<'_>| {
        value.count().ok_or_else(|| {
            let invalid = refuse(word!("safetensors.number.invalid"));
            Error::from(invalid.expected("an integer from 0 to 2^64 - 1"))
        })
    };
    let shape = dims.map(number).collect::<Result<Vec<u64>>>()?;
    let (begin, end) = (number(begin)?, number(end)?);
    let overflow = || refuse(word!("safetensors.shape.overflow")).expected("fewer than 2^64 bytes");
    // A zero dimension must not hide an overflow, so the product is taken over max(dim, 1).
    let product = shape
        .iter()
        .try_fold(1u64, |product, &dim| product.checked_mul(dim.max(1)))
        .ok_or_else(overflow)?;
    let mut total_bits = u128::from(product) * u128::from(bits);
    u64::try_from(total_bits / 8).map_err(|_| overflow())?;
    if shape.contains(&0) {
        total_bits = 0;
    }
    refuse_if(!total_bits.is_multiple_of(8), || {
        refuse(word!("safetensors.dtype.sub-byte"))
            .expected("a whole number of bytes")
            .found(format!("{total_bits} bits"))
    })?;
    refuse_if(begin > end, || {
        refuse(word!("safetensors.offset.order")).found(format!("{begin} to {end}"))
    })?;
    refuse_if(u128::from(end - begin) != total_bits / 8, || {
        refuse(word!("safetensors.tensor.size-mismatch"))
            .expected(total_bits / 8)
            .found(end - begin)
    })?;
    if name.chars().any(unusual) {
        add_warning(warnings, word!("safetensors.name.unusual"), name);
    }
    for (key, _) in fields.filter(|(key, _)| !FIELDS.contains(&key.as_ref())) {
        add_warning(
            warnings,
            word!("safetensors.field.unknown"),
            &format!("{name}/{key}"),
        );
    }
    Ok(FileTensor {
        name: name.to_string(),
        dtype: dtype.to_string(),
        shape,
        begin,
        bytes: Some(end - begin),
    })
}

/// Checks that the tensors tile the data: no overlap, no gap, nothing missing, nothing left over.
fn layout(tensors: &[FileTensor], data_bytes: u64) -> Result<()> {
    let mut order: Vec<&FileTensor> = tensors.iter().collect();
    order.sort_by_key(|tensor| (tensor.begin, tensor.end()));
    let mut running = 0;
    for tensor in &order {
        let refuse = |code: Word| {
            Refusal::new(code)
                .subject(&tensor.name)
                .expected(running)
                .found(tensor.begin)
        };
        refuse_if(tensor.begin < running, || {
            refuse(word!("safetensors.offset.overlap"))
        })?;
        refuse_if(tensor.begin > running, || {
            refuse(word!("safetensors.offset.gap"))
        })?;
        running = tensor.end();
    }
    let refuse = |code: Word, expected: u64| {
        Refusal::new(code)
            .expected(format!("{expected} bytes of data"))
            .found(data_bytes)
    };
    if let Some(tensor) = order.iter().find(|tensor| tensor.end() > data_bytes) {
        let refusal = refuse(word!("safetensors.data.truncated"), tensor.end());
        return Err(refusal.subject(&tensor.name).into());
    }
    refuse_if(running < data_bytes, || {
        refuse(word!("safetensors.data.trailing"), running)
    })
}
