//! Reads and checks the header of a GGUF file (crate/FORMATS.md, "GGUF").

use std::collections::HashSet;

use super::cursor::{Cursor, refuse};
use super::ggml_type::GgmlType;
use super::value::{GgufValue, KIND_ARRAY, KIND_BOOL, KIND_LAST, KIND_TEXT, plain_bytes};
use crate::error::{Result, Warning, Word, word};
use crate::formats::checksum::Digest;
use crate::formats::gguf::layout;
use crate::formats::source::ByteSource;
use crate::formats::{FileTensor, base_name, or_mismatch, refuse_if};

const MAX_COUNT: u64 = 100_000;
pub(crate) const MAX_KEY_BYTES: u64 = 65_535;
const MAX_TEXT_BYTES: u64 = 64 << 20;
const MAX_ITEMS: u64 = 1 << 24;
pub(crate) const MAX_NAME_BYTES: u64 = 63;
pub(crate) const MAX_RANK: u32 = 4;
pub(crate) const MAX_ALIGNMENT: u32 = 1 << 20;
pub(crate) const MAX_SIZE: u64 = i64::MAX as u64;
/// The key that states the alignment of the data; the default follows.
pub(crate) const ALIGNMENT: &str = "general.alignment";
pub(crate) const DEFAULT_ALIGNMENT: u32 = 32;

/// The header of a GGUF file that passed every check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GgufFile {
    /// Keys and values, in the order of the file.
    pub metadata: Vec<(String, GgufValue)>,
    /// Tensors, in the order of the file.
    pub tensors: Vec<FileTensor>,
    /// Unusual but allowed properties of the file.
    pub warnings: Vec<Warning>,
    /// SHA-256 of everything before the data; in a split file, that of the first part.
    pub header_sha256: Digest,
}

impl GgufFile {
    /// Reads the header and checks everything that can be checked without the data.
    ///
    /// # Errors
    /// Codes `gguf.*` (crate/FORMATS.md, "GGUF"), `format.mismatch` if the first bytes show another format, and the errors of the source.
    pub fn open(source: &dyn ByteSource) -> Result<Self> {
        read(source, true).map_err(|error| or_mismatch(error, source, "gguf"))
    }

    /// Reads a file that may be one part of several; otherwise like [`Self::open`].
    pub(crate) fn open_part(source: &dyn ByteSource) -> Result<Self> {
        read(source, false).map_err(|error| or_mismatch(error, source, "gguf"))
    }

    /// Value of `key`, if the file has one.
    pub fn get(&self, key: &str) -> Option<&GgufValue> {
        self.metadata
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value)
    }

    /// The tensor `name`, if the file has it.
    pub fn tensor(&self, name: &str) -> Option<&FileTensor> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }
}

fn read(source: &dyn ByteSource, alone: bool) -> Result<GgufFile> {
    let mut cursor = Cursor::new(source);
    let magic = cursor.u32()?;
    refuse_if(magic.to_le_bytes() != *b"GGUF", || {
        refuse(word!("gguf.magic.invalid")).expected("GGUF").at(0)
    })?;
    let version = cursor.u32()?;
    refuse_if(!matches!(version, 2 | 3), || {
        let code = match version.swap_bytes() {
            1..=3 => word!("gguf.version.big-endian"),
            _ => word!("gguf.version.unsupported"),
        };
        refuse(code)
            .expected("version 2 or 3, little-endian")
            .found(version)
            .at(4)
    })?;
    let tensor_count = limited(&mut cursor, "tensors")?;
    let key_count = limited(&mut cursor, "keys")?;
    let mut warnings = Vec::new();
    let (metadata, alignment) = read_metadata(&mut cursor, key_count, &mut warnings)?;
    let mut records: Vec<FileTensor> = Vec::new();
    let mut names = HashSet::new();
    let mut padded_sum = 0u64;
    for _ in 0..tensor_count {
        let record = read_record(&mut cursor, &mut names)?;
        padded_sum = layout::padded(record.bytes.unwrap_or(0), alignment)
            .and_then(|bytes| padded_sum.checked_add(bytes))
            .filter(|sum| *sum <= MAX_SIZE)
            .ok_or_else(|| refuse(word!("gguf.tensor.size-overflow")).subject(&record.name))?;
        records.push(record);
    }
    let mut file = GgufFile {
        metadata,
        tensors: Vec::new(),
        warnings,
        header_sha256: Digest::of(&[]),
    };
    if alone {
        file.check_whole(base_name(source.name()))?;
    }
    file.tensors = layout::place(source, records, cursor.at(), alignment, &mut file.warnings)?;
    let end = layout::padded(cursor.at(), alignment).unwrap_or(u64::MAX);
    file.header_sha256 = cursor.sha256_to(end)?;
    Ok(file)
}

