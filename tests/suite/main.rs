//! One test binary, since linking Burn is slow. One line per area.

mod adapter;
mod as_a_gpu;
mod bundle;
mod checkpoint;
mod cli;
mod config;
mod data;
mod export;
mod fuzz;
mod gpu;
mod hostile;
mod house;
mod interrupt;
mod memory;
mod model;
mod not_finite;
mod ops;
mod optim;
mod portable;
mod release;
mod replay;
mod resume;
mod schedule;
mod shader_contract;
mod tokenizer;
mod train;
