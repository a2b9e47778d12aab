//! Adapters in the formats of other programs: llama.cpp's GGUF file, and fields of a PEFT folder that tabtune does not know.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tabtune::bundle::{ModelAssets, OpenOptions, dequantise};
use tabtune::checkpoint;
use tabtune::checkpoint::{Checkpoint, CheckpointBase};
use tabtune::config::{Architecture, ModelConfig};
use tabtune::export::{ExportFormat, ExportOptions, ExportSource, export, export_choices};
use tabtune::families::{config_from_hf, peft_names};
use tabtune::formats::{GgufFile, GgufValue, MemorySource};
use tabtune::interrupt::Interrupt;
use tabtune::model::{modules, open_model_with};
use tabtune::portable::{Support, checkpoint_source, export_options_of};
use tabtune::train::Trainer;
use tabtune_tests::{block_on, cpu, weights};

use super::runs::{go, saved, start};
use super::{Files, base, dataset, settings, shape, sources, written};

/// Makes an export source of the adapter in its current state.
pub fn leaves(trainer: &Trainer, assets: &ModelAssets) -> ExportSource {
    ExportSource::of_trainer(trainer, assets.clone(), None, "data").unwrap()
}

/// Returns the values of each trained tensor of an f32 run.
pub fn trained(trainer: &Trainer) -> BTreeMap<String, Vec<f32>> {
    let floats = |bytes: Vec<u8>| {
        bytes
            .chunks_exact(4)
            .map(|four| f32::from_le_bytes(four.try_into().unwrap()))
            .collect()
    };
    weights(trainer.model())
        .into_iter()
        .map(|(name, bytes)| (name, floats(bytes)))
        .collect()
}

fn gpt2() -> ModelConfig {
    let json = json!({
        "model_type": "gpt2", "vocab_size": 48, "n_embd": 32, "n_inner": 64, "n_layer": 2, "n_head": 4, "n_positions": 16,
        "layer_norm_epsilon": 1e-5, "initializer_range": 0.2, "activation_function": "gelu_new"
    });
    config_from_hf(&json).unwrap()
}

fn gguf_name(module: &str, config: &ModelConfig) -> String {
    let words = [
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
        ("attn.c_attn", "attn_qkv"),
        ("attn.c_proj", "attn_output"),
        ("mlp.c_fc", "ffn_up"),
        ("mlp.c_proj", "ffn_down"),
    ];
    let blocks = if config.architecture == Architecture::Gpt2 {
        "transformer.h."
    } else {
        "model.layers."
    };
    let (block, part) = module
        .strip_prefix(blocks)
        .unwrap()
        .split_once('.')
        .unwrap();
    format!(
        "blk.{block}.{}",
        words.iter().find(|(own, _)| *own == part).unwrap().1
    )
}

/// Returns the position of row `n` of q or k in llama.cpp's file, where rows of the two halves of a head alternate.
fn paired(n: usize, head_rows: usize) -> usize {
    let (head, n) = (n / head_rows, n % head_rows);
    head * head_rows + 2 * (n % (head_rows / 2)) + n / (head_rows / 2)
}

