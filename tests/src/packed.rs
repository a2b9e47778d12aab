//! Blocks of the packed storage types with random bits, and the values that they encode.

use tabtune::formats::TensorType;
use tabtune::gpu::StorageType;
use tabtune::gpu::StorageType::{F16, Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q5K, Q6K, Q8_0};

/// Storage types of packed matrices.
pub const PACKED: [StorageType; 9] = [F16, Q8_0, Q4_0, Q4K, Q6K, Q4_1, Q5_0, Q5_1, Q5K];

/// Number of half-precision patterns that are finite numbers, including subnormal ones.
pub const FINITE_HALVES: u32 = 2 * 0x7c00;

/// Returns finite half number `n`, each of which occurs once in a cycle; neighbours differ in size.
fn finite_half(n: u32) -> u16 {
    let pattern = (u64::from(n) * 40_503 % u64::from(FINITE_HALVES)) as u16;
    if pattern < 0x7c00 {
        pattern
    } else {
        0x8000 | (pattern - 0x7c00)
    }
}

/// Returns the offsets of the halves in a block.
fn halves(storage: StorageType) -> &'static [usize] {
    match storage {
        Q4_1 | Q5_1 | Q4K | Q5K => &[0, 2],
        Q6K => &[208],
        _ => &[0],
    }
}

/// Returns `count` blocks of random bits. Their halves are finite: block i has finite half number `first + i`, so that
/// [`FINITE_HALVES`] blocks contain each of them.
pub fn blocks(storage: StorageType, count: usize, first: u32) -> Vec<u8> {
    let (_, bytes) = storage.block();
    let mut state = u64::from(first) ^ (storage as u64) << 40;
    let mut random = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
    };
    let mut blocks = Vec::with_capacity(count * bytes + 8);
    while blocks.len() < count * bytes {
        blocks.extend_from_slice(&random().to_le_bytes());
    }
    blocks.truncate(count * bytes);
    for (block, n) in blocks.chunks_exact_mut(bytes).zip(first..) {
        for (&at, step) in halves(storage).iter().zip([1, 31]) {
            block[at..at + 2].copy_from_slice(&finite_half(n.wrapping_mul(step)).to_le_bytes());
        }
    }
    blocks
}

/// Returns [`blocks`] whose scales are below ¼, so that sums of their products are of similar size.
pub fn small_blocks(storage: StorageType, count: usize, first: u32) -> Vec<u8> {
    let mut blocks = blocks(storage, count, first);
    for block in blocks.chunks_exact_mut(storage.block().1) {
        halves(storage).iter().for_each(|at| block[at + 1] &= 0xb3);
    }
    blocks
}

/// Returns the blocks as a device stores them.
pub fn words(storage: StorageType, blocks: &[u8]) -> Vec<u32> {
    let word = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0, |word, &byte| word << 8 | u32::from(byte))
    };
    storage
        .split(blocks)
        .iter()
        .flat_map(|plane| plane.chunks(4).map(word))
        .collect()
}

/// Returns the values of the blocks as words, decoded by the decoders of files. [`Q5K`], which is only read, is decoded from the
/// device's form, in which its blocks are unchanged.
pub fn decoded(storage: StorageType, blocks: &[u8]) -> Vec<u32> {
    match TensorType::of_word(storage.name()) {
        Some(tensor_type) => {
            let mut values = Vec::new();
            tensor_type.decode(blocks, &mut values);
            values.into_iter().map(f32::to_bits).collect()
        }
        None => storage.decode(&words(storage, blocks)),
    }
}
