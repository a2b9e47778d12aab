//! Target: decoders of blocks.

use tabtune::bundle::dequantise;
use tabtune::formats::{GgmlType, GgufFile, MemorySource};

use super::super::mutation::{Random, mutated};
use super::Target;
use crate::hostile::rows::{gg, tensor};

/// Lists the types that have blocks.
fn block_types() -> Vec<(u32, u64, u64)> {
    (0..64)
        .filter_map(|id| {
            GgmlType::from_id(id)
                .block
                .filter(|block| block.0 > 1)
                .map(|(elements, bytes)| (id, elements, bytes))
        })
        .collect()
}

/// Decodes whole blocks of a type, with the same bits for every NaN.
fn decoded(id: u32, elements: u64, data: &[u8], count: u64) -> Vec<u32> {
    let mut bytes = gg(
        &[],
        &[tensor("t", &[elements * count], id, 0)],
        data.len().next_multiple_of(32),
    );
    let start = bytes.len() - data.len().next_multiple_of(32);
    bytes[start..start + data.len()].copy_from_slice(data);
    let source = MemorySource::new("f", bytes);
    let values = dequantise(&source, &GgufFile::open(&source).unwrap().tensors[0]).unwrap();
    values
        .into_iter()
        .map(|value| {
            if value.is_nan() {
                f32::NAN.to_bits()
            } else {
                value.to_bits()
            }
        })
        .collect()
}

/// The first byte chooses a type, the others are blocks. There must be as many values as the type says, the same for a block at any position.
fn blocks_answer(file: &[u8]) -> String {
    let types = block_types();
    let Some((choice, data)) = file.split_first() else {
        return "empty".into();
    };
    let (id, elements, bytes) = types[usize::from(*choice) % types.len()];
    let count = data.len() as u64 / bytes;
    if count == 0 {
        return format!("{id} none");
    }
    let data = &data[..(count * bytes) as usize];
    let whole = decoded(id, elements, data, count);
    assert_eq!(whole.len() as u64, elements * count);
    let last = decoded(id, elements, &data[data.len() - bytes as usize..], 1);
    assert_eq!(whole[whole.len() - elements as usize..], last);
    let finite = whole.iter().all(|bits| f32::from_bits(*bits).is_finite());
    format!("{id} {count} {finite}")
}

fn block_seeds() -> Vec<Vec<u8>> {
    let mut random = Random(2);
    let of = |choice: usize, bytes: u64, random: &mut Random| {
        let blocks = 1 + random.below(3) as u64;
        [
            vec![choice as u8],
            (0..bytes * blocks).map(|_| random.word() as u8).collect(),
        ]
        .concat()
    };
    block_types()
        .iter()
        .enumerate()
        .map(|(choice, (_, _, bytes))| of(choice, *bytes, &mut random))
        .collect()
}

/// Makes mostly new random bytes, because decoders have no grammar.
fn new_blocks(random: &mut Random, files: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    let mut file = mutated(random, files, words);
    file.truncate(1 << 10);
    if random.below(2) == 0 {
        file.iter_mut()
            .skip(1)
            .for_each(|byte| *byte = random.word() as u8);
    }
    file
}

pub const BLOCKS: Target = Target {
    name: "block-decoders",
    seeds: block_seeds,
    words: &["\0", "\u{7f}"],
    change: new_blocks,
    answer: blocks_answer,
    answers: 800,
};
