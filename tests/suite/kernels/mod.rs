//! Per kernel: parity with its twin and a mutant that must be caught; per operation: gradients.

mod attention;
mod cross_entropy;
mod elementwise;
mod embedding;
mod gradients;
mod linear;
mod norms;
mod rope;
mod speed;
mod u32_copy;
