//! A model written back into its base: only trained tensors differ.

use half::{bf16, f16};
use tabtune::Error;
use tabtune::bundle::open_bundle;
use tabtune::config::Precision;
use tabtune::export::GgufTypes;
use tabtune::formats::{FileTensor, GgmlType, GgufFile, GgufValue, MemorySource};
use tabtune::model::Model;
use tabtune::state::Base;
use tabtune_tests::families::Family;
use tabtune_tests::{gguf_families, weights};

use super::{GgufBase, Raise, gguf_patch, golden, goldens, load, open, rewritten, source, written};

fn base(bytes: &[u8]) -> GgufBase {
    GgufBase {
        files: vec![source("m.gguf", bytes.to_vec())],
        recorded: None,
    }
}

fn patched(model: &Model, bytes: &[u8], types: &str) -> Vec<u8> {
    let (name, bytes) = written(gguf_patch(model, base(bytes), "new", types).unwrap());
    assert_eq!(name, "new.gguf");
    bytes
}

fn refused(model: &Model, base: GgufBase) -> Error {
    gguf_patch(model, base, "new", "as-base")
        .map(|_| ())
        .unwrap_err()
}

fn types_of(bytes: &[u8]) -> Vec<(String, String)> {
    let file = GgufFile::open(&MemorySource::new("m.gguf", bytes)).unwrap();
    file.tensors
        .iter()
        .map(|tensor| (tensor.name.clone(), tensor.dtype.clone()))
        .collect()
}

/// Returns the bytes with every matrix and vector converted to another type.
fn converted(bytes: &[u8], kind: &str, convert: impl Fn(f32) -> Vec<u8>) -> Vec<u8> {
    rewritten(bytes, |_, contents| {
        for (record, bytes) in contents
            .iter_mut()
            .filter(|(record, _)| record.shape.len() > 1)
        {
            record.dtype = GgmlType::from_name(kind).unwrap().dtype();
            *bytes = bytes
                .as_chunks()
                .0
                .iter()
                .flat_map(|value| convert(f32::from_le_bytes(*value)))
                .collect();
        }
    })
}

#[test]
fn patch_without_a_change_is_the_base_byte_for_byte() {
    for Family {
        name: family,
        gguf: files,
    } in gguf_families()
    {
        let bundle = open_bundle(goldens(files)).unwrap();
        for precision in [Precision::F32, Precision::Bf16] {
            let model = load(&bundle, precision);
            // Even if types of matrices are requested: none is replaced.
            for types in ["as-base", "f16"] {
                let base = GgufBase {
                    files: goldens(files),
                    recorded: None,
                };
                let (_, bytes) = written(gguf_patch(&model, base, family, types).unwrap());
                if let [file] = files[..] {
                    assert!(bytes == golden(file), "{family}");
                    continue;
                }
                let (first, whole) = (
                    golden(files[0]),
                    GgufFile::open(&MemorySource::new("m.gguf", bytes.clone())).unwrap(),
                );
                assert!(
                    whole
                        .metadata
                        .iter()
                        .all(|(key, _)| !key.starts_with("split."))
                );
                assert!(whole.metadata.iter().all(|(key, value)| {
                    let key = key.as_bytes();
                    first
                        .windows(key.len() + 4 + value.bytes().len())
                        .any(|at| at.starts_with(key) && at.ends_with(value.bytes()))
                }));
                let again = open(&bytes);
                assert_eq!(
                    (again.config.clone(), again.names()),
                    (bundle.config.clone(), bundle.names())
                );
                assert!(again.names().iter().all(|name| again.read_f32(name).unwrap() == bundle.read_f32(name).unwrap()), "{family}");
            }
        }
    }
}

#[test]
fn patch_of_one_tensor_changes_its_bytes_and_no_others() {
    let cases = [
        (
            "llama3.gguf",
            "model.layers.1.self_attn.q_proj.weight",
            "blk.1.attn_q.weight",
        ),
        ("llama3.gguf", "lm_head.weight", "output.weight"),
        (
            "qwen2.gguf",
            "model.layers.0.self_attn.k_proj.bias",
            "blk.0.attn_k.bias",
        ),
        (
            "gpt2.gguf",
            "transformer.h.1.attn.c_attn.weight",
            "blk.1.attn_qkv.weight",
        ),
    ];
    for (file, name, stored) in cases {
        let bytes = golden(file);
        let before = open(&bytes);
        let model = load(&before, Precision::F32).map(&mut Raise(&[name]));
        let found = patched(&model, &bytes, "as-base");
        let tensor = GgufFile::open(&MemorySource::new("m.gguf", bytes.clone()))
            .unwrap()
            .tensor(stored)
            .unwrap()
            .clone();
        let (begin, end) = (
            tensor.begin as usize,
            (tensor.begin + tensor.bytes.unwrap()) as usize,
        );
        assert!(
            found.len() == bytes.len()
                && found[..begin] == bytes[..begin]
                && found[end..] == bytes[end..],
            "{name}"
        );
        let expected: Vec<f32> = before
            .read_f32(name)
            .unwrap()
            .iter()
            .map(|value| value + 0.5)
            .collect();
        assert_eq!(open(&found).read_f32(name).unwrap(), expected, "{name}");
    }
}

