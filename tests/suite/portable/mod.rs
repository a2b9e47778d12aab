//! State dicts: their digests, checks, selection and manifests.

mod checks;
mod digests;
mod manifest;
mod selection;
mod vectors;
