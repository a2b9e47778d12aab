//! Per kernel: parity with its twin and a mutant that must be caught; per operation: gradients.

mod adafactor;
mod adamw;
mod apollo;
mod cast_bf16;
mod global_norm;
mod linear;
mod sgd;
mod u32_copy;
