//! Writes the header of a GGUF file, under the rules without which llama.cpp refuses the file (crate/FORMATS.md, "GGUF, written").

use std::collections::HashSet;

use super::ggml_type::GgmlType;
use super::header::{
    ALIGNMENT, DEFAULT_ALIGNMENT, MAX_ALIGNMENT, MAX_KEY_BYTES, MAX_NAME_BYTES, MAX_RANK, MAX_SIZE,
    sized,
};
use super::layout::padded;
use super::value::{GgufValue, put_text};
use crate::error::{Refusal, Result, Word, word};
use crate::formats::{FileTensor, refuse_if};

const VERSION: u32 = 3;

/// Position of a tensor in the data of a GGUF file to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GgufSpan {
    /// Position of the first byte, counted from the end of the header.
    pub begin: u64,
    /// Number of bytes of the tensor.
    pub bytes: u64,
    /// Number of zero bytes after it, up to the alignment.
    pub padding: u64,
}

/// The header of a GGUF file to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GgufHeader {
    /// The bytes of the header, padded to the start of the data.
    pub bytes: Vec<u8>,
    /// Position of each tensor, in the order of the records. They follow one another without gaps.
    pub spans: Vec<GgufSpan>,
}

fn refuse(code: Word, subject: &str) -> Refusal {
    Refusal::new(code).of("gguf").subject(subject)
}

/// Builds the header of a file with these keys and tensors, in their order; data are aligned to `general.alignment`, or to 32 bytes without it.
///
/// # Errors
/// `export.gguf.key` for a key that is empty, too long or given twice, and an alignment that is no power of two; `export.gguf.name` for a name
/// that is empty, longer than 63 bytes, given twice or has control characters; `export.gguf.type` for a type of unknown size;
/// `export.tensor.size` for more than 4 dimensions, a row that no block fits and a size of 2⁶³ or more.
pub fn gguf_header(metadata: &[(String, GgufValue)], tensors: &[FileTensor]) -> Result<GgufHeader> {
    let alignment = check_keys(metadata)?;
    let mut bytes = b"GGUF".to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend((tensors.len() as u64).to_le_bytes());
    bytes.extend((metadata.len() as u64).to_le_bytes());
    for (key, value) in metadata {
        put_text(&mut bytes, key.as_bytes());
        bytes.extend(value.kind().to_le_bytes());
        bytes.extend_from_slice(value.bytes());
    }
    let (mut names, mut spans, mut begin) = (HashSet::new(), Vec::new(), 0u64);
    for tensor in tensors {
        refuse_if(!names.insert(tensor.name.as_str()), || {
            refuse(word!("export.gguf.name"), &tensor.name).expected("each name once")
        })?;
        let (ggml_type, size) = check_tensor(tensor)?;
        let end = padded(size, u64::from(alignment))
            .and_then(|size| begin.checked_add(size))
            .filter(|end| *end <= MAX_SIZE);
        let end = end.ok_or_else(|| too_large(tensor))?;
        put_text(&mut bytes, tensor.name.as_bytes());
        // The rank is at most MAX_RANK.
        bytes.extend((tensor.shape.len() as u32).to_le_bytes());
        tensor
            .shape
            .iter()
            .rev()
            .for_each(|dim| bytes.extend(dim.to_le_bytes()));
        bytes.extend(ggml_type.id.to_le_bytes());
        bytes.extend(begin.to_le_bytes());
        spans.push(GgufSpan {
            begin,
            bytes: size,
            padding: end - begin - size,
        });
        begin = end;
    }
    bytes.resize(bytes.len().next_multiple_of(alignment as usize), 0);
    Ok(GgufHeader { bytes, spans })
}

/// Refuses keys that a reader would refuse; returns the stated alignment.
fn check_keys(metadata: &[(String, GgufValue)]) -> Result<u32> {
    let mut seen = HashSet::new();
    let mut alignment = DEFAULT_ALIGNMENT;
    for (key, value) in metadata {
        let wrong = |expected: &str| refuse(word!("export.gguf.key"), key).expected(expected);
        refuse_if(key.is_empty() || key.len() as u64 > MAX_KEY_BYTES, || {
            wrong("1 to 65535 bytes").found(key.len())
        })?;
        refuse_if(!seen.insert(key.as_str()), || wrong("each key once"))?;
        if key == ALIGNMENT {
            let stated = value
                .as_u32()
                .filter(|n| n.is_power_of_two() && *n <= MAX_ALIGNMENT);
            alignment = stated.ok_or_else(|| wrong("a u32 power of two, at most 2^20"))?;
        }
    }
    Ok(alignment)
}

/// Finds type and number of bytes of a tensor, refusing one that a reader would not accept.
fn check_tensor(tensor: &FileTensor) -> Result<(GgmlType, u64)> {
    let FileTensor {
        name, dtype, shape, ..
    } = tensor;
    let wrong =
        name.is_empty() || name.len() as u64 > MAX_NAME_BYTES || name.chars().any(char::is_control);
    refuse_if(wrong, || {
        refuse(word!("export.gguf.name"), name).expected("1 to 63 bytes without control characters")
    })?;
    refuse_if(shape.len() > MAX_RANK as usize, || {
        refuse(word!("export.tensor.size"), name)
            .expected(format!("at most {MAX_RANK} dimensions"))
            .found(shape.len())
    })?;
    let known = tensor
        .ggml_type()
        .and_then(|ggml_type| Some((ggml_type, ggml_type.block?.0)));
    let unknown = || {
        refuse(word!("export.gguf.type"), name)
            .expected("a type of known size")
            .found(dtype)
    };
    let (ggml_type, block) = known.ok_or_else(unknown)?;
    let row = shape.last().copied().unwrap_or(1);
    refuse_if(!row.is_multiple_of(block), || {
        refuse(word!("export.tensor.size"), name)
            .expected(format!("a row that is a multiple of {block}"))
            .found(row)
    })?;
    let dims: Vec<u64> = shape.iter().rev().copied().collect();
    let bytes = sized(&dims, ggml_type)
        .flatten()
        .ok_or_else(|| too_large(tensor))?;
    Ok((ggml_type, bytes))
}

fn too_large(tensor: &FileTensor) -> Refusal {
    let found = format!("{} {:?}", tensor.dtype, tensor.shape);
    refuse(word!("export.tensor.size"), &tensor.name)
        .expected("less than 2^63 bytes")
        .found(found)
}
