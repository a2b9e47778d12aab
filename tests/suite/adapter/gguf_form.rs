//! Granite 4 in GGUF, which has gate and up as two matrices where Hugging Face's folders have one: whole models, merged ones and adapters.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Value, json};
use tabtune::bundle::{Bundle, ModelAssets, dequantise, open_bundle};
use tabtune::config::{Architecture, ModelConfig, Precision};
use tabtune::export::{ExportFormat, ExportOptions, ExportSource, Weights};
use tabtune::families::config_from_hf;
use tabtune::formats::{GgufFile, MemorySource};
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune_tests::{block_on, cpu, weights};

use super::leaving::{leaves, trained};
use super::runs::{go, start};
use super::{Files, opened, settings, sources, written};

const FUSED: &str = "shared_mlp.input_linear";

fn shape() -> ModelConfig {
    let json = json!({
        "model_type": "granitemoehybrid", "vocab_size": 48, "hidden_size": 32, "shared_intermediate_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 16,
        "rms_norm_eps": 1e-5, "tie_word_embeddings": true, "initializer_range": 0.2, "num_local_experts": 0,
        "layer_types": ["attention", "attention"], "position_embedding_type": "rope", "embedding_multiplier": 3.0,
        "attention_multiplier": 0.3, "residual_multiplier": 0.5, "logits_scaling": 2.0
    });
    config_from_hf(&json).unwrap()
}

fn model(precision: Precision) -> Model {
    block_on(Model::init(
        &shape(),
        7,
        precision,
        &cpu().inner(),
        &Interrupt::none(),
    ))
    .unwrap()
}

fn loaded(bundle: &Bundle, precision: Precision) -> Model {
    let device = cpu().inner();
    let (none, bundle) = (Interrupt::none(), bundle);
    block_on(Model::from_bundle(bundle, precision, &device, &none)).unwrap()
}

fn on_device(model: &Model) -> ExportSource {
    let assets = ModelAssets::of_config(model.config(), None);
    ExportSource::of_weights(Weights::of_model(model), assets)
}

fn as_format(format: ExportFormat, types: Option<&str>) -> ExportOptions {
    ExportOptions {
        format,
        types: types.map(String::from),
        ..ExportOptions::default()
    }
}

/// The weights of a model, with those of gate and up under their names in GGUF's form.
fn in_halves(model: &Model) -> BTreeMap<String, Vec<u8>> {
    let each = weights(model).into_iter().flat_map(|(name, bytes)| {
        if name.contains(FUSED) {
            let (gate, up) = bytes.split_at(bytes.len() / 2);
            let own = |part: &str| name.replace(FUSED, part);
            vec![
                (own("mlp.gate_proj"), gate.to_vec()),
                (own("mlp.up_proj"), up.to_vec()),
            ]
        } else {
            let name = name.replace("shared_mlp.output_linear", "mlp.down_proj");
            vec![(name, bytes)]
        }
    });
    each.collect()
}

/// The weights of a GGUF file that opens as a Granite.
fn of_gguf(files: &Files, precision: Precision) -> BTreeMap<String, Vec<u8>> {
    let one = files.iter().filter(|(name, _)| name.ends_with(".gguf"));
    let bundle = open_bundle(sources(&one.cloned().collect())).unwrap();
    assert_eq!(bundle.config.architecture, Architecture::Granite);
    let hybrid = shape();
    assert_eq!(bundle.config.logits_scaling, hybrid.logits_scaling);
    assert!(bundle.warnings.is_empty(), "{:?}", bundle.warnings);
    weights(&loaded(&bundle, precision)).into_iter().collect()
}

#[test]
fn halves_of_a_fused_matrix_are_matrices_in_gguf() {
    for (precision, types) in [(Precision::F32, "f32"), (Precision::Bf16, "bf16")] {
        let model = model(precision);
        let options = as_format(ExportFormat::Gguf, Some(types));
        let from_device = written(&on_device(&model), Vec::new(), &options);
        assert!(of_gguf(&from_device, precision) == in_halves(&model));
        let folder = as_format(ExportFormat::Safetensors, None);
        let bundle = opened(&written(&on_device(&model), Vec::new(), &folder));
        let source = ExportSource::of_bundle(&bundle).unwrap();
        let source = source.summed(&bundle).unwrap();
        let from_files = written(&source, Vec::new(), &options);
        assert!(from_files[0].1 == from_device[0].1, "{types}");
        let receipt: Value = serde_json::from_slice(&from_files[1].1).unwrap();
        assert_eq!(receipt["warnings"], json!([]));
    }
}

#[test]
fn halves_of_an_adapter_share_factor_a() {
    let folder = as_format(ExportFormat::Safetensors, None);
    let base = written(&on_device(&model(Precision::F32)), Vec::new(), &folder);
    let settings = settings(
        json!({ "r": 3, "alpha": 5.0, "rslora": true, "target_modules": "all-linear" }),
        Value::Null,
    );
    let (mut trainer, _, assets) = start(&base, &settings, &cpu());
    go(&mut trainer, 3);
    let values = trained(&trainer);
    let adapter = as_format(ExportFormat::GgufAdapter, None);
    let files = written(&leaves(&trainer, &assets), Vec::new(), &adapter);
    let source = Rc::new(MemorySource::new("a.gguf", files[0].1.clone()));
    let file = GgufFile::open(&*source).unwrap();
    let own = |name: &str| dequantise(&*source, file.tensor(name).unwrap()).unwrap();
    let [a, b] =
        ["A", "B"].map(|factor| &values[&format!("model.layers.1.{FUSED}.lora_{factor}.weight")]);
    assert!(b.iter().any(|value| *value != 0.0));
    // 5 / √3 of the adapter in units of 5 / 3, which readers take.
    let scaled = |values: &[f32]| -> Vec<f32> {
        let factor = (5.0 / 3f64.sqrt() / (5.0 / 3.0)) as f32;
        values.iter().map(|value| value * factor).collect()
    };
    let (gate, up) = b.split_at(b.len() / 2);
    for (part, half) in [("ffn_gate", gate), ("ffn_up", up)] {
        assert_eq!(own(&format!("blk.1.{part}.weight.lora_a")), *a, "{part}");
        assert_eq!(own(&format!("blk.1.{part}.weight.lora_b")), scaled(half));
    }
    assert_eq!(file.tensors.len(), 2 * 2 * 7);

    let merged = |options: &ExportOptions| {
        let base = sources(&base);
        written(&leaves(&trainer, &assets), base, options)
    };
    let whole = merged(&as_format(ExportFormat::Safetensors, None));
    let whole = loaded(&opened(&whole), Precision::F32);
    let gguf = merged(&as_format(ExportFormat::Gguf, Some("f32")));
    assert!(of_gguf(&gguf, Precision::F32) == in_halves(&whole));
}
