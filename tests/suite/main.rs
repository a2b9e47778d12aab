//! One test binary, since linking Burn is slow. One line per area.

mod cli;
mod data;
mod house;
mod kernels;
mod optim;
mod replay;
mod schedule;
mod shader_contract;
mod tokenizer;
