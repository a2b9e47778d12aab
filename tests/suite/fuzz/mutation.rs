//! Files made from files by a fixed sequence of changes.

/// SplitMix64: the same numbers on every machine.
pub struct Random(pub u64);

impl Random {
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `n`; 0 for 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.word() % n.max(1) as u64) as usize
    }

    pub fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

/// Numbers on both sides of limits.
const NUMBERS: [u64; 30] = [
    0,
    1,
    2,
    3,
    8,
    9,
    31,
    32,
    33,
    64,
    127,
    128,
    255,
    256,
    1024,
    1025,
    65_535,
    65_536,
    100_000,
    100_001,
    (1 << 20) + 1,
    (1 << 24) + 1,
    (1 << 31) - 1,
    1 << 31,
    u32::MAX as u64,
    1 << 32,
    1 << 61,
    (1 << 63) - 1,
    1 << 63,
    u64::MAX,
];

/// Longer files are cut.
const MOST_BYTES: usize = 32 << 10;

/// A part of `bytes`, at most 64 long.
fn span(random: &mut Random, bytes: &[u8]) -> (usize, usize) {
    let at = random.below(bytes.len());
    (at, (at + 1 + random.below(64)).min(bytes.len()))
}

fn one_change(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8], words: &[&str]) {
    let at = random.below(bytes.len());
    match random.below(12) {
        0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
        1 if !bytes.is_empty() => bytes[at] = random.word() as u8,
        2 if !bytes.is_empty() => bytes[at] = *random.of(b"\0\x01\x7f\x80\xff\"{}[]:,\\09-"),
        3 => {
            let number = random.of(&NUMBERS).to_le_bytes();
            let width = (1 << random.below(4)).min(bytes.len() - at);
            bytes[at..at + width].copy_from_slice(&number[..width]);
        }
        4 if bytes.len() >= at + 8 => {
            let number = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
            let near = number.wrapping_add(random.below(9) as u64).wrapping_sub(4);
            bytes[at..at + 8].copy_from_slice(&near.to_le_bytes());
        }
        5 => {
            let word = random.of(words).as_bytes();
            bytes.splice(at..at, word.iter().copied());
        }
        6 => {
            let (from, to) = span(random, bytes);
            bytes.drain(from..to);
        }
        7 => {
            let (from, to) = span(random, bytes);
            let copy = bytes[from..to].to_vec();
            bytes.splice(at..at, copy);
        }
        8 => {
            let (from, to) = span(random, other);
            bytes.splice(at..at, other[from..to].iter().copied());
        }
        9 => {
            bytes.truncate(at);
            bytes.extend_from_slice(&other[random.below(other.len())..]);
        }
        10 => {
            // A number in digits.
            let start = (at..bytes.len()).find(|&n| bytes[n].is_ascii_digit()).unwrap_or(at);
            let end = (start..bytes.len()).find(|&n| !bytes[n].is_ascii_digit()).unwrap_or(bytes.len());
            let number = random.of(&NUMBERS).to_string();
            bytes.splice(start..end, number.into_bytes());
        }
        11 => {
            let (from, to) = span(random, bytes);
            bytes[from..to].reverse();
        }
        _ => bytes.truncate(at),
    }
    bytes.truncate(MOST_BYTES);
}

/// A file of `files` with one to eight changes.
pub fn mutated(random: &mut Random, files: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    let mut bytes = random.of(files).clone();
    let other = random.of(files);
    for _ in 0..1 << random.below(4) {
        one_change(random, &mut bytes, other, words);
    }
    bytes
}
