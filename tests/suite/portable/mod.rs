//! State dicts: their digests, checks, selection and manifests, and their way through every container. ./README.md lists the promises
//! that the tests prove.

mod bundle;
mod chain;
mod checks;
mod continuation;
mod contract;
mod delta;
mod delta_cases;
mod digests;
mod extract;
mod json;
pub mod manifest;
mod plan;
mod receipts;
mod request;
mod safetensors;
mod selection;
mod state_dict;
mod state_g;
mod training;
mod vectors;
