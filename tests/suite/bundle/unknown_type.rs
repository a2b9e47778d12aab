//! A GGUF file with a tensor of a type that ggml does not have.

use std::rc::Rc;

use tabtune::Error;
use tabtune::bundle::{FileFormat, inspect, open_bundle};
use tabtune::formats::{ByteSource, MemorySource};
use tabtune::portable::PortableModelBundle;
use tabtune::state::{
    PortableModelImportRequest, PortableTensorImportSelection, TensorMaterializationPolicy,
};
use tabtune_tests::block_on;

use super::files::{file, ramp};
use crate::hostile::rows::{gg, key, tensor, text};

const UNKNOWN: &str = "blk.0.attn_q.weight";

/// Makes a part of a Llama: an embedding [3, 8], a matrix [8, 8] of type 99 in 64 bytes, a norm [8].
fn with_unknown() -> Vec<u8> {
    let counts = [
        ("llama.context_length", 16u32),
        ("llama.embedding_length", 8),
        ("llama.block_count", 1),
        ("llama.feed_forward_length", 4),
        ("llama.attention.head_count", 2),
    ];
    let mut keys = vec![key("general.architecture", 8, &text(b"llama"))];
    keys.extend(counts.map(|(name, count)| key(name, 4, &count.to_le_bytes())));
    keys.push(key(
        "llama.attention.layer_norm_rms_epsilon",
        6,
        &1e-5f32.to_le_bytes(),
    ));
    let tensors = [
        tensor("token_embd.weight", &[8, 3], 0, 0),
        tensor(UNKNOWN, &[8, 8], 99, 96),
        tensor("output_norm.weight", &[8], 0, 160),
    ];
    let mut bytes = gg(&keys, &tensors, 0);
    let put = |bytes: &mut Vec<u8>, values: Vec<f32>| {
        values
            .into_iter()
            .for_each(|value| bytes.extend(value.to_le_bytes()))
    };
    put(&mut bytes, ramp(24, 0.0));
    bytes.extend([0xff; 64]);
    put(&mut bytes, ramp(8, 100.0));
    bytes
}

#[track_caller]
fn refused<T>(result: tabtune::Result<T>) -> (&'static str, &'static str, Option<String>) {
    match result {
        Err(Error::Refused(list)) => (list[0].code, list[0].stage, list[0].subject.clone()),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("not refused"),
    }
}

/// Line 35 of tests/suite/portable/README.md: everything is listed, the others are read, and only the use of that tensor is refused.
#[test]
fn line_35_tensor_of_an_unknown_type_is_listed_and_refused_where_it_is_used() {
    let bytes = with_unknown();
    let listed = |read: bool| {
        inspect(
            &MemorySource::new("m.gguf", bytes.clone()),
            Some(FileFormat::Gguf),
            || Ok(vec![]),
            read,
        )
    };
    let report = listed(false);
    assert!(report.ok && report.stage == "ok", "{report:?}");
    let inventory: Vec<_> = report
        .inventory
        .iter()
        .map(|of| (of.name.as_str(), of.dtype.as_str(), &of.shape[..]))
        .collect();
    assert_eq!(
        inventory,
        [
            ("token_embd.weight", "F32", &[3, 8][..]),
            (UNKNOWN, "GGML:99", &[8, 8]),
            ("output_norm.weight", "F32", &[8])
        ]
    );
    let read = listed(true);
    let subject = |name: &str| Some(name.to_string());
    assert_eq!(
        (read.code, read.stage, read.subject),
        (Some("gguf.tensor.type-unknown"), "read", subject(UNKNOWN))
    );
    assert_eq!(read.inventory, report.inventory);

    let bundle = open_bundle(vec![file("m.gguf", bytes.clone())]).unwrap();
    let name = "model.layers.0.self_attn.q_proj.weight";
    assert_eq!(
        bundle.names(),
        ["model.embed_tokens.weight", name, "model.norm.weight"]
    );
    assert_eq!(bundle.shape(name), Some(vec![8, 8]));
    assert_eq!(
        bundle.read_f32("model.embed_tokens.weight").unwrap(),
        ramp(24, 0.0)
    );
    assert_eq!(
        bundle.read_f32("model.norm.weight").unwrap(),
        ramp(8, 100.0)
    );
    assert_eq!(
        refused(bundle.read_f32(name)),
        ("gguf.tensor.type-unknown", "read", subject(UNKNOWN))
    );
}

/// Line 35 of tests/suite/portable/README.md: a plan lists everything, reads the others and refuses that tensor; an import succeeds if it is
/// left out.
#[test]
fn line_35_plan_of_a_file_with_an_unknown_type_gives_the_others() {
    let files: Vec<Rc<dyn ByteSource>> = vec![Rc::new(MemorySource::new("m.gguf", with_unknown()))];
    let deferred = PortableModelImportRequest {
        materialization_policy: TensorMaterializationPolicy::Deferred,
        ..PortableModelImportRequest::default()
    };
    let plan = block_on(PortableModelBundle::plan_gguf_import(&files, deferred)).unwrap();
    assert_eq!(
        (plan.tensor_count(), plan.entries[UNKNOWN].dtype.as_str()),
        (3, "GGML:99")
    );
    let little_endian = |values: Vec<f32>| {
        values
            .into_iter()
            .flat_map(f32::to_le_bytes)
            .collect::<Vec<u8>>()
    };
    let of = |name: &str| block_on(plan.materialize_tensor(name));
    assert_eq!(
        *of("token_embd.weight").unwrap().1,
        *little_endian(ramp(24, 0.0))
    );
    assert_eq!(
        *of("output_norm.weight").unwrap().1,
        *little_endian(ramp(8, 100.0))
    );
    assert_eq!(
        refused(of(UNKNOWN)),
        (
            "gguf.tensor.type-unknown",
            "read",
            Some(UNKNOWN.to_string())
        )
    );
    assert_eq!(
        refused(block_on(plan.materialize_bundle())).0,
        "gguf.tensor.type-unknown"
    );

    let without = PortableModelImportRequest {
        selection: PortableTensorImportSelection {
            exclude_state_keys: [UNKNOWN.to_string()].into(),
            ..PortableTensorImportSelection::default()
        },
        ..PortableModelImportRequest::default()
    };
    let imported = block_on(PortableModelBundle::import_gguf(&files, &without)).unwrap();
    assert_eq!(imported.bundle.state_dict.tensors().len(), 2);
}
