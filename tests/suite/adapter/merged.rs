//! Adapters merged into their base at an export: every value is within one rounding of the exact sum; new blocks state how much of the change
//! they keep.

use std::rc::Rc;

use half::f16;
use serde_json::{Value, json};
use tabtune::bundle::{Bundle, OpenOptions};
use tabtune::checkpoint::{Checkpoint, CheckpointBase};
use tabtune::config::ModelConfig;
use tabtune::export::{ExportDtype, ExportFormat, ExportOptions, ExportSource, Weights, export};
use tabtune::families::peft_names;
use tabtune::formats::{ByteSource, GgufFile, MemorySource};
use tabtune::interrupt::Interrupt;
use tabtune::model::{Model, modules, open_model, open_model_with};
use tabtune::portable::checkpoint_source;
use tabtune::train::Trainer;
use tabtune_tests::{block_on, cpu};

use super::leaving::trained;
use super::runs::{go, saved, start};
use super::{Files, base, opened, settings, shape, sources, written};

/// Exports a model of this shape, with fixed values, as a folder.
pub(super) fn folder(config: &ModelConfig, dtype: ExportDtype) -> Files {
    let model = block_on(Model::init(
        config,
        7,
        tabtune::config::Precision::F32,
        &cpu().inner(),
        &Interrupt::none(),
    ))
    .unwrap();
    let assets = tabtune::bundle::ModelAssets::of_config(config, None);
    let source = ExportSource::of_weights(Weights::of_model(&model), assets);
    let mut files = written(
        &source,
        Vec::new(),
        &ExportOptions {
            dtype,
            ..ExportOptions::default()
        },
    );
    files.retain(|(name, _)| {
        name.ends_with(".safetensors") || name.ends_with(".json") && !name.contains("receipt")
    });
    files
}

/// Returns the name of each tensor, the sum of base and product in f64, and the largest error of computing it in f32.
fn sums(trainer: &Trainer, base: &Bundle) -> Vec<(String, Vec<f64>, Vec<f64>, f64)> {
    let settings = trainer.config().adapter.clone().unwrap();
    let resolved = settings
        .resolve(
            peft_names(base.config.architecture),
            &modules(&base.config).unwrap(),
        )
        .unwrap();
    let trained = trained(trainer);
    let one = |name: String| {
        if let Some(saved) = trained.get(&name) {
            let exact: Vec<f64> = saved.iter().map(|value| f64::from(*value)).collect();
            return (name, exact.clone(), exact, 0.0);
        }
        let values: Vec<f64> = base
            .read_f32(&name)
            .unwrap()
            .into_iter()
            .map(f64::from)
            .collect();
        let Some(target) = resolved
            .targets
            .iter()
            .find(|target| format!("{}.weight", target.module) == name)
        else {
            return (name, values.clone(), values, 0.0);
        };
        let (a, b) = (
            &trained[&format!("{}.lora_A.weight", target.module)],
            &trained[&format!("{}.lora_B.weight", target.module)],
        );
        let mut largest = 0.0f64;
        let exact: Vec<f64> = (0..values.len())
            .map(|at| {
                let (row, column) = (at / target.input, at % target.input);
                let terms = (0..target.rank).map(|k| {
                    f64::from(b[row * target.rank + k]) * f64::from(a[k * target.input + column])
                });
                let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term| {
                    (sum + term, size + term.abs())
                });
                largest = largest.max(
                    6e-8 * (values[at].abs() + (target.rank + 2) as f64 * target.scale * size),
                );
                values[at] + target.scale * sum
            })
            .collect();
        (name, values, exact, largest)
    };
    base.names().into_iter().map(one).collect()
}

/// Returns half the distance between neighbours of `value` with this many bits, at least half of `least`.
fn rounding(value: f64, bits: i32, least: f64) -> f64 {
    (value.abs().max(f64::MIN_POSITIVE).log2().floor() - f64::from(bits))
        .exp2()
        .max(least / 2.0)
}

fn adapter() -> Value {
    json!({ "r": 3, "alpha": 6.0, "target_modules": "all-linear", "alpha_pattern": { "v_proj": 2.0 }, "modules_to_save": ["norm"] })
}