/// llama.cpp multiplies by alpha / r with one alpha per file and the r of each pair. The product must be the adapter's for all its settings.
#[test]
fn gguf_adapter_has_the_product_of_every_target() {
    let plain = json!({ "r": 3, "alpha": 6.0, "target_modules": "all-linear" });
    let rslora = json!({ "r": 3, "alpha": 5.0, "target_modules": "all-linear", "rslora": true });
    let patterned = json!({
        "r": 3, "alpha": 6.0, "target_modules": "all-linear", "rank_pattern": { "q_proj": 2, "c_attn": 5 },
        "alpha_pattern": { "layers.1.self_attn.k_proj": 7.0, "h.0.mlp.c_fc": 7.0, "gate_proj": 3.0 }
    });
    for config in [shape(), gpt2()] {
        let files = base(&config, "f32");
        for (which, adapter) in [
            ("plain", &plain),
            ("rslora", &rslora),
            ("patterned", &patterned),
        ] {
            let mut adapter = adapter.clone();
            if which == "patterned" {
                // Patterns have to match.
                let known = |key: &String, _: &mut Value| {
                    modules(&config)
                        .unwrap()
                        .iter()
                        .any(|module| module.name.ends_with(key.as_str()))
                };
                for table in ["rank_pattern", "alpha_pattern"] {
                    let kept: Map<String, Value> = adapter[table]
                        .as_object()
                        .unwrap()
                        .clone()
                        .into_iter()
                        .filter(|(key, value)| known(key, &mut value.clone()))
                        .collect();
                    adapter[table] = kept.into();
                }
            }
            let config_of_run = settings(adapter, Value::Null);
            let (mut trainer, _, assets) = start(&files, &config_of_run, &cpu());
            go(&mut trainer, 3);
            let settings = config_of_run.adapter.clone().unwrap();
            for types in [None, Some("f16")] {
                let options = ExportOptions {
                    format: ExportFormat::GgufAdapter,
                    types: types.map(String::from),
                    ..ExportOptions::default()
                };
                let out = written(&leaves(&trainer, &assets), Vec::new(), &options);
                assert!(
                    out == written(&leaves(&trainer, &assets), Vec::new(), &options),
                    "two exports differ"
                );
                let receipt: Value = serde_json::from_slice(&out[1].1).unwrap();
                let source = MemorySource::new("a.gguf", out[0].1.clone());
                let file = GgufFile::open(&source).unwrap();
                let text = |key: &str| file.get(key).and_then(GgufValue::text).unwrap().to_string();
                assert_eq!(
                    [text("general.type"), text("adapter.type")],
                    ["adapter", "lora"]
                );
                assert_eq!(
                    text("general.architecture"),
                    if config.architecture == Architecture::Gpt2 {
                        "gpt2"
                    } else {
                        "llama"
                    }
                );
                let alpha = file
                    .get("adapter.lora.alpha")
                    .and_then(GgufValue::number)
                    .unwrap();
                assert_eq!(alpha, settings.alpha);
                let resolved = settings
                    .resolve(peft_names(config.architecture), &modules(&config).unwrap())
                    .unwrap();
                assert_eq!(file.tensors.len(), 2 * resolved.targets.len());
                let values = trained(&trainer);
                for target in &resolved.targets {
                    let own = |end: &str| {
                        let tensor = file
                            .tensor(&format!(
                                "{}.weight.lora_{end}",
                                gguf_name(&target.module, &config)
                            ))
                            .unwrap();
                        let shape = if end == "a" {
                            [target.rank, target.input]
                        } else {
                            [target.out, target.rank]
                        };
                        assert_eq!(tensor.shape, shape.map(|dim| dim as u64), "{}", tensor.name);
                        assert_eq!(tensor.dtype, if types.is_some() { "F16" } else { "F32" });
                        dequantise(&source, tensor).unwrap()
                    };
                    let (a, b) = (own("a"), own("b"));
                    let name =
                        |factor: &str| &values[&format!("{}.lora_{factor}.weight", target.module)];
                    let head_rows = match target.module.rsplit('.').next().unwrap() {
                        "q_proj" => target.out / config.num_attention_heads,
                        "k_proj" => target.out / config.num_key_value_heads,
                        _ => 0,
                    };
                    assert!(
                        name("B").iter().any(|value| *value != 0.0),
                        "{}: an adapter that changes nothing",
                        target.module
                    );
                    for row in 0..target.out {
                        let at = if head_rows > 0 {
                            paired(row, head_rows)
                        } else {
                            row
                        };
                        for column in 0..target.input {
                            let sum = |b: &[f32], row: usize, a: &[f32]| -> f64 {
                                let term = |k: usize| {
                                    f64::from(b[row * target.rank + k])
                                        * f64::from(a[k * target.input + column])
                                };
                                (0..target.rank).map(term).sum()
                            };
                            let size = |b: &[f32], row: usize, a: &[f32]| -> f64 {
                                let term = |k: usize| {
                                    f64::from(
                                        b[row * target.rank + k] * a[k * target.input + column],
                                    )
                                    .abs()
                                };
                                (0..target.rank).map(term).sum()
                            };
                            let (found, wanted) = (
                                alpha / target.rank as f64 * sum(&b, at, &a),
                                target.scale * sum(name("B"), row, name("A")),
                            );
                            // One rounding to f32 for each value of B; to F16 for both factors, plus 2^-25 for subnormal values.
                            let bound = if types.is_some() { 1.1e-3 } else { 1.2e-7 };
                            let bound = bound * target.scale * size(name("B"), row, name("A"))
                                + if types.is_some() { 1e-6 } else { 1e-12 };
                            assert!(
                                (found - wanted).abs() <= bound,
                                "{which} {} [{row}, {column}]: {found} {wanted}",
                                target.module
                            );
                        }
                    }
                    let said = &receipt["tensors"]["scaled"]
                        [format!("{}.weight.lora_b", gguf_name(&target.module, &config))];
                    let missing = target.scale / (settings.alpha / target.rank as f64);
                    assert_eq!(
                        said.as_f64().unwrap_or(1.0),
                        missing,
                        "{which} {}",
                        target.module
                    );
                }
                let scaled = receipt["tensors"]["scaled"].as_object().map_or(0, Map::len);
                assert_eq!(
                    scaled > 0,
                    which != "plain",
                    "{which}: {}",
                    receipt["tensors"]["scaled"]
                );
            }
        }
    }
}

