//! Per kernel: parity with its twin and a mutant that must be caught; per operation: gradients.

mod linear;
mod u32_copy;
