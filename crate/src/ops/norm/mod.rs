//! Norms of rows.

pub mod layer;
pub mod rms;
