//! Positions of the tensors of a GGUF file (crate/FORMATS.md, "GGUF").

use super::cursor::refuse;
use super::ggml_type::GgmlType;
use super::tensor::GgufTensor;
use crate::error::{Refusal, Result, Word, word};
use crate::formats::source::{ByteSource, for_each_chunk};
use crate::formats::warning::Warning;

/// A tensor record with its offset in the data.
pub(crate) struct TensorRecord {
    pub(crate) name: String,
    pub(crate) ggml_type: GgmlType,
    pub(crate) shape: Vec<u64>,
    pub(crate) offset: u64,
    pub(crate) bytes: Option<u64>,
}

impl TensorRecord {
    /// Returns the offset at which the next tensor must begin; `None` after a tensor of unknown size, when any later offset is allowed.
    fn end(&self, alignment: u64) -> Option<u64> {
        self.offset.checked_add(padded(self.bytes?, alignment)?)
    }

    fn refuse(&self, code: Word) -> Refusal {
        refuse(code).subject(&self.name)
    }
}

/// Rounds up to the next multiple of `alignment`.
pub(crate) fn padded(bytes: u64, alignment: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(alignment)
}

/// Checks every offset and computes the position of each tensor in the file.
pub(crate) fn place(
    source: &dyn ByteSource,
    records: Vec<TensorRecord>,
    header_end: u64,
    alignment: u64,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<GgufTensor>> {
    let start = padded(header_end, alignment).unwrap_or(u64::MAX);
    let data_bytes = source.len().saturating_sub(start);
    if records.is_empty() {
        if data_bytes > 0 || !zeros(source, header_end, source.len())? {
            return Err(trailing(header_end).into());
        }
        return Ok(Vec::new());
    }
    for record in &records {
        if record.offset > data_bytes {
            return Err(record
                .refuse(word!("gguf.offset.out-of-file"))
                .expected(format!("at most {data_bytes}"))
                .found(record.offset)
                .into());
        }
        if !record.offset.is_multiple_of(alignment) {
            return Err(record
                .refuse(word!("gguf.offset.misaligned"))
                .expected(format!("a multiple of {alignment}"))
                .found(record.offset)
                .into());
        }
        // A file that ends before its data section begins has no room even for an empty tensor.
        if source.len() < start || record.bytes.is_some_and(|bytes| bytes > data_bytes - record.offset) {
            let expected = format!("{} bytes", record.bytes.unwrap_or(0));
            return Err(record.refuse(word!("gguf.data.truncated")).expected(expected).found(data_bytes - record.offset).into());
        }
    }
    check_order(&records, alignment)?;
    check_tail(source, &records, start, data_bytes, alignment, warnings)?;
    let placed = records.into_iter().map(|record| GgufTensor {
        begin: start + record.offset,
        name: record.name,
        ggml_type: record.ggml_type,
        shape: record.shape,
        bytes: record.bytes,
    });
    Ok(placed.collect())
}

fn check_order(records: &[TensorRecord], alignment: u64) -> Result<()> {
    let mut sorted: Vec<&TensorRecord> = records.iter().collect();
    sorted.sort_by_key(|record| (record.offset, record.bytes.unwrap_or(0)));
    let mut running = Some(0);
    let mut opaque_at = None;
    for record in &sorted {
        if running.is_some_and(|end| record.offset < end) || opaque_at == Some(record.offset) {
            return Err(record.refuse(word!("gguf.offset.overlap")).found(record.offset).into());
        }
        if running.is_some_and(|end| record.offset > end) {
            return Err(record.refuse(word!("gguf.offset.gap")).expected(running.unwrap_or(0)).found(record.offset).into());
        }
        running = record.end(alignment);
        opaque_at = running.is_none().then_some(record.offset);
    }
    let mut running = Some(0);
    let mut last = 0;
    for record in records {
        if running.is_some_and(|end| record.offset != end) || record.offset < last {
            return Err(record.refuse(word!("gguf.offset.order")).expected(running.unwrap_or(last)).found(record.offset).into());
        }
        last = record.offset;
        running = record.end(alignment);
    }
    Ok(())
}

fn check_tail(
    source: &dyn ByteSource,
    records: &[TensorRecord],
    start: u64,
    data_bytes: u64,
    alignment: u64,
    warnings: &mut Vec<Warning>,
) -> Result<()> {
    // The order was checked, so the last record is the last tensor.
    let Some((last, bytes)) = records.last().and_then(|last| Some((last, last.bytes?))) else { return Ok(()) };
    let end = last.offset + bytes;
    let padded_end = last.end(alignment).unwrap_or(end);
    if data_bytes > padded_end || !zeros(source, start.saturating_add(end), source.len())? {
        return Err(trailing(start.saturating_add(end)).into());
    }
    if data_bytes < padded_end {
        warnings.push(Warning::new(word!("gguf.padding.final-absent"), &last.name));
    }
    Ok(())
}

fn trailing(at: u64) -> Refusal {
    refuse(word!("gguf.data.trailing")).expected("nothing, or zero bytes up to the alignment").at(at)
}

/// Checks that the bytes from `begin` to `end` are all zero.
fn zeros(source: &dyn ByteSource, begin: u64, end: u64) -> Result<bool> {
    let mut all = true;
    for_each_chunk(source, begin.min(end), end, 1, |piece| {
        all &= piece.iter().all(|&byte| byte == 0);
        Ok(())
    })?;
    Ok(all)
}