#[test]
fn gguf_adapter_of_a_checkpoint_is_that_of_the_run() {
    let files = base(&shape(), "q8_0");
    for precision in ["f32", "bf16"] {
        let config = settings(
            json!({ "r": 2, "target_modules": "all-linear", "rslora": true }),
            json!({ "precision": precision }),
        );
        let (mut trainer, origin, assets) = start(&files, &config, &cpu());
        go(&mut trainer, 2);
        let options = ExportOptions {
            format: ExportFormat::GgufAdapter,
            ..ExportOptions::default()
        };
        let live = written(&leaves(&trainer, &assets), Vec::new(), &options);
        let stored = saved(&trainer, &origin, &assets);
        for checkpoint in [
            Checkpoint::open_with(sources(&stored), CheckpointBase::Unneeded, false).unwrap(),
            Checkpoint::open(sources(&stored), Some(sources(&files))).unwrap(),
        ] {
            let source = checkpoint_source(&checkpoint, "data").unwrap();
            assert!(
                written(&source, Vec::new(), &options)[0] == live[0],
                "{precision}: other bytes"
            );
            // The possible exports are known beforehand, with their sizes.
            let size = |files: &Files| {
                files
                    .iter()
                    .map(|(_, bytes)| bytes.len() as u64)
                    .sum::<u64>()
            };
            for choice in export_choices(&source) {
                let merged = matches!(
                    choice.format,
                    ExportFormat::Safetensors | ExportFormat::Gguf
                );
                assert!(
                    choice.ok && merged == (choice.needs == Some("base")),
                    "{choice:?}"
                );
                let options = ExportOptions {
                    format: choice.format,
                    types: choice.types,
                    ..ExportOptions::default()
                };
                assert!(
                    merged || choice.bytes == Some(size(&written(&source, Vec::new(), &options))),
                    "{options:?}: {:?}",
                    choice.bytes
                );
            }
            let (_, contract) = export_options_of(&source).unwrap();
            let leaves_as = |surface| contract.row(surface).unwrap().export.support;
            assert_eq!(
                ["peft_adapter", "gguf_adapter"].map(leaves_as),
                [Support::Supported; 2]
            );
            let peft = ExportOptions {
                format: ExportFormat::Peft,
                ..ExportOptions::default()
            };
            let folder = written(&source, Vec::new(), &peft);
            let live = ExportSource {
                base: origin.base.clone(),
                ..leaves(&trainer, &assets)
            };
            assert!(folder[0] == written(&live, Vec::new(), &peft)[0]);
        }
    }
}