fn limited(cursor: &mut Cursor<'_>, what: &'static str) -> Result<u64> {
    let at = cursor.at();
    let count = cursor.u64()?;
    refuse_if(count > MAX_COUNT, || {
        refuse(word!("gguf.count.limit"))
            .subject(what)
            .expected(format!("at most {MAX_COUNT}"))
            .found(count)
            .at(at)
    })?;
    Ok(count)
}

type Metadata = Vec<(String, GgufValue)>;

fn read_metadata(
    cursor: &mut Cursor<'_>,
    count: u64,
    warnings: &mut Vec<Warning>,
) -> Result<(Metadata, u64)> {
    let mut metadata = Metadata::new();
    let mut seen = HashSet::new();
    let mut alignment = u64::from(DEFAULT_ALIGNMENT);
    for _ in 0..count {
        let at = cursor.at();
        let codes = [word!("gguf.key.length"), word!("gguf.key.utf8")];
        let key = cursor.name(MAX_KEY_BYTES, codes)?;
        refuse_if(key.is_empty(), || refuse(word!("gguf.key.empty")).at(at))?;
        refuse_if(!seen.insert(key.clone()), || {
            refuse(word!("gguf.key.duplicate")).subject(&key).at(at)
        })?;
        let value = read_value(cursor, &key)?;
        if value.kind == KIND_TEXT && value.text().is_none() {
            warnings.push(Warning::new(word!("gguf.value.not-utf8"), &key));
        }
        if key == ALIGNMENT {
            let stated = value.as_u32();
            alignment = match stated {
                Some(n) if n.is_power_of_two() && n <= MAX_ALIGNMENT => u64::from(n),
                _ => {
                    let refusal = refuse(word!("gguf.alignment.invalid"))
                        .subject(&key)
                        .expected("a u32 power of two, at most 2^20");
                    return Err(stated.map_or(refusal.clone(), |n| refusal.found(n)).into());
                }
            };
        }
        metadata.push((key, value));
    }
    Ok((metadata, alignment))
}

fn read_value(cursor: &mut Cursor<'_>, key: &str) -> Result<GgufValue> {
    let at = cursor.at();
    let wrong = |kind: u32| {
        refuse(word!("gguf.value.type"))
            .subject(key)
            .expected("0 to 12")
            .found(kind)
            .at(at)
    };
    let kind = cursor.u32()?;
    let mut bytes = Vec::new();
    refuse_if(kind > KIND_LAST, || wrong(kind))?;
    if kind != KIND_ARRAY {
        items(cursor, key, kind, 1, &mut bytes)?;
        return Ok(GgufValue { kind, bytes });
    }
    let item = cursor.u32()?;
    refuse_if(item == KIND_ARRAY, || {
        refuse(word!("gguf.value.nested-array")).subject(key).at(at)
    })?;
    refuse_if(item > KIND_LAST, || wrong(item))?;
    let count = cursor.u64()?;
    refuse_if(count > MAX_ITEMS, || {
        refuse(word!("gguf.array.limit"))
            .subject(key)
            .expected(format!("at most {MAX_ITEMS} items"))
            .found(count)
            .at(at)
    })?;
    bytes.extend_from_slice(&item.to_le_bytes());
    bytes.extend_from_slice(&count.to_le_bytes());
    items(cursor, key, item, count, &mut bytes)?;
    Ok(GgufValue { kind, bytes })
}

