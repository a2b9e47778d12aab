//! The WGSL of tabtune's kernels, as constants by stem. The comments of the files are left out; read them in the files, and in this folder's page on
//! the kernels, their formulas and their laws.
#![no_std]
#![deny(missing_docs)]
#![deny(unsafe_code)]

/// Every shader and chunk: stem and text, sorted by stem. The stem of `optim/adamw/adamw.wgsl` is `adamw`; only a chunk's has its
/// folder, `chunks/blocks`.
pub const SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// Returns the text of a stem. In a constant, so that a program has only the texts that it names, and a stem that is absent does not compile:
///
/// ```
/// const COMMON: &str = tabtune_shaders::source("common");
/// assert!(COMMON.contains("fn grid_index("));
/// ```
///
/// ```compile_fail
/// const MISSPELLED: &str = tabtune_shaders::source("comon");
/// ```
///
/// # Panics
/// Panics if no file has this stem.
pub const fn source(stem: &str) -> &'static str {
    let mut at = 0;
    while at < SOURCES.len() {
        if equal(SOURCES[at].0.as_bytes(), stem.as_bytes()) {
            return SOURCES[at].1;
        }
        at += 1;
    }
    panic!("no shader has this stem");
}

const fn equal(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}
