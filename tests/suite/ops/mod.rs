//! Per kernel: parity with its twin and a mutant that must be caught; per operation: gradients.

mod attention;
mod attention_forms;
mod attention_tiles;
pub mod budget;
mod cast_bf16;
mod causal_conv;
mod cross_entropy;
mod delta;
mod dropout;
mod elementwise;
mod embedding;
mod family_parts;
mod gradients;
mod joint;
mod linear;
mod low_rank;
mod norms;
mod packed;
mod packed_ops;
mod rope;
mod scale;
mod short_conv;
mod truth;
