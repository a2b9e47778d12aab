//! Writes the manifest of an export after the files that it describes.

use super::checksums::Leaves;
use super::stream::FileStream;
use crate::error::Result;
use crate::state::{StateManifest, StatedDigests, weights_digest};

impl FileStream {
    /// Adds `manifest` with the digest of the weights in the files before it. The stream must compute checksums of its bytes
    /// ([`Self::summed`]).
    pub(crate) fn push_manifest(&mut self, name: &str, manifest: StateManifest) -> Result<()> {
        let write = move |weights: &Leaves| {
            let digests = StatedDigests {
                weights: Some(weights_digest(weights)),
                ..StatedDigests::default()
            };
            let manifest = StateManifest {
                digests: Some(digests),
                ..manifest.clone()
            };
            Ok(manifest.to_text()?.into_bytes())
        };
        let len = write(&Leaves::new())?.len();
        self.push_late(name, len, move |stream| write(&stream.checksums()?.weights));
        Ok(())
    }
}
