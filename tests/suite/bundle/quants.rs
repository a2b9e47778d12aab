//! Blocks decode to the bits of gguf-py (golden/quants.*).

use std::collections::BTreeMap;

use serde::Deserialize;
use tabtune::bundle::{FileFormat, dequantise, inspect};
use tabtune::formats::{GgufFile, MemorySource};

#[derive(Deserialize)]
struct Golden {
    sha256: String,
    first_bits: Vec<u32>,
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Line 36 of tests/suite/portable/README.md: the generated blocks of every type.
#[test]
fn blocks_decode_to_the_bits_of_gguf_py() {
    let read = |name: &str| {
        std::fs::read(format!("{}/golden/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    };
    let goldens: BTreeMap<String, Golden> = serde_json::from_slice(&read("quants.json")).unwrap();
    let source = MemorySource::new("quants.gguf", read("quants.gguf"));
    let file = GgufFile::open(&source).unwrap();
    let mut decoded = Vec::new();
    for tensor in &file.tensors {
        let golden = &goldens[&tensor.name];
        let bits = |v: f32| if v.is_nan() { 0x7fc0_0000 } else { v.to_bits() };
        let words: Vec<u32> = dequantise(&source, tensor)
            .unwrap()
            .into_iter()
            .map(bits)
            .collect();
        assert_eq!(words[..4], golden.first_bits, "{}", tensor.name);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(sha256(&bytes), golden.sha256, "{}", tensor.name);
        decoded.push(tensor.dtype.clone());
    }
    decoded.dedup();
    assert_eq!(decoded.len(), 23, "{decoded:?}");
}

/// Covers every type, wherever its blocks have their scales: blocks of the golden file, and blocks whose bytes are all halves that are NaN.
#[test]
fn values_that_are_no_numbers_are_counted_in_blocks() {
    let golden =
        std::fs::read(format!("{}/golden/quants.gguf", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let file = GgufFile::open(&MemorySource::new("quants.gguf", golden.clone())).unwrap();
    let mut odd = golden.clone();
    for tensor in &file.tensors {
        let (begin, bytes) = (
            usize::try_from(tensor.begin).unwrap(),
            usize::try_from(tensor.bytes.unwrap()).unwrap(),
        );
        let (half, end) = (begin + bytes / 2, begin + bytes);
        odd[half..end].fill(0x7e);
    }
    let mut types_with_such = 0;
    for bytes in [golden, odd] {
        let source = MemorySource::new("quants.gguf", bytes);
        let counted = inspect(&source, Some(FileFormat::Gguf), || Ok(vec![]), true).non_finite;
        for tensor in &file.tensors {
            let wanted = dequantise(&source, tensor)
                .unwrap()
                .into_iter()
                .filter(|value| !value.is_finite())
                .count() as u64;
            assert_eq!(
                counted.get(&tensor.name).copied().unwrap_or(0),
                wanted,
                "{}",
                tensor.name
            );
            types_with_such += u32::from(wanted > 0);
        }
    }
    assert!(types_with_such > 20, "{types_with_such}");
}
