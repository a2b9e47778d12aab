//! The digest of data.

use sha2::{Digest, Sha256};

use super::example::Example;

/// SHA-256 over the ids (u32, little endian) of a stream; of examples, over each one's length (u64), ids, and a byte for each that is 1 if it is
/// learned.
#[derive(Default)]
pub(super) struct DataHash(Sha256);

impl DataHash {
    pub fn ids(&mut self, ids: &[u32]) {
        ids.iter().for_each(|id| self.0.update(id.to_le_bytes()));
    }

    pub fn example(&mut self, example: &Example) {
        self.0.update((example.ids.len() as u64).to_le_bytes());
        self.ids(&example.ids);
        example.counted.iter().for_each(|&learned| self.0.update([u8::from(learned)]));
    }

    pub fn finish(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
