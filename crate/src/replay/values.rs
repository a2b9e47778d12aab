//! Reads recorded tensors: decimal values or bit patterns.

use burn::tensor::{DType, Tensor, TensorData};
use serde_json::Value;

use crate::bf16::widen;

/// A recorded tensor.
pub(super) struct Recorded {
    pub shape: Option<Vec<usize>>,
    pub dtype: DType,
    /// Values; bf16 is widened.
    pub values: Vec<f32>,
}

impl Recorded {
    /// Reads a recorded tensor; `None` if the file has null or something else.
    pub fn read(value: &Value) -> Option<Self> {
        let dtype = if value["dtype"] == "bfloat16" {
            DType::BF16
        } else {
            DType::F32
        };
        let shape = usizes(&value["shape"]);
        let values = match (value["data"].as_array(), value["bits"].as_array()) {
            (Some(data), _) => data
                .iter()
                .map(|x| x.as_f64().map(|x| x as f32))
                .collect::<Option<Vec<f32>>>()?,
            (None, Some(bits)) => bits
                .iter()
                .map(|x| from_bits(x, dtype))
                .collect::<Option<Vec<f32>>>()?,
            _ => return None,
        };
        Some(Self {
            shape,
            dtype,
            values,
        })
    }

    /// Uploads the tensor flat, in its own dtype.
    pub fn tensor(&self, device: &burn::tensor::Device) -> Tensor<1> {
        let bytes = match self.dtype {
            DType::BF16 => self
                .values
                .iter()
                .flat_map(|x| ((x.to_bits() >> 16) as u16).to_le_bytes())
                .collect(),
            _ => self.values.iter().flat_map(|x| x.to_le_bytes()).collect(),
        };
        raw(bytes, self.values.len(), self.dtype, device)
    }

    /// Uploads the tensor flat, as f32.
    pub fn widened(&self, device: &burn::tensor::Device) -> Tensor<1> {
        let bytes = self.values.iter().flat_map(|x| x.to_le_bytes()).collect();
        raw(bytes, self.values.len(), DType::F32, device)
    }
}

/// Reads the bits of one recorded value.
fn from_bits(value: &Value, dtype: DType) -> Option<f32> {
    let bits = hex(value)?;
    Some(if dtype == DType::BF16 {
        widen(bits as u16)
    } else {
        f32::from_bits(bits as u32)
    })
}

/// Reads a hexadecimal number, with or without `0x`.
pub(super) fn hex(value: &Value) -> Option<u64> {
    let text = value.as_str()?;
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

/// Reads a list of sizes.
pub(super) fn usizes(value: &Value) -> Option<Vec<usize>> {
    value
        .as_array()?
        .iter()
        .map(|n| n.as_u64().map(|n| n as usize))
        .collect()
}

/// Uploads 32-bit words, stored as f32.
pub(super) fn words(words: &[u32], device: &burn::tensor::Device) -> Tensor<1> {
    raw(
        words.iter().flat_map(|w| w.to_le_bytes()).collect(),
        words.len(),
        DType::F32,
        device,
    )
}

fn raw(bytes: Vec<u8>, n: usize, dtype: DType, device: &burn::tensor::Device) -> Tensor<1> {
    Tensor::from_data(
        TensorData::from_bytes_vec(bytes, [n], dtype),
        (device, dtype),
    )
}

/// Decodes values from little-endian bytes.
pub(super) fn decode(bytes: &[u8], dtype: DType) -> Vec<f32> {
    if dtype == DType::BF16 {
        return bytes
            .chunks_exact(2)
            .map(|b| widen(u16::from_le_bytes([b[0], b[1]])))
            .collect();
    }
    bytes
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect()
}
