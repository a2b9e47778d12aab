//! Kernels of other crates, copies, transfers, traces.

mod copy;
mod fma;
mod own;
mod trace;
mod transfer;
