//! Positions of the tensors of a GGUF file (crate/FORMATS.md, "GGUF").

use super::cursor::refuse;
use crate::error::{Refusal, Result, Warning, Word, word};
use crate::formats::source::{ByteSource, for_each_chunk};
use crate::formats::{FileTensor, refuse_if};

/// Offset at which the next tensor must begin; `None` after a tensor of unknown size, when any later offset is allowed.
fn next_offset(record: &FileTensor, alignment: u64) -> Option<u64> {
    record.begin.checked_add(padded(record.bytes?, alignment)?)
}

fn wrong(record: &FileTensor, code: Word) -> Refusal {
    refuse(code).subject(&record.name)
}

/// Rounds up to the next multiple of `alignment`.
pub(crate) fn padded(bytes: u64, alignment: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(alignment)
}

/// Checks every offset, where `records` begin in the data, and returns the tensors with their positions in the file.
pub(crate) fn place(
    source: &dyn ByteSource,
    mut records: Vec<FileTensor>,
    header_end: u64,
    alignment: u64,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<FileTensor>> {
    let start = padded(header_end, alignment).unwrap_or(u64::MAX);
    let data_bytes = source.len().saturating_sub(start);
    if records.is_empty() {
        let wrong = data_bytes > 0 || !zeros(source, header_end, source.len())?;
        refuse_if(wrong, || trailing(header_end))?;
        return Ok(records);
    }
    for record in &records {
        refuse_if(record.begin > data_bytes, || {
            wrong(record, word!("gguf.offset.out-of-file"))
                .expected(format!("at most {data_bytes}"))
                .found(record.begin)
        })?;
        refuse_if(!record.begin.is_multiple_of(alignment), || {
            wrong(record, word!("gguf.offset.misaligned"))
                .expected(format!("a multiple of {alignment}"))
                .found(record.begin)
        })?;
        // A file that ends before its data section begins has no room even for an empty tensor.
        let (bytes, room) = (record.bytes.unwrap_or(0), data_bytes - record.begin);
        refuse_if(source.len() < start || bytes > room, || {
            wrong(record, word!("gguf.data.truncated"))
                .expected(format!("{bytes} bytes"))
                .found(room)
        })?;
    }
    check_order(&records, alignment)?;
    check_tail(source, &records, start, data_bytes, alignment, warnings)?;
    records.iter_mut().for_each(|record| record.begin += start);
    Ok(records)
}

fn check_order(records: &[FileTensor], alignment: u64) -> Result<()> {
    let mut sorted: Vec<&FileTensor> = records.iter().collect();
    sorted.sort_by_key(|record| (record.begin, record.bytes.unwrap_or(0)));
    let mut running = Some(0);
    let mut opaque_at = None;
    for record in &sorted {
        let end = running.unwrap_or(record.begin);
        refuse_if(
            record.begin < end || opaque_at == Some(record.begin),
            || wrong(record, word!("gguf.offset.overlap")).found(record.begin),
        )?;
        refuse_if(record.begin > end, || {
            wrong(record, word!("gguf.offset.gap"))
                .expected(end)
                .found(record.begin)
        })?;
        running = next_offset(record, alignment);
        opaque_at = running.is_none().then_some(record.begin);
    }
    let mut running = Some(0);
    let mut last = 0;
    for record in records {
        let out_of_order = running.is_some_and(|end| record.begin != end) || record.begin < last;
        refuse_if(out_of_order, || {
            wrong(record, word!("gguf.offset.order"))
                .expected(running.unwrap_or(last))
                .found(record.begin)
        })?;
        last = record.begin;
        running = next_offset(record, alignment);
    }
    Ok(())
}

fn check_tail(
    source: &dyn ByteSource,
    records: &[FileTensor],
    start: u64,
    data_bytes: u64,
    alignment: u64,
    warnings: &mut Vec<Warning>,
) -> Result<()> {
    // The order was checked, so the last record is the last tensor.
    let Some((last, bytes)) = records.last().and_then(|last| Some((last, last.bytes?))) else {
        return Ok(());
    };
    let end = last.begin + bytes;
    let padded_end = next_offset(last, alignment).unwrap_or(end);
    let file_end = start.saturating_add(end);
    let wrong = data_bytes > padded_end || !zeros(source, file_end, source.len())?;
    refuse_if(wrong, || trailing(file_end))?;
    if data_bytes < padded_end {
        warnings.push(Warning::new(word!("gguf.padding.final-absent"), &last.name));
    }
    Ok(())
}

fn trailing(at: u64) -> Refusal {
    refuse(word!("gguf.data.trailing"))
        .expected("nothing, or zero bytes up to the alignment")
        .at(at)
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
