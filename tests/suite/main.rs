//! One test binary, since linking Burn is slow. One line per area.

mod as_a_gpu;
mod bundle;
mod checkpoint;
mod cli;
mod config;
mod data;
mod hostile;
mod house;
mod interrupt;
mod kernels;
mod memory;
mod model;
mod not_finite;
mod optim;
mod release;
mod replay;
mod resume;
mod schedule;
mod shader_contract;
mod tokenizer;
