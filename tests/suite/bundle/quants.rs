//! Blocks decode to the bits of gguf-py (golden/quants.*).

use std::collections::BTreeMap;

use serde::Deserialize;
use tabtune::bundle::{GgufFile, MemorySource, dequantise};

#[derive(Deserialize)]
struct Golden {
    sha256: String,
    first_bits: Vec<u32>,
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// line 36: the generated blocks of every type.
#[test]
fn blocks_decode_to_the_bits_of_gguf_py() {
    let read = |name: &str| std::fs::read(format!("{}/golden/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let goldens: BTreeMap<String, Golden> = serde_json::from_slice(&read("quants.json")).unwrap();
    let source = MemorySource::new("quants.gguf", read("quants.gguf"));
    let file = GgufFile::open(&source).unwrap();
    let mut decoded = Vec::new();
    for tensor in &file.tensors {
        let golden = &goldens[&tensor.name];
        let bits = |v: f32| if v.is_nan() { 0x7fc0_0000 } else { v.to_bits() };
        let words: Vec<u32> = dequantise(&source, tensor).unwrap().into_iter().map(bits).collect();
        assert_eq!(words[..4], golden.first_bits, "{}", tensor.name);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(sha256(&bytes), golden.sha256, "{}", tensor.name);
        decoded.push(tensor.ggml_type.dtype());
    }
    decoded.dedup();
    assert_eq!(decoded.len(), 23, "{decoded:?}");
}
