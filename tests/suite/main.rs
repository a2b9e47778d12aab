//! One test binary, since linking Burn is slow. One line per area.

mod kernels;
mod shader_contract;