fn items(
    cursor: &mut Cursor<'_>,
    key: &str,
    kind: u32,
    count: u64,
    out: &mut Vec<u8>,
) -> Result<()> {
    let Some(size) = plain_bytes(kind) else {
        for _ in 0..count {
            cursor.text(MAX_TEXT_BYTES, word!("gguf.string.limit"), key, out)?;
        }
        return Ok(());
    };
    let at = cursor.at();
    let start = out.len();
    // This is at most 2^24 items of 8 bytes.
    cursor.append(count * size as u64, out)?;
    let wrong = kind == KIND_BOOL && out[start..].iter().any(|&byte| byte > 1);
    refuse_if(wrong, || {
        refuse(word!("gguf.value.bool"))
            .subject(key)
            .expected("0 or 1")
            .at(at)
    })
}

/// Reads the record of a tensor, which begins at an offset in the data.
fn read_record(cursor: &mut Cursor<'_>, names: &mut HashSet<String>) -> Result<FileTensor> {
    let at = cursor.at();
    let codes = [word!("gguf.name.length"), word!("gguf.name.utf8")];
    let name = cursor.name(MAX_NAME_BYTES, codes)?;
    let wrong = |code: Word| refuse(code).subject(&name).at(at);
    refuse_if(
        name.is_empty() || name.chars().any(char::is_control),
        || wrong(word!("gguf.name.invalid")),
    )?;
    refuse_if(!names.insert(name.clone()), || {
        wrong(word!("gguf.name.duplicate"))
    })?;
    let rank = cursor.u32()?;
    refuse_if(rank > MAX_RANK, || {
        wrong(word!("gguf.tensor.rank"))
            .expected(format!("at most {MAX_RANK}"))
            .found(rank)
    })?;
    let mut dims = Vec::new();
    for _ in 0..rank {
        dims.push(cursor.u64()?);
    }
    let ggml_type = GgmlType::from_id(cursor.u32()?);
    let begin = cursor.u64()?;
    if let Some(dim) = dims.iter().find(|dim| **dim > MAX_SIZE) {
        return Err(wrong(word!("gguf.tensor.dim-range"))
            .expected("less than 2^63")
            .found(dim)
            .into());
    }
    let inner = dims.first().copied().unwrap_or(1);
    let block = ggml_type.block.map_or(1, |(elements, _)| elements);
    refuse_if(!inner.is_multiple_of(block), || {
        wrong(word!("gguf.tensor.block-row"))
            .expected(format!("a row that is a multiple of {block}"))
            .found(inner)
    })?;
    let bytes = sized(&dims, ggml_type)
        .ok_or_else(|| wrong(word!("gguf.tensor.size-overflow")).expected("less than 2^63"))?;
    dims.reverse();
    Ok(FileTensor {
        name,
        dtype: ggml_type.dtype(),
        shape: dims,
        begin,
        bytes,
    })
}

/// Number of bytes of a tensor, `Some(None)` for types of unknown size; `None` where elements or bytes exceed 2^63 − 1.
pub(crate) fn sized(dims: &[u64], ggml_type: GgmlType) -> Option<Option<u64>> {
    // max(dim, 1): a zero dimension must not hide an overflow.
    let product = |dims: &[u64]| {
        dims.iter()
            .try_fold(1u64, |n, &dim| n.checked_mul(dim.max(1)))
            .filter(|n| *n <= MAX_SIZE)
    };
    product(dims)?;
    let Some((block, block_bytes)) = ggml_type.block else {
        return Some(None);
    };
    let row_blocks = dims
        .first()
        .map_or(1, |&inner| inner.max(1).div_ceil(block));
    let blocks = product(dims.get(1..).unwrap_or_default())?.checked_mul(row_blocks)?;
    let bytes = blocks.checked_mul(block_bytes).filter(|n| *n <= MAX_SIZE)?;
    Some(Some(if dims.contains(&0) { 0 } else { bytes }))
}
