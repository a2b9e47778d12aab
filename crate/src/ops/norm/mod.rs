//! Normalisation of rows: LayerNorm and RMSNorm.

pub mod layer;
pub mod rms;
