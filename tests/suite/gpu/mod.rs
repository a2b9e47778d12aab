//! Kernels of one's own, copies, transfers, traces.

mod copy;
mod fma;
mod own;
mod trace;
mod transfer;
