//! Kernels of one's own, copies, transfers, traces.

mod copy;
mod own;
mod trace;
mod transfer;
