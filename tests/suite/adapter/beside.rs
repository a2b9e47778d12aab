//! The digest of the base that an adapter was trained on: exports state it, and another base is reported.

use serde_json::{Value, json};
use tabtune::bundle::{Bundle, OpenOptions};
use tabtune::config::Precision;
use tabtune::export::{ExportDtype, ExportFormat, ExportOptions, ExportSource, Weights};
use tabtune::formats::{Digest, SafetensorsFile};
use tabtune::interrupt::Interrupt;
use tabtune::model::{Model, open_model_with};
use tabtune::state::{Base, leaf, weights_digest};
use tabtune_tests::{block_on, cpu};

use super::merged::folder;
use super::runs::{go, start};
use super::{Files, base, opened, settings, shape, sources, written};

const KEY: &str = "tabtune.base_weights_digest";

/// Computes the digest as crate/FORMATS.md defines it, for a model whose tensors are all F32.
fn digest_of(bundle: &Bundle) -> Digest {
    let leaves = bundle.names().into_iter().map(|name| {
        let bytes: Vec<u8> = bundle
            .read_f32(&name)
            .unwrap()
            .into_iter()
            .flat_map(f32::to_le_bytes)
            .collect();
        let shape: Vec<u64> = bundle
            .shape(&name)
            .unwrap()
            .into_iter()
            .map(|dim| dim as u64)
            .collect();
        (name.clone(), leaf(&name, "F32", &shape, Digest::of(&bytes)))
    });
    weights_digest(&leaves.collect())
}

/// Trains an adapter for one step, with a norm that it stores in full, and returns its PEFT files.
fn trained(files: &Files) -> Files {
    let adapter = json!({ "r": 2, "target_modules": ["q_proj"], "modules_to_save": ["norm"] });
    let (mut trainer, origin, assets) = start(files, &settings(adapter, Value::Null), &cpu());
    go(&mut trainer, 1);
    let source = ExportSource::of_trainer(&trainer, assets, origin.base, "data").unwrap();
    let mut out = written(
        &source,
        Vec::new(),
        &ExportOptions {
            format: ExportFormat::Peft,
            ..ExportOptions::default()
        },
    );
    out.retain(|(name, _)| name.starts_with("adapter_"));
    out
}

fn stated(adapter: &Files) -> Option<String> {
    let (_, bytes) = adapter
        .iter()
        .find(|(name, _)| name == "adapter_model.safetensors")
        .unwrap();
    SafetensorsFile::open(&tabtune::formats::MemorySource::new("a", bytes.clone()))
        .unwrap()
        .metadata
        .get(KEY)
}

fn beside(files: &Files, adapter: &Files, apart: bool) -> Bundle {
    open_model_with(
        sources(files),
        OpenOptions {
            adapter: Some(sources(adapter)),
            apart,
            ..OpenOptions::default()
        },
    )
    .unwrap()
}

/// Returns the codes of the warnings for a base, with the adapter merged and with the adapter separate.
fn told(files: &Files, adapter: &Files) -> [Vec<&'static str>; 2] {
    [false, true].map(|apart| {
        beside(files, adapter, apart)
            .warnings
            .iter()
            .map(|warning| warning.code)
            .collect()
    })
}

#[test]
fn an_adapter_states_the_digest_of_its_base_and_another_base_is_reported() {
    let files = folder(&shape(), ExportDtype::F32);
    let adapter = trained(&files);
    assert_eq!(
        stated(&adapter),
        Some(digest_of(&opened(&files)).to_string())
    );
    let none = || [Vec::<&str>::new(), Vec::new()];
    assert_eq!(told(&files, &adapter), none());
    // The same values in another container, with the rows of q and k in another order.
    assert_eq!(told(&base(&shape(), "f32"), &adapter), none());

    let other = ["adapter.base.differs"; 1];
    for files in [
        base(&shape(), "q8_0"),
        folder(&shape(), ExportDtype::F16),
        other_values(),
    ] {
        assert_eq!(told(&files, &adapter), [other.to_vec(), other.to_vec()]);
    }
    let words = beside(&other_values(), &adapter, false).warnings[0].message();
    assert!(
        words.contains(&stated(&adapter).unwrap()[..8])
            && words.contains(&digest_of(&opened(&other_values())).to_string()[..8]),
        "{words}"
    );
}

/// Makes a model of the same shapes with other values.
fn other_values() -> Files {
    let model = block_on(Model::init(
        &shape(),
        8,
        Precision::F32,
        &cpu().inner(),
        &Interrupt::none(),
    ))
    .unwrap();
    let assets = tabtune::bundle::ModelAssets::of_config(&shape(), None);
    let source = ExportSource::of_weights(Weights::of_model(&model), assets);
    let mut files = written(&source, Vec::new(), &ExportOptions::default());
    files.retain(|(name, _)| name.ends_with(".safetensors") || name == "config.json");
    files
}

/// Tensors stored next to a base are not part of it: a run that continues from an adapter states the digest of the same base, whether or not it
/// has a norm of its own.
#[test]
fn an_adapter_that_continues_states_the_base_and_not_itself() {
    for files in [folder(&shape(), ExportDtype::F32), base(&shape(), "q8_0")] {
        let adapter = trained(&files);
        let bundle = beside(&files, &adapter, true);
        assert_ne!(
            bundle.read_f32("model.norm.weight").unwrap(),
            opened(&files).read_f32("model.norm.weight").unwrap()
        );
        let again = Base::of_bundle(&bundle).pieced(&bundle).unwrap();
        assert_eq!(
            again.weights_digest.map(|digest| digest.to_string()),
            stated(&adapter)
        );
    }
}
