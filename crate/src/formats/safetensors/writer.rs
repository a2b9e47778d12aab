//! Writes safetensors: the header first, then the data in the header's order.

use std::collections::BTreeMap;

use super::dtype::dtype_bits;
use crate::error::{Refusal, Result, Word, word};
use crate::formats::refuse_if;

/// Bytes of a header, and the span of each tensor's data.
pub type SafetensorsHeader = (Vec<u8>, Vec<(u64, u64)>);

/// Builds the header (a length of eight bytes, then JSON padded with spaces to a multiple of 8) and the span of each entry's data, in the order
/// of `entries`, counted from the end of the header. The data follow without gaps, in ascending byte order of the names. Each entry is name,
/// dtype word and shape.
///
/// # Errors
/// `export.name.invalid` for a name that is empty, longer than 1,024 bytes, given twice, `__metadata__` or has control characters;
/// `export.tensor.size` for an unknown dtype, or a size that is no whole number of bytes or exceeds 64 bits.
pub fn safetensors_header(
    entries: &[(String, &str, Vec<usize>)],
    metadata: &BTreeMap<String, String>,
) -> Result<SafetensorsHeader> {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by(|&a, &b| entries[a].0.as_bytes().cmp(entries[b].0.as_bytes()));
    let mut json = String::from("{");
    if !metadata.is_empty() {
        json.push_str("\"__metadata__\":");
        json.push_str(&serde_json::json!(metadata).to_string());
    }
    let mut spans = vec![(0, 0); entries.len()];
    let mut running = 0u64;
    for (position, &index) in order.iter().enumerate() {
        let (name, dtype, shape) = &entries[index];
        let refuse = |code: Word| Refusal::new(code).of("safetensors").subject(name);
        let twice = position > 0 && entries[order[position - 1]].0 == *name;
        let wrong = twice
            || name == "__metadata__"
            || !(1..=1_024).contains(&name.len())
            || name.chars().any(char::is_control);
        refuse_if(wrong, || refuse(word!("export.name.invalid")))?;
        let bits = dtype_bits(dtype).and_then(|bits| {
            let mut dims = shape.iter();
            dims.try_fold(bits, |bits, &dim| bits.checked_mul(dim as u64))
        });
        let end = bits
            .filter(|bits| bits.is_multiple_of(8))
            .and_then(|bits| running.checked_add(bits / 8))
            .ok_or_else(|| {
                refuse(word!("export.tensor.size")).found(format!("{dtype} {shape:?}"))
            })?;
        if json.len() > 1 {
            json.push(',');
        }
        let record =
            serde_json::json!({ "dtype": dtype, "shape": shape, "data_offsets": [running, end] });
        json.push_str(&format!("{}:{record}", serde_json::json!(name)));
        spans[index] = (running, end);
        running = end;
    }
    json.push('}');
    while json.len() % 8 != 0 {
        json.push(' ');
    }
    let mut header = (json.len() as u64).to_le_bytes().to_vec();
    header.extend_from_slice(json.as_bytes());
    Ok((header, spans))
}