fn trained_beside(files: &Files, adapter: Value, steps: u64) -> (Trainer, ExportSource, Files) {
    let (mut trainer, origin, assets) = start(files, &settings(adapter, Value::Null), &cpu());
    go(&mut trainer, steps);
    let source =
        ExportSource::of_trainer(&trainer, assets.clone(), origin.base.clone(), "data").unwrap();
    let stored = saved(&trainer, &origin, &assets);
    (trainer, source, stored)
}

#[test]
fn merged_folder_is_one_rounding_from_the_exact_sum() {
    let shape = shape();
    let bases = [
        folder(&shape, ExportDtype::F16),
        folder(&shape, ExportDtype::F32),
        base(&shape, "f16"),
        base(&shape, "q5_0"),
    ];
    // The default dtype of each.
    for (files, own) in bases.iter().zip(["F16", "F32", "F16", "F16"]) {
        let (trainer, source, stored) = trained_beside(files, adapter(), 3);
        let bundle = opened(files);
        for (dtype, word) in [
            (ExportDtype::Stored, own),
            (ExportDtype::F32, "F32"),
            (ExportDtype::Bf16, "BF16"),
        ] {
            let options = ExportOptions {
                dtype,
                ..ExportOptions::default()
            };
            let out = written(&source, sources(files), &options);
            assert!(
                out == written(&source, sources(files), &options),
                "two exports differ"
            );
            let merged = opened(
                &out.iter()
                    .filter(|(name, _)| !name.contains("receipt"))
                    .cloned()
                    .collect(),
            );
            for (name, _, exact, error) in sums(&trainer, &bundle) {
                let found = merged.read_f32(&name).unwrap();
                let stored = merged.dtype(&name).unwrap();
                if name.ends_with("proj.weight") {
                    assert_eq!(stored, word, "{name} {dtype:?}");
                }
                for (at, (found, exact)) in found.iter().zip(&exact).enumerate() {
                    let half = match stored.as_str() {
                        "F16" => rounding(*exact, 11, 2f64.powi(-24)),
                        "BF16" => rounding(*exact, 8, 0.0),
                        _ => rounding(*exact, 24, 0.0),
                    };
                    assert!(
                        (f64::from(*found) - exact).abs() <= half + error,
                        "{name}[{at}] {stored}: {found} {exact}"
                    );
                }
            }
            // The checkpoint gives the same result without a device.
            let checkpoint =
                Checkpoint::open_with(sources(&stored), CheckpointBase::Unneeded, false).unwrap();
            let again = written(
                &checkpoint_source(&checkpoint, "data").unwrap(),
                sources(files),
                &options,
            );
            assert!(again[0] == out[0], "{dtype:?}: other bytes of a checkpoint");
        }
    }
}

#[test]
fn merged_gguf_is_its_base_with_new_targets() {
    for (types, wanted) in [
        ("f16", None),
        ("q8_0", None),
        ("q5_0", None),
        ("q4_0", Some("f16")),
    ] {
        let files = base(&shape(), types);
        // Without saved norms, whose values are not the base's.
        let (trainer, source, _) = trained_beside(
            &files,
            json!({ "r": 3, "alpha": 6.0, "target_modules": "all-linear" }),
            3,
        );
        let bundle = opened(&files);
        let options = ExportOptions {
            format: ExportFormat::Gguf,
            types: wanted.map(String::from),
            ..ExportOptions::default()
        };
        let out = written(&source, sources(&files), &options);
        let merged = opened(&out[..1].to_vec());
        let receipt: Value = serde_json::from_slice(&out[1].1).unwrap();
        let survival = |name: &str| {
            let own = receipt["conversions"]
                .as_array()
                .unwrap()
                .iter()
                .find(|one| one["tensor"] == name);
            own.and_then(|own| own["survival"].as_f64())
        };
        let (before, after) = (
            MemorySource::new("b.gguf", files[0].1.clone()),
            MemorySource::new("m.gguf", out[0].1.clone()),
        );
        let (old, new) = (
            GgufFile::open(&before).unwrap(),
            GgufFile::open(&after).unwrap(),
        );
        let mut measured = 0;
        for ((name, plain, exact, _), (stored, kept)) in sums(&trainer, &bundle)
            .into_iter()
            .map(|one| (own_name(&one.0), one))
            .filter_map(|(own, one)| {
                Some((one, (old.tensor(&own)?.clone(), new.tensor(&own)?.clone())))
            })
        {
            let bytes = |source: &MemorySource, tensor: &tabtune::formats::FileTensor| {
                let mut bytes = vec![0; usize::try_from(tensor.bytes.unwrap()).unwrap()];
                source.read_at(tensor.begin, &mut bytes).unwrap();
                bytes
            };
            if plain == exact {
                assert!(
                    bytes(&before, &stored) == bytes(&after, &kept)
                        && survival(&kept.name).is_none(),
                    "{name}"
                );
                continue;
            }
            let want = wanted.unwrap_or(types).to_uppercase();
            assert_eq!(kept.dtype.trim_start_matches("GGML:"), want, "{name}");
            let norm = |values: &mut dyn Iterator<Item = f64>| {
                values.map(|value| value * value).sum::<f64>().sqrt()
            };
            let found = merged.read_f32(&name).unwrap();
            let lost = norm(
                &mut found
                    .iter()
                    .zip(&exact)
                    .map(|(found, exact)| f64::from(*found) - exact),
            );
            let truth = 1.0
                - lost / norm(&mut plain.iter().zip(&exact).map(|(plain, exact)| exact - plain));
            let told = survival(&kept.name).unwrap();
            assert!(
                (told - truth).abs() <= 1e-4 * (1.0 - truth).max(0.1),
                "{name}: {told} {truth}"
            );
            measured += 1;
        }
        assert_eq!(measured, 14, "{types}");
    }
}

