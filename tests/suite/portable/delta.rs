//! Exact deltas: derived, written, read, applied and removed.

use std::rc::Rc;

use serde_json::json;
use tabtune::bundle::{FileStream, verify_files};
use tabtune::formats::{MemorySource, SafetensorsFile};
use tabtune::portable::{DeltaUse, ModelAdapterDelta, derive_delta, use_delta};
use tabtune::state::{Bytes, PortableModelStateDict};
use tabtune_tests::block_on;

use super::state_g::{assert_same, plain, sources, state_g, told, written};

pub fn with(state: &PortableModelStateDict, key: &str, bytes: Vec<u8>) -> PortableModelStateDict {
    let mut tensors = state.tensors().clone();
    let tensor = tensors.get_mut(key).unwrap();
    *tensor = tensor.clone().with_bytes(Bytes::host(bytes));
    PortableModelStateDict::new(
        state.identity.clone(),
        state.source_format,
        tensors,
        state.groups().to_vec(),
    )
    .unwrap()
}

pub fn file_of(stream: FileStream) -> Rc<MemorySource> {
    let (name, bytes) = written(stream).remove(0);
    Rc::new(MemorySource::new(name, bytes))
}

fn f32s(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// Lines 5 and 19 of ./README.md.
#[test]
fn a_delta_on_state_g() {
    let base = state_g();
    let target = with(&base, "head.weight", f32s(&[1.0, -0.75]));
    let delta = block_on(base.derive_adapter_delta(&target, "head")).unwrap();
    assert_eq!(delta.changed().collect::<Vec<_>>(), ["head.weight"]);
    let file = file_of(delta.export().unwrap());
    let header = SafetensorsFile::open(&*file).unwrap();
    let words = &header.tensors[0];
    assert_eq!(
        (words.name.as_str(), words.dtype.as_str(), &words.shape[..]),
        ("head.weight", "U32", &[2][..])
    );
    let digests =
        [&base, &target].map(|state| block_on(state.digests()).unwrap().weights.to_string());
    let record = json!({
        "adapter_id": "head", "base_weights_digest": digests[0], "target_weights_digest": digests[1],
        "tensors": { "head.weight": "F32" }, "version": 1,
    });
    assert_eq!(
        header.metadata.get("tabtune.delta"),
        Some(record.to_string())
    );
    let read = ModelAdapterDelta::open(file).unwrap();
    for delta in [&delta, &read] {
        let applied = block_on(base.apply_adapter_delta(delta, true)).unwrap();
        assert_same(&applied, &target);
        assert_same(
            &block_on(applied.remove_adapter_delta(delta, true)).unwrap(),
            &base,
        );
        // Without the optimizer's state, groups stay, and their members have no state.
        let weights = block_on(base.apply_adapter_delta(delta, false)).unwrap();
        assert_eq!(
            block_on(weights.weights_digest()).unwrap(),
            delta.target_weights_digest
        );
        assert_eq!(weights.tensors().len(), 2);
        assert_eq!(
            weights
                .groups()
                .iter()
                .map(|group| group.members[0].state.len())
                .collect::<Vec<_>>(),
            [0, 0]
        );
    }
}

/// Line 41 of ./README.md: another base is refused; changes of the optimizer in the meantime do not matter.
#[test]
fn only_the_weights_bind() {
    let base = state_g();
    let target = with(&base, "head.weight", f32s(&[1.0, -0.75]));
    let delta = block_on(base.derive_adapter_delta(&target, "head")).unwrap();
    let stepped = with(
        &with(&base, "head.weight:m", f32s(&[9.0, 9.0])),
        "head.weight:step",
        5u64.to_le_bytes().to_vec(),
    );
    let applied = block_on(stepped.apply_adapter_delta(&delta, true)).unwrap();
    assert_eq!(
        block_on(applied.weights_digest()).unwrap(),
        block_on(target.weights_digest()).unwrap()
    );
    let other = with(&base, "embed.weight", f32s(&[0.0; 4]));
    assert_eq!(
        told(block_on(other.apply_adapter_delta(&delta, true)))[0].0,
        "delta.base.mismatch"
    );
    assert_eq!(
        told(block_on(target.apply_adapter_delta(&delta, true)))[0].0,
        "delta.base.mismatch"
    );
    assert_eq!(
        told(block_on(base.remove_adapter_delta(&delta, true)))[0].0,
        "delta.target.mismatch"
    );
    // A flipped bit of the words gives another result.
    let (_, mut bytes) = written(delta.export().unwrap()).remove(0);
    *bytes.last_mut().unwrap() ^= 1;
    let flipped = ModelAdapterDelta::open(Rc::new(MemorySource::new("d", bytes))).unwrap();
    assert_eq!(
        told(block_on(base.apply_adapter_delta(&flipped, true)))[0].0,
        "delta.target.mismatch"
    );
    assert_eq!(
        told(block_on(target.remove_adapter_delta(&flipped, true)))[0].0,
        "delta.base.mismatch"
    );
}

#[test]
fn both_models_have_the_same_tensors() {
    let base = plain(&[
        ("a", "F32", &[1], vec![0; 4]),
        ("b", "F32", &[1], vec![0; 4]),
        ("c", "F32", &[2], vec![0; 8]),
    ]);
    let other = plain(&[
        ("aa", "F32", &[1], vec![0; 4]),
        ("b", "F32", &[1], vec![0; 4]),
        ("c", "F32", &[2], vec![0; 8]),
    ]);
    let found = told(block_on(base.derive_adapter_delta(&other, "x")));
    assert_eq!(
        found,
        [
            ("delta.keys.differ", "a".to_string()),
            ("delta.keys.differ", "aa".to_string())
        ]
    );
    let other = plain(&[
        ("a", "F32", &[1], vec![0; 4]),
        ("b", "I32", &[1], vec![0; 4]),
        ("c", "F32", &[2, 1], vec![0; 8]),
    ]);
    let found = told(block_on(base.derive_adapter_delta(&other, "x")));
    assert_eq!(
        found,
        [
            ("delta.tensor.mismatch", "b".to_string()),
            ("delta.tensor.mismatch", "c".to_string())
        ]
    );
    let same = block_on(base.derive_adapter_delta(&base, "x")).unwrap();
    assert_eq!(same.changed().count(), 0);
    assert_same(
        &block_on(base.apply_adapter_delta(
            &ModelAdapterDelta::open(file_of(same.export().unwrap())).unwrap(),
            false,
        ))
        .unwrap(),
        &base,
    );
}

#[test]
fn a_file_is_a_delta_or_refused() {
    let delta = |text: &str| {
        let header =
            json!({ "__metadata__": { "tabtune.delta": text }, "w": { "dtype": "U8", "shape": [1], "data_offsets": [0, 1] } }).to_string();
        let bytes = [
            &(header.len() as u64).to_le_bytes()[..],
            header.as_bytes(),
            &[0],
        ]
        .concat();
        told(ModelAdapterDelta::open(Rc::new(MemorySource::new(
            "d", bytes,
        ))))[0]
            .0
    };
    let record = |version: u64, tensors: serde_json::Value| {
        let zero = "0".repeat(64);
        json!({ "version": version, "adapter_id": "x", "base_weights_digest": zero, "target_weights_digest": zero, "tensors": tensors })
            .to_string()
    };
    assert_eq!(delta("[]"), "manifest.json");
    assert_eq!(delta("{\"version\":1}"), "manifest.json");
    assert_eq!(delta(&record(2, json!({ "w": "U8" }))), "manifest.version");
    assert_eq!(delta(&record(0, json!({ "w": "U8" }))), "manifest.version");
    assert_eq!(delta(&record(1, json!({}))), "manifest.tensor.unlisted");
    assert_eq!(
        delta(&record(1, json!({ "w": "U8", "x": "U8" }))),
        "manifest.tensor.missing"
    );
}

/// Covers words across the border of two pieces of a file, after a first tensor of odd length.
#[test]
fn words_are_whole_across_pieces() {
    let count = (9 << 20) / 8;
    let long = |factor: u64| {
        (0..count as u64)
            .flat_map(|n| (n.wrapping_mul(factor) << 13).to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let state = |odd: u8, factor| {
        plain(&[
            ("a", "U8", &[3], vec![odd; 3]),
            ("b", "F64", &[count as u64], long(factor)),
        ])
    };
    let (base, target) = (
        state(200, 0x9e37_79b9_7f4a_7c15),
        state(100, 0xc2b2_ae3d_27d4_eb4f),
    );
    let delta = block_on(base.derive_adapter_delta(&target, "x")).unwrap();
    let read = ModelAdapterDelta::open(file_of(delta.export().unwrap())).unwrap();
    let applied = block_on(base.apply_adapter_delta(&read, false)).unwrap();
    let whole = |state: &PortableModelStateDict| {
        written(block_on(state.export_safetensors(&state.manifest())).unwrap())
    };
    assert!(whole(&applied) == whole(&target));
}

/// A model in files keeps its manifest and its header; its optimizer's state is left out.
#[test]
fn a_model_of_files_keeps_its_manifest() {
    let base = state_g();
    let target = with(&base, "head.weight", f32s(&[1.0, f32::NAN]));
    let [before, after] = [&base, &target]
        .map(|state| written(block_on(state.export_safetensors(&state.manifest())).unwrap()));
    let made = block_on(derive_delta(
        &sources(&before),
        &sources(&after),
        "head",
        None,
    ))
    .unwrap();
    assert_eq!(made.report.changed, ["head.weight"]);
    let delta = file_of(made.stream);
    for (way, model, result) in [
        (DeltaUse::Apply, &before, &after),
        (DeltaUse::Remove, &after, &before),
    ] {
        let used = block_on(use_delta(&sources(model), delta.clone(), way, None)).unwrap();
        let files = written(used.stream);
        assert_eq!(files[0], result[0], "{way:?}");
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["model.safetensors", "tabtune.receipt.json"]);
        let verified = verify_files(&sources(&files), None).unwrap();
        assert!(verified.ok, "{verified:?}");
    }
    for file in ["x.gguf", "x"] {
        let wrong = block_on(use_delta(
            &sources(&before),
            delta.clone(),
            DeltaUse::Apply,
            Some(file),
        ));
        assert_eq!(wrong.unwrap_err().code(), "config.invalid", "{file}");
    }
}
