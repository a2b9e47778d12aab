//! SHA-256 of bytes that come piece by piece: a browser sums only what it has whole.

use wasm_bindgen::prelude::*;

use crate::bundle::Hasher;

/// A sum that is not finished.
#[wasm_bindgen]
#[derive(Default)]
pub struct Sha256 {
    hasher: Hasher,
}

#[wasm_bindgen]
impl Sha256 {
    /// Of no bytes yet.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
    }

    /// The sum in hexadecimal digits; after it there are no more bytes.
    pub fn finish(self) -> String {
        self.hasher.finish().to_string()
    }
}
