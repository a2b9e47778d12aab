//! Target: the header of a GGUF file.

use tabtune::bundle::FileFormat;
use tabtune::formats::GgmlType;

use super::super::mutation::{Random, mutated};
use super::{Target, hostile, in_short, inspected};
use crate::hostile::rows::{array, gg, key, tensor, text};

const GGUF_WORDS: [&str; 10] = [
    "GGUF\u{3}\0\0\0",
    "general.alignment",
    "split.count",
    "split.no",
    "general.architecture",
    "\u{8}\0\0\0",
    "\u{9}\0\0\0",
    "\u{1}\0\0\0\0\0\0\0t",
    "\0\0\0\0\0\0\0\0",
    "weight",
];

/// Makes a file with keys of all types and one to three tensors of any types.
fn gguf_made(random: &mut Random) -> Vec<u8> {
    let widths = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];
    let mut keys = Vec::new();
    for n in 0..random.below(5) {
        let kind = random.below(13);
        let scalar = |random: &mut Random, kind: usize| match kind {
            7 => vec![random.below(2) as u8],
            8 => text(b"word"),
            _ => random.word().to_le_bytes()[..widths[kind]].to_vec(),
        };
        let value = if kind == 9 {
            let (item, count) = (*random.of(&[0, 4, 6, 7, 8, 10]), random.below(4));
            let items: Vec<u8> = (0..count).flat_map(|_| scalar(random, item)).collect();
            array(item as u32, count as u64, &items)
        } else {
            scalar(random, kind)
        };
        keys.push(key(&format!("k.{n}"), kind as u32, &value));
    }
    let (mut offset, mut tensors) = (0, Vec::new());
    for n in 0..1 + random.below(3) {
        let kind = random.below(43) as u32;
        let Some((elements, bytes)) = GgmlType::from_id(kind).block else {
            continue;
        };
        let (blocks, rows) = (1 + random.below(2) as u64, 1 + random.below(2) as u64);
        tensors.push(tensor(
            &format!("blk.{n}.weight"),
            &[elements * blocks, rows],
            kind,
            offset,
        ));
        offset += (bytes * blocks * rows).next_multiple_of(32);
    }
    let mut file = gg(&keys, &tensors, offset as usize);
    let start = file.len() - offset as usize;
    // Padding between tensors and after the last one must stay zero, so the last 32 bytes are not changed.
    for at in start..file.len().saturating_sub(32) {
        file[at] = random.word() as u8;
    }
    file
}

fn gguf_seeds() -> Vec<Vec<u8>> {
    let mut random = Random(1);
    let mut seeds = hostile("gguf");
    seeds.extend((0..60).map(|_| gguf_made(&mut random)));
    seeds
}

pub const GGUF: Target = Target {
    name: "gguf-header",
    seeds: gguf_seeds,
    words: &GGUF_WORDS,
    change: mutated,
    answer: |file| in_short(&inspected(FileFormat::Gguf, file)),
    answers: 45,
};
