//! The state dict itself: its checks, its digests, and tensors in every place.

use std::collections::BTreeMap;
use std::rc::Rc;

use burn::tensor::{DType, Tensor as DeviceTensor, TensorData};
use half::{bf16, f16};
use tabtune::formats::{Digest, MemorySource};
use tabtune::state::{Bytes, Identity, PortableModelStateDict, Reordering, SourceWord, Tensor};
use tabtune_tests::{block_on, cpu};

use super::state_g::{plain, state_g, told, vectors};

#[test]
fn everything_wrong_is_listed() {
    let entry = |key: &str, dtype: &str, shape: &[u64], bytes: usize| {
        Tensor::of_name(key, dtype, shape, Bytes::host(vec![0; bytes]))
    };
    let tensors = BTreeMap::from([
        ("a".to_string(), entry("b", "F32", &[1], 4)),
        ("c".to_string(), entry("c", "F32", &[3], 13)),
        ("d".to_string(), entry("d", "F12", &[3], 12)),
        ("e".to_string(), entry("e", "GGML:Q4_0", &[33], 18)),
        ("f".to_string(), entry("f", "GGML:Q4_0", &[32], 18)),
        ("g".to_string(), entry("g", "F4", &[4], 2)),
        ("h".to_string(), entry("h", "F32", &[1 << 62, 4], 0)),
        ("i".repeat(1_025), entry(&"i".repeat(1_025), "F32", &[], 4)),
        ("j:m".to_string(), entry("j:m", "F32", &[], 4)),
    ]);
    let found = told(PortableModelStateDict::new(
        Identity::default(),
        SourceWord::Tabtune,
        tensors,
        Vec::new(),
    ));
    let codes: Vec<_> = found
        .iter()
        .map(|(code, subject)| (*code, &subject[..1]))
        .collect();
    let expected = [
        ("state.key.mismatch", "a"),
        ("state.key.mismatch", "i"),
        ("state.tensor.length", "c"),
        ("state.tensor.length", "d"),
        ("state.tensor.length", "h"),
        ("state.tensor.block-row", "e"),
        ("state.tensor.orphan", "j"),
    ];
    assert_eq!(codes, expected);
}

#[test]
fn a_step_in_memory_is_compared_with_its_group() {
    let mut tensors = state_g().tensors().clone();
    let step = tensors.get_mut("embed.weight:step").unwrap();
    *step = step.clone().with_bytes(Bytes::host(4u64.to_le_bytes()));
    let answer = PortableModelStateDict::new(
        Identity::default(),
        SourceWord::Tabtune,
        tensors,
        state_g().groups().to_vec(),
    );
    assert_eq!(told(answer)[0].0, "state.step.range");
}

#[test]
fn digests_of_state_g_are_those_of_the_vectors() {
    let found = block_on(state_g().digests()).unwrap();
    let vector = &vectors()["vector2"];
    for (name, digest) in [
        ("weights", found.weights),
        ("optimizer", found.optimizer),
        ("assignment", found.assignment),
        ("state", found.state),
    ] {
        assert_eq!(
            vector[format!("{name}_digest")],
            digest.to_string(),
            "{name}"
        );
    }
    assert_eq!(block_on(state_g().weights_digest()).unwrap(), found.weights);
}

/// Part of line 28 of ./README.md: the end of a name is part of the digest.
#[test]
fn names_cannot_be_moved_between_tensors() {
    let digest = |a: &str, b: &str| {
        block_on(plain(&[(a, "U8", &[1], vec![1]), (b, "U8", &[1], vec![2])]).digests())
            .unwrap()
            .weights
    };
    assert_ne!(digest("a|b", "c"), digest("a", "b|c"));
}

#[test]
fn values_are_widened() {
    let mut q4 = f16::from_f32(0.5).to_le_bytes().to_vec();
    q4.extend((0..16).map(|n: u8| n | (15 - n) << 4));
    let state = plain(&[
        (
            "a",
            "BF16",
            &[2],
            [bf16::from_f32(1.5), bf16::NEG_INFINITY]
                .iter()
                .flat_map(|v| v.to_le_bytes())
                .collect(),
        ),
        ("b", "F64", &[1], 0.1f64.to_le_bytes().to_vec()),
        ("c", "GGML:Q4_0", &[32], q4),
        ("d", "I32", &[1], vec![0; 4]),
    ]);
    let dense = |key: &str| block_on(state.dense_f32(key));
    assert_eq!(dense("a").unwrap(), [1.5, f32::NEG_INFINITY]);
    assert_eq!(dense("b").unwrap(), [0.1f64 as f32]);
    // Element j is (low nibble of byte j - 8) d, element j + 16 (high nibble - 8) d.
    let low = (0..16u8).map(|n| (f32::from(n) - 8.0) * 0.5);
    let high = (0..16u8).map(|n| (f32::from(15 - n) - 8.0) * 0.5);
    assert_eq!(dense("c").unwrap(), low.chain(high).collect::<Vec<_>>());
    assert_eq!(told(dense("d")), [("model.tensor.dtype", "d".to_string())]);
    assert_eq!(told(dense("x")), [("plan.tensor.unknown", "x".to_string())]);
}

