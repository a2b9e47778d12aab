//! Rearranges blocks as a device reads them, in two planes of 32-bit words: bits are moved, values never change.

use std::ops::Range;

/// Division of the bytes of a block between two planes, both of whole words: the second plane gets the range `second` (0, 2 or 4 bytes at
/// the beginning or the end of a block: its scales), the first one the rest, a multiple of 4 bytes. Two ranges of 2 bytes share a word,
/// with that of the even block in its low half. Both planes keep the order of the blocks and of their bytes.
#[derive(Debug, Clone)]
pub(crate) struct Planes {
    /// Number of bytes in a block.
    pub(crate) block: usize,
    /// Range of a block's bytes that the second plane gets.
    pub(crate) second: Range<usize>,
}

impl Planes {
    /// Number of words of both planes for this number of blocks.
    pub(crate) fn words(&self, blocks: usize) -> [usize; 2] {
        [
            blocks * (self.block - self.second.len()) / 4,
            (blocks * self.second.len()).div_ceil(4),
        ]
    }

    /// Divides whole blocks into the bytes of both planes.
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

    /// Joins the blocks whose planes are these words, the second plane after the first.
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
