//! Blocks as a device reads them, in two planes of 32-bit words: bits are moved, values never change.

use std::ops::Range;

/// How the bytes of a block are shared between two planes, both of which have whole words: what `second` names (0, 2 or 4 bytes at the
/// beginning or the end of a block: its scales), and the rest, a multiple of 4 bytes. Two blocks of 2 bytes share a word, the even one in
/// its low half. Both keep the order of the blocks and of their bytes.
#[derive(Debug, Clone)]
pub(crate) struct Planes {
    /// Bytes of a block.
    pub(crate) block: usize,
    /// Those of the second plane.
    pub(crate) second: Range<usize>,
}

impl Planes {
    /// Words of both planes of so many blocks.
    pub(crate) fn words(&self, blocks: usize) -> [usize; 2] {
        [blocks * (self.block - self.second.len()) / 4, (blocks * self.second.len()).div_ceil(4)]
    }

    /// The bytes of both planes of whole blocks.
    pub(crate) fn split(&self, blocks: &[u8]) -> [Vec<u8>; 2] {
        let count = blocks.len() / self.block;
        let mut planes = self.words(count).map(|words| Vec::with_capacity(4 * words));
        for block in blocks.chunks_exact(self.block) {
            planes[0].extend_from_slice(&block[..self.second.start]);
            planes[0].extend_from_slice(&block[self.second.end..]);
            planes[1].extend_from_slice(&block[self.second.clone()]);
        }
        planes
    }

    /// The blocks whose planes are these words, one plane behind the other.
    pub(crate) fn join(&self, words: &[u32]) -> Vec<u8> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let (second, rest) = (self.second.len(), self.block - self.second.len());
        let count = bytes.len() / self.block;
        let (first_plane, second_plane) = bytes.split_at(count * rest);
        let mut blocks = Vec::with_capacity(count * self.block);
        for i in 0..count {
            let (before, after) = first_plane[i * rest..][..rest].split_at(self.second.start);
            blocks.extend_from_slice(before);
            blocks.extend_from_slice(&second_plane[i * second..][..second]);
            blocks.extend_from_slice(after);
        }
        blocks
    }
}
