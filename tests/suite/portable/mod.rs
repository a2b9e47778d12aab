//! State dicts: their digests, checks, selection and manifests, and their way through every container.

mod bundle;
mod chain;
mod checks;
mod delta;
mod digests;
mod json;
pub mod manifest;
mod plan;
mod safetensors;
mod selection;
mod state_dict;
mod state_g;
mod training;
mod vectors;
