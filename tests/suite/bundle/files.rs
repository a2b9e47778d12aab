//! Makes small model files.

use std::collections::BTreeMap;
use std::rc::Rc;

use tabtune::formats::{ByteSource, MemorySource, safetensors_header};

pub type Tensor = (&'static str, Vec<usize>, Vec<f32>);

/// Returns values that differ at every position.
pub fn ramp(count: usize, from: f32) -> Vec<f32> {
    (0..count).map(|n| from + n as f32).collect()
}

/// Makes an F32 safetensors file.
pub fn safetensors(tensors: &[Tensor]) -> Vec<u8> {
    let mut sorted: Vec<&Tensor> = tensors.iter().collect();
    sorted.sort_by_key(|t| t.0);
    let entries: Vec<_> = sorted
        .iter()
        .map(|t| (t.0.to_string(), "F32", t.1.clone()))
        .collect();
    let (mut bytes, _) = safetensors_header(&entries, &BTreeMap::new()).unwrap();
    bytes.extend(
        sorted
            .iter()
            .flat_map(|t| &t.2)
            .flat_map(|v| v.to_le_bytes()),
    );
    bytes
}

pub fn file(name: &str, bytes: impl Into<Vec<u8>>) -> Rc<dyn ByteSource> {
    Rc::new(MemorySource::new(name, bytes))
}

/// A metadata value of a GGUF file.
#[derive(Clone)]
pub enum Meta {
    U32(u32),
    Bool(bool),
    F32(f32),
    Text(&'static str),
    Texts(Vec<String>),
    F32s(Vec<f32>),
    I32s(Vec<i32>),
    /// A value of any type, by its number and its bytes.
    Raw(u32, Vec<u8>),
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn array(out: &mut Vec<u8>, kind: u32, count: usize) {
    out.extend(9u32.to_le_bytes());
    out.extend(kind.to_le_bytes());
    out.extend((count as u64).to_le_bytes());
}

/// Makes a version 3 GGUF file of F32 tensors; shapes are row-major.
pub fn gguf(metadata: &[(&str, Meta)], tensors: &[Tensor]) -> Vec<u8> {
    let mut out = b"GGUF".to_vec();
    out.extend(3u32.to_le_bytes());
    out.extend((tensors.len() as u64).to_le_bytes());
    out.extend((metadata.len() as u64).to_le_bytes());
    for (key, value) in metadata {
        text(&mut out, key);
        match value {
            Meta::U32(value) => {
                out.extend(4u32.to_le_bytes());
                out.extend(value.to_le_bytes());
            }
            Meta::Bool(value) => {
                out.extend(7u32.to_le_bytes());
                out.push(u8::from(*value));
            }
            Meta::F32(value) => {
                out.extend(6u32.to_le_bytes());
                out.extend(value.to_le_bytes());
            }
            Meta::Text(value) => {
                out.extend(8u32.to_le_bytes());
                text(&mut out, value);
            }
            Meta::Texts(values) => {
                array(&mut out, 8, values.len());
                values.iter().for_each(|value| text(&mut out, value));
            }
            Meta::F32s(values) => {
                array(&mut out, 6, values.len());
                values
                    .iter()
                    .for_each(|value| out.extend(value.to_le_bytes()));
            }
            Meta::Raw(kind, bytes) => {
                out.extend(kind.to_le_bytes());
                out.extend(bytes);
            }
            Meta::I32s(values) => {
                array(&mut out, 5, values.len());
                values
                    .iter()
                    .for_each(|value| out.extend(value.to_le_bytes()));
            }
        }
    }
    let mut offset = 0u64;
    for (name, shape, values) in tensors {
        text(&mut out, name);
        out.extend((shape.len() as u32).to_le_bytes());
        shape
            .iter()
            .rev()
            .for_each(|&dim| out.extend((dim as u64).to_le_bytes()));
        out.extend(0u32.to_le_bytes());
        out.extend(offset.to_le_bytes());
        offset += (4 * values.len() as u64).next_multiple_of(32);
    }
    for (_, _, values) in tensors {
        out.resize(out.len().next_multiple_of(32), 0);
        out.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    }
    out.resize(out.len().next_multiple_of(32), 0);
    out
}
