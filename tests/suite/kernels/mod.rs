//! Per kernel: parity with its twin and a mutant that must be caught; per operation: gradients.

pub(crate) mod adafactor;
mod adamw;
mod apollo;
mod attention;
mod budget;
mod cast_bf16;
mod cross_entropy;
mod elementwise;
mod embedding;
mod global_norm;
mod gradients;
mod linear;
mod norms;
mod own;
mod rope;
mod scale;
mod sgd;
mod trace;
mod transfer;
mod truth;
mod u32_copy;