#[test]
fn what_the_file_of_llama_cpp_cannot_say_is_refused() {
    let files = base(&shape(), "f32");
    let (trainer, _, assets) = start(
        &files,
        &settings(json!({ "r": 2, "modules_to_save": ["norm"] }), Value::Null),
        &cpu(),
    );
    let refused = |trainer: &Trainer, options: &ExportOptions| {
        block_on(export(&leaves(trainer, &assets), Vec::new(), options))
            .map(|_| ())
            .unwrap_err()
    };
    let options = ExportOptions {
        format: ExportFormat::GgufAdapter,
        ..ExportOptions::default()
    };
    let error = refused(&trainer, &options);
    assert_eq!(error.code(), "export.lora.unrepresentable");
    assert!(error.to_string().contains("model.norm.weight"), "{error}");
    let (trainer, ..) = start(&files, &settings(json!({ "r": 2 }), Value::Null), &cpu());
    assert_eq!(
        refused(
            &trainer,
            &ExportOptions {
                types: Some("q8_0".into()),
                ..options
            }
        )
        .code(),
        "export.gguf.type"
    );
}

/// Unknown fields of an adapter survive training, a checkpoint and a resume.
#[test]
fn unknown_fields_of_an_adapter_are_written_back() {
    let files = base(&shape(), "f16");
    let config = settings(json!({ "r": 2 }), Value::Null);
    let (trainer, origin, assets) = start(&files, &config, &cpu());
    let peft = ExportOptions {
        format: ExportFormat::Peft,
        ..ExportOptions::default()
    };
    let mut folder = written(&leaves(&trainer, &assets), Vec::new(), &peft);
    let document = |files: &Files| -> Value {
        let (_, bytes) = files
            .iter()
            .find(|(name, _)| name == "adapter_config.json")
            .unwrap();
        serde_json::from_slice(bytes).unwrap()
    };
    let mut changed = document(&folder);
    changed["zz_mine"] = json!({ "a": [1, "two", null] });
    // These fields name the base, which is the same one.
    changed["revision"] = json!("main");
    changed["base_model_name_or_path"] = json!("of/somebody");
    // A field that PEFT knows but that has no meaning here is not among the unknown ones.
    changed["auto_mapping"] = json!("main");
    for (_, bytes) in folder
        .iter_mut()
        .filter(|(name, _)| name == "adapter_config.json")
    {
        *bytes = changed.to_string().into_bytes();
    }
    let options = OpenOptions {
        adapter: Some(sources(&folder)),
        apart: true,
        ..OpenOptions::default()
    };
    let bundle = open_model_with(sources(&files), options).unwrap();
    let trainer =
        Trainer::new(super::adapted(&bundle, &config, &cpu()), dataset(), config).unwrap();
    let stored = saved(&trainer, &origin, &ModelAssets::of_bundle(&bundle));
    assert_eq!(document(&stored)["zz_mine"], changed["zz_mine"]);
    let checkpoint = Checkpoint::open(sources(&stored), Some(sources(&files))).unwrap();
    let resumed =
        block_on(checkpoint.resume(dataset(), None, &[], &cpu().inner(), &Interrupt::none()))
            .unwrap();
    let assets = ModelAssets::of_bundle(checkpoint.bundle());
    let again = saved(
        &resumed,
        &checkpoint::Origin {
            base: checkpoint.manifest().base.clone(),
            ..origin
        },
        &assets,
    );
    let alone = Checkpoint::open_with(sources(&again), CheckpointBase::Unneeded, false).unwrap();
    for out in [
        &leaves(&resumed, &assets),
        &checkpoint_source(&alone, "").unwrap(),
    ] {
        let out = document(&written(out, Vec::new(), &peft));
        for key in ["zz_mine", "revision", "base_model_name_or_path"] {
            assert_eq!(out[key], changed[key], "{key}");
        }
        assert_eq!(out["auto_mapping"], Value::Null);
    }
}
