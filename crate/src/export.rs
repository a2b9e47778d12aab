//! Weights for others: a Hugging Face folder that `safetensors`, `transformers` and tabtune load, and GGUF files for llama.cpp.

mod architecture;
mod gguf_types;
mod patch;
mod recipe;

pub use gguf_types::GgufTypes;
pub use patch::{GgufBase, gguf_patch};
pub use recipe::gguf_recipe;

use std::collections::BTreeMap;

use crate::bundle::{FileStream, ModelAssets};
use crate::error::Result;
use crate::model::Model;

/// `model.safetensors` with the model's parameters in their stored dtype, and the documents that came with it, in which the dtype
/// and the rows of the table are those written.
pub fn safetensors_folder(model: &Model, assets: &ModelAssets) -> Result<FileStream> {
    let mut stream = FileStream::new();
    let metadata = BTreeMap::from([("format".to_string(), "pt".to_string())]);
    stream.push_safetensors("model.safetensors", model.stream_tensors(), &metadata)?;
    for (name, bytes) in assets.documents_for(model.config(), model.precision())? {
        stream.push_bytes(&name, bytes);
    }
    Ok(stream)
}
