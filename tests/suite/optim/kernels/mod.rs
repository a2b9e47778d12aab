//! Per kernel of an update rule or a norm: parity with its twin and a mutant that must be caught.

pub(crate) mod adafactor;
mod adamw;
mod apollo;
pub(crate) mod gate;
mod global_norm;
mod guard;
mod sgd;
