//! Exact deltas over random bits of every width, including odd ones. `TABTUNE_DELTAS` is the number of cases, 500 by default.

use std::collections::BTreeMap;
use std::time::Instant;

use tabtune::formats::{MemorySource, SafetensorsFile};
use tabtune::portable::ModelAdapterDelta;
use tabtune::state::{Bytes, Identity, PortableModelStateDict, SourceWord, Tensor};
use tabtune_tests::block_on;

use super::delta::{file_of, with};
use super::state_g::{assert_same, told, written};
use crate::fuzz::mutation::Random;

/// A dtype: bytes of its words in a delta, its shape over [`BYTES`] bytes, and the bits of the exponent in each of its numbers.
struct Kind {
    dtype: &'static str,
    width: usize,
    shape: &'static [u64],
    number: usize,
    exponent: u64,
}

const fn kind(
    dtype: &'static str,
    width: usize,
    shape: &'static [u64],
    number: usize,
    exponent: u64,
) -> Kind {
    Kind {
        dtype,
        width,
        shape,
        number,
        exponent,
    }
}

const BYTES: usize = 72;
const KINDS: [Kind; 16] = [
    kind("BF16", 2, &[6, 6], 2, 0x7f80),
    kind("BOOL", 1, &[72], 1, 0),
    kind("C64", 8, &[9], 4, 0x7f80_0000),
    kind("F16", 2, &[36], 2, 0x7c00),
    kind("F32", 4, &[18, 1], 4, 0x7f80_0000),
    kind("F4", 1, &[144], 1, 0),
    kind("F64", 8, &[9], 8, 0x7ff0_0000_0000_0000),
    kind("F6_E2M3", 1, &[96], 1, 0),
    kind("F8_E4M3", 1, &[72], 1, 0x78),
    kind("F8_E5M2", 1, &[72], 1, 0x7c),
    kind("GGML:Q4_0", 1, &[4, 32], 2, 0x7c00),
    kind("I16", 2, &[36], 2, 0),
    kind("I32", 4, &[18], 4, 0),
    kind("I64", 8, &[9], 8, 0),
    kind("U64", 8, &[9], 8, 0),
    kind("U8", 1, &[72], 1, 0),
];

/// Returns the bits of a number: any, a NaN with a payload, an infinity, a zero, a subnormal number, or the last before infinity, of either sign.
fn number(random: &mut Random, kind: &Kind) -> u64 {
    let bits = 8 * kind.number as u32;
    let all = u64::MAX >> (64 - bits);
    let (any, sign) = (random.word() & all, random.word() & (1 << (bits - 1)));
    let fraction = !kind.exponent & (all >> 1);
    match random.below(if kind.exponent == 0 { 2 } else { 8 }) {
        0 => any,
        1 => [0, all, 1, all >> 1, (all >> 1) + 1][random.below(5)],
        2 | 3 => kind.exponent | sign | (any & fraction).max(1),
        4 => kind.exponent | sign,
        5 => sign,
        6 => sign | (any & fraction),
        _ => sign | ((kind.exponent << 1) & kind.exponent) | fraction,
    }
}

fn bytes(random: &mut Random, kind: &Kind) -> Vec<u8> {
    if kind.dtype == "BOOL" {
        return (0..BYTES).map(|_| (random.word() & 1) as u8).collect();
    }
    (0..BYTES / kind.number)
        .flat_map(|_| number(random, kind).to_le_bytes()[..kind.number].to_vec())
        .collect()
}

/// Returns the bytes of a target: those of the base, new ones, or new ones in some of its numbers.
fn changed(random: &mut Random, kind: &Kind, base: &[u8]) -> Vec<u8> {
    let other = bytes(random, kind);
    match random.below(4) {
        0 => base.to_vec(),
        1 => other,
        _ => {
            let mut mixed = base.to_vec();
            for (of_base, of_other) in mixed.chunks_mut(kind.number).zip(other.chunks(kind.number))
            {
                if random.below(2) == 0 {
                    of_base.copy_from_slice(of_other);
                }
            }
            mixed
        }
    }
}