#[test]
fn a_tensor_has_the_same_bytes_wherever_they_are() {
    let values: Vec<f32> = (0..4099).map(|n| (n as f32).sin()).collect();
    let stored: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let mut file = vec![7; 5];
    file.extend(&stored);
    let device = &cpu().inner();
    let on_device = |dtype| {
        DeviceTensor::<1>::from_data(TensorData::from(&values[..]), (device, DType::F32))
            .cast(dtype)
    };
    let halves: Vec<u8> = values
        .iter()
        .flat_map(|value| bf16::from_f32(*value).to_le_bytes())
        .collect();
    let source = Rc::new(MemorySource::new("f", file));
    for (place, dtype, bytes) in [
        (Bytes::host(stored.clone()), "F32", &stored),
        (
            Bytes::of_source(source, 5, stored.len() as u64),
            "F32",
            &stored,
        ),
        (Bytes::device(on_device(DType::F32)), "F32", &stored),
        (Bytes::device(on_device(DType::BF16)), "BF16", &halves),
    ] {
        let tensor = Tensor::parameter("w", dtype, &[4099], place);
        assert_eq!(tensor.len(), bytes.len() as u64);
        let found = block_on(tensor.all_bytes()).unwrap();
        assert_eq!(&found[..], &bytes[..], "{tensor:?}");
        let digest = block_on(tensor.digest()).unwrap();
        assert_eq!(digest, Digest::of(bytes), "{tensor:?}");
    }
}

#[test]
fn pieces_are_at_most_8_mib() {
    let bytes: Vec<u8> = (0..20u32 << 20).map(|n| (n / 997) as u8).collect();
    let source = Rc::new(MemorySource::new("f", bytes.clone()));
    let place = Bytes::of_source(source, 0, bytes.len() as u64);
    let tensor = Tensor::parameter("w", "U8", &[bytes.len() as u64], place);
    let (mut sizes, mut joined) = (Vec::new(), Vec::new());
    let each = |piece: &[u8]| {
        sizes.push(piece.len());
        joined.extend_from_slice(piece);
        Ok(())
    };
    block_on(tensor.for_each_piece(each)).unwrap();
    assert_eq!(sizes, [8 << 20, 8 << 20, 4 << 20]);
    assert!(joined == bytes);
}

/// Rows 2j + p of the file become rows p·H/2 + j of each head; whole rows move, so blocks are unchanged.
#[test]
fn paired_rows_are_put_into_hugging_faces_order() {
    // A head of 6 MiB is longer than one read; the case has three of them.
    for (heads, head_rows, row) in [(1, 2, 1), (3, 8, 18), (2, 64, 144), (3, 2, 3 << 20)] {
        let rows = heads * head_rows;
        let stored: Vec<u8> = (0..rows * row)
            .map(|n| (n / row * 37 + n % row % 251) as u8)
            .collect();
        let mut expected = Vec::new();
        for head in 0..heads {
            for half in 0..2 {
                for j in 0..head_rows / 2 {
                    let from = (head * head_rows + 2 * j + half) * row;
                    expected.extend_from_slice(&stored[from..from + row]);
                }
            }
        }
        let mut file = vec![0; 3];
        file.extend(&stored);
        let source = Rc::new(MemorySource::new("f", file));
        let read = |order| {
            let place = Bytes::ordered(source.clone(), 3, stored.len() as u64, order);
            let tensor = Tensor::parameter("w", "U8", &[rows as u64, 1], place);
            block_on(tensor.all_bytes()).unwrap()
        };
        assert!(
            read(Reordering::PairedRows(heads))[..] == expected[..],
            "{heads} {head_rows} {row}"
        );
        assert!(read(Reordering::PairedRows(rows))[..] == stored[..]);
    }
}
