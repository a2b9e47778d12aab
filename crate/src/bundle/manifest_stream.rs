//! The manifest of an export, written after the files that it describes.

use super::digest::weights_digest;
use super::state::{StateManifest, StatedDigests};
use super::stream::{FileStream, Segment};
use super::sums::Sums;
use crate::error::Result;

impl FileStream {
    /// Adds `manifest` with the digest of the weights in the files before it. The stream has to sum what it gives ([`Self::summed`]).
    pub(crate) fn push_manifest(&mut self, name: &str, manifest: StateManifest) -> Result<()> {
        let write = move |sums: &Sums| {
            let digests = StatedDigests { weights: Some(weights_digest(&sums.weights)), ..StatedDigests::default() };
            Ok(StateManifest { digests: Some(digests), ..manifest.clone() }.to_text()?.into_bytes())
        };
        let len = write(&Sums::default())?.len() as u64;
        self.push(name, len, vec![Segment::Late(len, Box::new(write))]);
        Ok(())
    }
}