fn state(values: &[Vec<u8>]) -> PortableModelStateDict {
    let entry = |(kind, bytes): (&Kind, &Vec<u8>)| {
        let bytes = Bytes::host(bytes.clone());
        let tensor = Tensor::parameter(kind.dtype, kind.dtype, kind.shape, bytes);
        (kind.dtype.to_string(), tensor)
    };
    let tensors: BTreeMap<_, _> = KINDS.iter().zip(values).map(entry).collect();
    PortableModelStateDict::new(
        Identity::default(),
        SourceWord::Tabtune,
        tensors,
        Vec::new(),
    )
    .unwrap()
}

/// Computes target minus base for each word, in 128 bits and then modulo 2^(8 width).
fn difference(width: usize, base: &[u8], target: &[u8]) -> Vec<u8> {
    let word = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0i128, |sum, byte| sum * 256 + i128::from(*byte))
    };
    let words = base.chunks(width).zip(target.chunks(width));
    words
        .flat_map(|(base, target)| {
            (word(target) - word(base))
                .rem_euclid(1 << (8 * width))
                .to_le_bytes()[..width]
                .to_vec()
        })
        .collect()
}

/// Line 41 of ./README.md: the words of a delta follow the formula, applying it gives the target, removing it the base, and another base is refused.
#[test]
fn apply_then_remove_is_the_identity() {
    let count: u64 = std::env::var("TABTUNE_DELTAS").map_or(500, |count| {
        count.parse().expect("TABTUNE_DELTAS is a number")
    });
    let (mut random, start, mut compared) = (Random(9), Instant::now(), 0u64);
    for case in 0..count {
        let before: Vec<Vec<u8>> = KINDS.iter().map(|kind| bytes(&mut random, kind)).collect();
        let after: Vec<Vec<u8>> = KINDS
            .iter()
            .zip(&before)
            .map(|(kind, base)| changed(&mut random, kind, base))
            .collect();
        let (base, target) = (state(&before), state(&after));
        let delta = block_on(base.derive_adapter_delta(&target, "x")).unwrap();
        let (name, file) = written(delta.export().unwrap()).remove(0);
        let source = MemorySource::new(name, file.clone());
        let header = SafetensorsFile::open(&source).unwrap();
        let differing = KINDS
            .iter()
            .zip(before.iter().zip(&after))
            .filter(|(_, (base, target))| base != target);
        let expected: BTreeMap<&str, Vec<u8>> = differing
            .map(|(kind, (base, target))| (kind.dtype, difference(kind.width, base, target)))
            .collect();
        let found = header.tensors.iter().map(|tensor| {
            (
                tensor.name.as_str(),
                file[tensor.begin as usize..tensor.end() as usize].to_vec(),
            )
        });
        assert_eq!(found.collect::<BTreeMap<_, _>>(), expected, "case {case}");
        compared += expected
            .values()
            .map(|bytes| bytes.len() as u64)
            .sum::<u64>();

        let read = ModelAdapterDelta::open(file_of(delta.export().unwrap())).unwrap();
        let applied = block_on(base.apply_adapter_delta(&read, false)).unwrap();
        assert_same(&applied, &target);
        assert_same(
            &block_on(applied.remove_adapter_delta(&read, false)).unwrap(),
            &base,
        );
        // One other bit in any tensor except those of single bits makes another base.
        let place = *random.of(&[0, 2, 3, 4, 6, 8, 9, 10, 11, 12, 13, 14, 15]);
        let mut other = before[place].clone();
        other[random.below(BYTES)] ^= 1 << random.below(8);
        let refused = told(block_on(
            with(&base, KINDS[place].dtype, other).apply_adapter_delta(&read, false),
        ));
        assert_eq!(
            refused,
            [("delta.base.mismatch", "weights".to_string())],
            "case {case}"
        );
    }
    println!(
        "{count} deltas, {compared} bytes that changed, {:.1} s",
        start.elapsed().as_secs_f64()
    );
}
