//! llama.cpp's mixture of types Q4_K_M.

use super::names;
use crate::formats::TensorType;

/// Returns the type of a matrix in llama.cpp's mixture Q4_K_M, by its GGUF name, in a model with `layers` blocks: Q4_K, except Q6_K for the
/// head (`token_embd` where it is tied), for `attn_qkv`, and in half of the layers for `attn_v` and `ffn_down`.
pub fn q4_k_m(name: &str, layers: usize, tied: bool) -> TensorType {
    let precise = match name {
        "output.weight" => true,
        "token_embd.weight" => tied,
        _ => names::block_of(name).is_some_and(|layer| match name.splitn(3, '.').nth(2) {
            Some("attn_qkv.weight") => true,
            Some("attn_v.weight" | "ffn_down.weight") => gets_more_bits(layer, layers),
            _ => false,
        }),
    };
    if precise {
        TensorType::Q6K
    } else {
        TensorType::Q4K
    }
}

// i < n/8, i ≥ 7n/8, or (i − n/8) mod 3 = 2: the first and last eighth, and every third layer between
fn gets_more_bits(layer: usize, layers: usize) -> bool {
    let eighth = layers / 8;
    layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2
}
