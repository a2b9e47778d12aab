//! Writes safetensors: the header first, then the data in the header's order.

use std::collections::BTreeMap;

use super::dtype::dtype_bits;
use crate::error::{Refusal, Result, word};

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
        json.push_str(
            &serde_json::Value::from_iter(metadata.iter().map(|(k, v)| (k.clone(), v.clone())))
                .to_string(),
        );
    }
    let mut spans = vec![(0, 0); entries.len()];
    let mut running = 0u64;
    for (position, &index) in order.iter().enumerate() {
        let (name, dtype, shape) = &entries[index];
        let twice = position > 0 && entries[order[position - 1]].0 == *name;
        if name.is_empty()
            || name.len() > 1_024
            || name == "__metadata__"
            || twice
            || name.chars().any(char::is_control)
        {
            return Err(Refusal::new(word!("export.name.invalid"))
                .of("safetensors")
                .subject(name)
                .into());
        }
        let bytes = shape
            .iter()
            .try_fold(dtype_bits(dtype).unwrap_or(0), |bits, &dim| {
                bits.checked_mul(dim as u64)
            })
            .filter(|bits| dtype_bits(dtype).is_some() && bits.is_multiple_of(8))
            .ok_or_else(|| {
                Refusal::new(word!("export.tensor.size"))
                    .of("safetensors")
                    .subject(name)
                    .found(format!("{dtype} {shape:?}"))
            })?
            / 8;
        let end = running.checked_add(bytes).ok_or_else(|| {
            Refusal::new(word!("export.tensor.size"))
                .of("safetensors")
                .subject(name)
                .found(format!("{dtype} {shape:?}"))
        })?;
        if json.len() > 1 {
            json.push(',');
        }
        let record =
            serde_json::json!({ "dtype": dtype, "shape": shape, "data_offsets": [running, end] });
        json.push_str(&format!(
            "{}:{record}",
            serde_json::Value::from(name.as_str())
        ));
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
