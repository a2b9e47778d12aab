//! Checks the key, the size and the rows of a tensor of a state dict.

use super::tensor::Tensor;
use super::tensor_manifest::{byte_len, is_sized};
use crate::error::{Refusal, word};
use crate::formats::GgmlType;

/// Maximum length of a key in bytes.
const MAX_KEY_BYTES: usize = 1_024;

/// Refuses a key that the tensor does not state itself, or that is empty or too long.
pub(super) fn wrong_key(key: &str, tensor: &Tensor) -> Option<Refusal> {
    let refusal = Refusal::new(word!("state.key.mismatch")).subject(key);
    if tensor.name != key {
        return Some(refusal.expected(key).found(&tensor.name));
    }
    let sized = (1..=MAX_KEY_BYTES).contains(&key.len());
    (!sized).then(|| {
        refusal
            .expected(format!("1 to {MAX_KEY_BYTES} bytes"))
            .found(key.len())
    })
}

/// True if the rows are no whole number of blocks.
fn has_broken_row(tensor: &Tensor) -> bool {
    let block = GgmlType::of_dtype(&tensor.dtype).and_then(|ggml| ggml.block);
    block.is_some_and(|(elements, _)| {
        let row = tensor.shape.last();
        row.is_none_or(|row| !row.is_multiple_of(elements))
    })
}

/// Refuses rows that are no whole number of blocks.
pub(super) fn broken_row(key: &str, tensor: &Tensor) -> Option<Refusal> {
    let refusal = Refusal::new(word!("state.tensor.block-row")).subject(key);
    has_broken_row(tensor).then(|| {
        refusal
            .expected(format!("rows of whole blocks of {}", tensor.dtype))
            .found(format!("{:?}", tensor.shape))
    })
}

/// Refuses another number of bytes than dtype and shape require, unless the rows are broken, which is refused already.
pub(super) fn wrong_length(key: &str, tensor: &Tensor) -> Option<Refusal> {
    let need = byte_len(&tensor.dtype, &tensor.shape);
    if need == Some(tensor.len()) || has_broken_row(tensor) {
        return None;
    }
    let refusal = Refusal::new(word!("state.tensor.length"))
        .subject(key)
        .found(format!("{} bytes", tensor.len()));
    Some(match need {
        Some(need) => refusal.expected(format!("{need} bytes")),
        None if is_sized(&tensor.dtype) => {
            refusal.expected(format!("a size below 2^64 for {:?}", tensor.shape))
        }
        None => refusal.expected(format!("a dtype of known size, not {}", tensor.dtype)),
    })
}