/// Returns the name of a tensor in llama.cpp's file, for tensors that can be targets.
fn own_name(name: &str) -> String {
    let parts = [
        ("model.layers.", "blk."),
        ("model.embed_tokens", "token_embd"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
    ];
    parts
        .iter()
        .fold(name.to_string(), |name, (hf, gguf)| name.replace(hf, gguf))
}

#[test]
fn change_that_blocks_lose_is_a_warning() {
    let files = base(&shape(), "q4_0");
    let (_, source, _) = trained_beside(
        &files,
        json!({ "r": 2, "alpha": 0.01, "target_modules": ["q_proj"] }),
        1,
    );
    let told = |types: Option<&str>| -> Vec<String> {
        let options = ExportOptions {
            format: ExportFormat::Gguf,
            types: types.map(String::from),
            ..ExportOptions::default()
        };
        let receipt: Value =
            serde_json::from_slice(&written(&source, sources(&files), &options)[1].1).unwrap();
        let lost = receipt["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|warning| warning["code"] == "export.lora.lost");
        lost.map(|warning| warning["subject"].as_str().unwrap().to_string())
            .collect()
    };
    assert_eq!(told(None), ["blk.0.attn_q.weight", "blk.1.attn_q.weight"]);
    assert_eq!(told(Some("f32")), Vec::<String>::new());
}

#[test]
fn merged_model_needs_the_base_of_its_adapter() {
    let files = base(&shape(), "q8_0");
    let (_, source, _) = trained_beside(&files, adapter(), 1);
    let code = |files: Option<&Files>, options: &ExportOptions| {
        block_on(export(
            &source,
            files.map(sources).unwrap_or_default(),
            options,
        ))
        .map(|_| ())
        .unwrap_err()
        .code()
    };
    for format in [ExportFormat::Safetensors, ExportFormat::Gguf] {
        let options = ExportOptions {
            format,
            ..ExportOptions::default()
        };
        assert_eq!(code(None, &options), "checkpoint.base.missing");
        let mut changed = files.clone();
        let middle = changed[0].1.len() / 2;
        changed[0].1[middle] ^= 1;
        assert_eq!(code(Some(&changed), &options), "checkpoint.base.mismatch");
        assert_eq!(
            code(Some(&base(&shape(), "q4_0")), &options),
            "checkpoint.base.mismatch"
        );
        assert_eq!(
            code(
                Some(&files),
                &ExportOptions {
                    optimizer: true,
                    ..options
                }
            ),
            "config.invalid"
        );
    }
}

#[test]
fn folder_that_becomes_a_gguf_file_keeps_its_dtype() {
    let files = folder(&shape(), ExportDtype::F16);
    let (trainer, source, _) =
        trained_beside(&files, json!({ "r": 2, "target_modules": "all-linear" }), 2);
    for (types, word) in [(None, "F16"), (Some("bf16"), "BF16")] {
        let options = ExportOptions {
            format: ExportFormat::Gguf,
            types: types.map(String::from),
            ..ExportOptions::default()
        };
        let out = written(&source, sources(&files), &options);
        let receipt: Value = serde_json::from_slice(&out[1].1).unwrap();
        let shares = receipt["conversions"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["survival"].as_f64().is_some_and(|share| share > 0.5));
        assert_eq!(
            shares.count(),
            14,
            "{word}: every target says how much of it is left"
        );
        let merged = opened(&out[..1].to_vec());
        let (bits, least) = if types.is_none() {
            (11, 2f64.powi(-24))
        } else {
            (8, 0.0)
        };
        for (name, _, exact, error) in sums(&trainer, &opened(&files))
            .into_iter()
            .filter(|(name, ..)| name.ends_with("proj.weight"))
        {
            assert_eq!(merged.dtype(&name).unwrap(), word, "{name}");
            for (found, exact) in merged.read_f32(&name).unwrap().iter().zip(&exact) {
                assert!(
                    (f64::from(*found) - exact).abs() <= rounding(*exact, bits, least) + error,
                    "{name} {word}: {found} {exact}"
                );
            }
        }
    }
}

/// The scale of a block is NaN, so all its 32 values are; only a copy of the block can be written.
#[test]
fn copied_blocks_that_are_no_numbers_are_refused() {
    let files = base(&shape(), "q8_0");
    let (_, source, _) = trained_beside(&files, json!({ "r": 2, "target_modules": ["q_proj"] }), 1);
    let mut adapter = written(
        &source,
        Vec::new(),
        &ExportOptions {
            format: ExportFormat::Peft,
            ..ExportOptions::default()
        },
    );
    adapter.retain(|(name, _)| name.starts_with("adapter_"));
    let mut odd = files.clone();
    let place = GgufFile::open(&MemorySource::new("b.gguf", files[0].1.clone()))
        .unwrap()
        .tensor("blk.1.ffn_up.weight")
        .unwrap()
        .begin;
    odd[0].1[usize::try_from(place).unwrap() + 34..][..2].copy_from_slice(&f16::NAN.to_le_bytes());
    let merged = |files: &Files, allow_non_finite: bool| {
        let options = OpenOptions {
            adapter: Some(sources(&adapter)),
            ..OpenOptions::default()
        };
        let source =
            ExportSource::of_bundle(&open_model_with(sources(files), options).unwrap()).unwrap();
        let options = ExportOptions {
            format: ExportFormat::Gguf,
            allow_non_finite,
            ..ExportOptions::default()
        };
        let mut stream = block_on(export(&source, Vec::new(), &options)).unwrap();
        while block_on(stream.next_chunk())?.is_some() {}
        Ok::<_, tabtune::Error>(stream.non_finite().to_vec())
    };
    assert_eq!(merged(&files, false).unwrap(), []);
    let tabtune::Error::Refused(refused) = merged(&odd, false).unwrap_err() else {
        panic!("refused otherwise")
    };
    let [only] = &refused[..] else {
        panic!("{refused:?}")
    };
    assert_eq!(
        (only.code, only.subject.as_deref()),
        (
            "tensor.non-finite",
            Some("model.layers.1.mlp.up_proj.weight")
        )
    );
    assert!(
        only.found
            .as_deref()
            .is_some_and(|found| found.starts_with("32 ")),
        "{only:?}"
    );
    assert_eq!(
        merged(&odd, true).unwrap(),
        [("model.layers.1.mlp.up_proj.weight".to_string(), 32)]
    );
}

#[test]
fn merged_folder_of_halves_is_the_nearest_half() {
    // The smallest possible fault: a base of F16 that is requested as F32 has values that are not halves.
    let files = base(&shape(), "f16");
    let (_, source, _) = trained_beside(&files, json!({ "r": 1, "target_modules": ["v_proj"] }), 1);
    let out = written(
        &source,
        sources(&files),
        &ExportOptions {
            dtype: ExportDtype::F32,
            ..ExportOptions::default()
        },
    );
    let merged: Rc<Bundle> = Rc::new(
        open_model(sources(
            &out.into_iter()
                .filter(|(name, _)| !name.contains("receipt"))
                .collect::<Files>(),
        ))
        .unwrap(),
    );
    let values = merged
        .read_f32("model.layers.0.self_attn.v_proj.weight")
        .unwrap();
    assert!(
        values
            .iter()
            .any(|value| f16::from_f32(*value).to_f32() != *value)
    );
}
