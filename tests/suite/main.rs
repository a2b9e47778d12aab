//! One test binary, because linking Burn is slow. One line per area.

mod adapter;
mod as_a_gpu;
mod border;
mod bundle;
mod checkpoint;
mod cli;
mod config;
mod data;
mod export;
mod fuzz;
mod generate;
mod gpu;
mod hostile;
mod house;
mod interrupt;
mod measure;
mod memory;
#[cfg(debug_assertions)]
mod messages;
mod model;
mod not_finite;
mod ops;
mod optim;
mod parameters;
mod portable;
mod release;
mod repeat;
mod replay;
mod report_every;
mod resume;
mod row_parts;
mod schedule;
mod shader_contract;
mod shader_lint;
mod tokenizer;
mod train;
mod varying;
mod witness;

/// The last test by its name, for the process that `messages` starts.
#[cfg(debug_assertions)]
#[test]
fn words_written() {
    messages::write_examples();
}