#[test]
fn tied_head_that_the_base_has_twice_is_replaced_twice() {
    let bytes = rewritten(&golden("qwen2.gguf"), |_, contents| {
        let (record, bytes) = contents
            .iter()
            .find(|(record, _)| record.name == "token_embd.weight")
            .unwrap()
            .clone();
        contents.push((
            FileTensor {
                name: "output.weight".into(),
                ..record
            },
            bytes,
        ));
    });
    let bundle = open(&bytes);
    assert!(bundle.config.tie_word_embeddings && bundle.warnings[0].code == "model.tied.copy");
    assert!(patched(&load(&bundle, Precision::F32), &bytes, "as-base") == bytes);
    let model = load(&bundle, Precision::F32).map(&mut Raise(&["model.embed_tokens.weight"]));
    let found = open(&patched(&model, &bytes, "as-base"));
    assert_eq!(
        (found.warnings[0].code, found.warnings.len()),
        ("model.tied.copy", 1),
        "both are the same"
    );
    assert_eq!(weights(&load(&found, Precision::F32)), weights(&model));
}

#[test]
fn replaced_tensors_keep_the_type_of_the_base_or_get_the_asked_one() {
    let halves = converted(&golden("llama3.gguf"), "F16", |value| {
        f16::from_f32(value).to_le_bytes().to_vec()
    });
    let brains = converted(&golden("llama3.gguf"), "BF16", |value| {
        bf16::from_f32(value).to_le_bytes().to_vec()
    });
    for bytes in [&halves, &brains] {
        let model = load(&open(bytes), Precision::F32).map(&mut Raise(&[]));
        assert_eq!(
            types_of(&patched(&model, bytes, "as-base")),
            types_of(bytes)
        );
    }
    let model = load(&open(&halves), Precision::F32).map(&mut Raise(&[]));
    let found = open(&patched(&model, &halves, "as-base"));
    for name in found.names() {
        let before = open(&halves).read_f32(&name).unwrap();
        let matrix = found.shape(&name).unwrap().len() > 1;
        let expected = before.iter().map(|value| {
            if matrix {
                f16::from_f32(value + 0.5).to_f32()
            } else {
                value + 0.5
            }
        });
        assert_eq!(
            found.read_f32(&name).unwrap(),
            expected.collect::<Vec<_>>(),
            "{name}"
        );
    }
    let found = types_of(&patched(&model, &halves, "bf16"));
    assert!(
        found
            .iter()
            .all(|(name, kind)| kind == if name.contains("norm") { "F32" } else { "BF16" }),
        "{found:?}"
    );
}

#[test]
fn type_of_the_file_follows_where_most_weights_change_theirs() {
    let bytes = rewritten(&golden("gpt2.gguf"), |metadata, _| {
        metadata.insert(2, ("general.file_type".into(), GgufValue::of_u32(0)))
    });
    let stated = |model: &Model, types: &str| {
        let found = patched(model, &bytes, types);
        let file = GgufFile::open(&MemorySource::new("m.gguf", found)).unwrap();
        assert_eq!(file.metadata[2].0, "general.file_type");
        file.metadata[2].1.count().unwrap()
    };
    let one =
        load(&open(&bytes), Precision::F32).map(&mut Raise(&["transformer.h.0.mlp.c_fc.weight"]));
    assert_eq!(stated(&one, "f16"), 0, "one matrix is less than half");
    let all = load(&open(&bytes), Precision::F32).map(&mut Raise(&[]));
    assert_eq!(
        (
            stated(&all, "f16"),
            stated(&all, "bf16"),
            stated(&all, "as-base")
        ),
        (1, 32, 0)
    );
    assert_eq!(
        GgufTypes::from_word("q1000").unwrap_err().code(),
        "export.gguf.type"
    );
}

#[test]
fn another_base_is_refused() {
    let model = load(&open(&golden("llama3.gguf")), Precision::F32);
    assert_eq!(
        refused(&model, base(&golden("qwen2.gguf"))).code(),
        "export.gguf.base"
    );
    let Error::Refused(list) = refused(&model, base(&golden("gpt2.gguf"))) else {
        panic!("not refused")
    };
    assert_eq!(
        list.len(),
        model.parameters().len() - 1,
        "every tensor is named but the head, which a tied base gets"
    );
    let other = rewritten(&golden("llama3.gguf"), |metadata, _| {
        let eps = metadata
            .iter_mut()
            .find(|(key, _)| key.ends_with("rms_epsilon"))
            .unwrap();
        eps.1 = GgufValue::of_f32(1e-6);
    });
    assert_eq!(refused(&model, base(&other)).code(), "export.gguf.base");
    let folder = ["config.json", "model.safetensors"]
        .map(|name| source(name, golden(&format!("llama3/{name}"))));
    assert_eq!(
        refused(
            &model,
            GgufBase {
                files: folder.into(),
                recorded: None
            }
        )
        .code(),
        "export.gguf.base"
    );
}

#[test]
fn line_38_base_of_another_sum_than_recorded_serves_only_if_every_tensor_is_replaced() {
    let bytes = golden("llama3.gguf");
    let own = open(&bytes).base.clone();
    let mut resized = own.clone();
    resized.files[0].bytes = 7;
    // The same size, but other weights, such as those of another run.
    let other = open(&rewritten(&bytes, |metadata, _| {
        metadata[1].1 = GgufValue::of_text("tiny other")
    }))
    .base
    .clone();
    assert_eq!(other.files[0].bytes, own.files[0].bytes);
    let unsummed = || {
        let mut base = own.clone();
        base.files[0].header_sha256 = None;
        base
    };
    let recorded = |recorded: Base| GgufBase {
        recorded: Some(recorded),
        ..base(&bytes)
    };
    let model = load(&open(&bytes), Precision::F32);
    for wrong in [resized, other] {
        assert_eq!(
            refused(&model, recorded(wrong.clone())).code(),
            "export.gguf.base"
        );
        let trained = model.clone().map(&mut Raise(&[]));
        assert!(gguf_patch(&trained, recorded(wrong), "new", "as-base").is_ok());
    }
    for right in [own.clone(), unsummed()] {
        assert!(gguf_patch(&model, recorded(right), "new", "as-base").is_ok());
    }
}
