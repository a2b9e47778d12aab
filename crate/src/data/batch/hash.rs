//! SHA-256 digest of data.

use sha2::{Digest, Sha256};

use crate::data::chat::Example;

/// The bytes of ids, little endian, which is their layout in memory on every machine that this runs on.
pub(super) fn le_bytes(ids: &[u32]) -> &[u8] {
    const { assert!(cfg!(target_endian = "little")) };
    bytemuck::cast_slice(ids)
}

/// The bytes of ids, as for [`le_bytes`], which may be changed.
pub(super) fn le_bytes_mut(ids: &mut [u32]) -> &mut [u8] {
    bytemuck::cast_slice_mut(ids)
}

/// SHA-256 over the ids (u32, little endian) of a stream; for examples, over the length (u64) and ids of each, and a byte for each id that
/// is 1 if it is learned.
#[derive(Default)]
pub(super) struct DataHash(Sha256);

impl DataHash {
    pub fn ids(&mut self, ids: &[u32]) {
        self.0.update(le_bytes(ids));
    }

    pub fn example(&mut self, example: &Example) {
        self.0.update((example.ids.len() as u64).to_le_bytes());
        self.ids(&example.ids);
        let marks = example.counted.iter().map(|&learned| u8::from(learned));
        self.0.update(marks.collect::<Vec<u8>>());
    }

    pub fn finish(self) -> String {
        let bytes = self.0.finalize();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
