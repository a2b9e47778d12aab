//! Compares each cell of a contract with what importer and exporter then do, for models, for a run and for states without a model.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::json;
use tabtune::bundle::FileStream;
use tabtune::export::ExportOptions;
use tabtune::formats::{ByteSource, MemorySource};
use tabtune::portable::{
    ModelAdapterDelta, ModelMetadata, OpenedBundle, PortableModelBundle, SharedFiles, Support,
    TrainingGroups, open_state,
};
use tabtune::state::{
    Bytes, Identity, NamePolicy, PortableModelImportRequest, PortableModelStateDict, SourceWord,
    Tensor,
};
use tabtune_tests::{block_on, cpu};

use super::continuation::{assets, settings, written};
use super::state_g::state_g;
use crate::resume::{go, start};

/// An artifact with the files that it came from.
struct Artifact {
    name: &'static str,
    bundle: PortableModelBundle,
    files: SharedFiles,
}

fn golden(names: &[&str]) -> SharedFiles {
    let source = |name: &&str| {
        let own = name.rsplit('/').next().unwrap_or(name);
        let bytes = tabtune_tests::golden(name);
        Rc::new(MemorySource::new(own, bytes)) as Rc<dyn ByteSource>
    };
    names.iter().map(source).collect()
}

fn imported(files: &SharedFiles) -> tabtune::Result<PortableModelBundle> {
    let opened: OpenedBundle = open_state(files, NamePolicy::Hf)?;
    let imported = block_on(opened.import(&PortableModelImportRequest::default()))?;
    Ok(imported.bundle)
}

fn bare(state_dict: PortableModelStateDict) -> PortableModelBundle {
    let metadata = ModelMetadata::default();
    PortableModelBundle {
        state_dict,
        metadata,
    }
}

fn blocks() -> PortableModelStateDict {
    let tensor = Tensor::parameter("a", "GGML:Q4_0", &[32], Bytes::host(vec![7; 18]));
    let tensors = BTreeMap::from([(tensor.name.clone(), tensor)]);
    PortableModelStateDict::new(
        Identity::default(),
        SourceWord::Tabtune,
        tensors,
        Vec::new(),
    )
    .unwrap()
}

fn artifacts() -> Vec<Artifact> {
    let mut run = start(settings(&json!({"type": "adamw"}), "f32"), &cpu().inner());
    go(&mut run, 2);
    let run = TrainingGroups::new(run);
    let run = PortableModelBundle::from_training_groups(&run, &assets(), None).unwrap();
    let folder = golden(&["qwen2/config.json", "qwen2/model.safetensors"]);
    let gguf = golden(&["llama3.gguf"]);
    let artifact = |name, bundle, files| Artifact {
        name,
        bundle,
        files,
    };
    vec![
        artifact("run", run, Vec::new()),
        artifact("folder", imported(&folder).unwrap(), folder),
        artifact("gguf", imported(&gguf).unwrap(), gguf),
        artifact("state", bare(state_g()), Vec::new()),
        artifact("blocks", bare(blocks()), Vec::new()),
    ]
}

fn options(options: serde_json::Value) -> ExportOptions {
    serde_json::from_value(options).unwrap()
}

/// Writes the artifact to the container `surface`; `None` if there is no such writer.
fn export(artifact: &Artifact, surface: &str) -> Option<tabtune::Result<FileStream>> {
    let Artifact { bundle, files, .. } = artifact;
    let base = match artifact.name {
        "gguf" => files.clone(),
        _ => Vec::new(),
    };
    Some(match surface {
        "tabtune_manifest_safetensors" => block_on(bundle.export_safetensors()),
        "torch_state_dict_json" => {
            let encoding = options(json!({"format": "json", "encoding": "base64"})).encoding;
            block_on(bundle.export_torch_state_dict_json("a.state_dict.json", encoding, true))
        }
        "gguf" => block_on(bundle.export_gguf(&base, &options(json!({"format": "gguf"})))),
        "hf_folder" => {
            let whole = json!({"format": "safetensors", "optimizer": true, "manifest": true});
            block_on(bundle.export_hf_folder(&options(whole)))
        }
        "peft_adapter" => block_on(bundle.export(&options(json!({"format": "peft"})))),
        "gguf_adapter" => block_on(bundle.export(&options(json!({"format": "gguf-adapter"})))),
        "exact_delta" => {
            let derived = bundle
                .state_dict
                .derive_adapter_delta(&bundle.state_dict, "a");
            block_on(derived).and_then(|delta| delta.export_as("delta.safetensors"))
        }
        _ => return None,
    })
}

/// Finds out how much of the artifact a container holds: the degrees of support for writing it, and for reading the result.
fn found(artifact: &Artifact, surface: &str) -> [Support; 2] {
    let none = [Support::Unsupported; 2];
    let before = block_on(artifact.bundle.state_dict.digests()).unwrap();
    match surface {
        "tabtune_state_dict" => return [Support::Supported; 2],
        "exact_delta" => return of_delta(artifact),
        _ => {}
    }
    let Some(Ok(stream)) = export(artifact, surface) else {
        return none;
    };
    let Ok(back) = imported(&written(stream)) else {
        return [Support::Supported, Support::Unsupported];
    };
    let after = block_on(back.state_dict.digests()).unwrap();
    // A GGUF file has no paths, even where there are no groups to lose.
    if surface != "gguf" && after.state == before.state {
        [Support::Supported; 2]
    } else {
        assert_eq!(after.weights, before.weights, "{} {surface}", artifact.name);
        [Support::Lossy; 2]
    }
}

/// Derives a delta of the artifact to itself, reads it from its file and applies it.
fn of_delta(artifact: &Artifact) -> [Support; 2] {
    let Some(Ok(stream)) = export(artifact, "exact_delta") else {
        return [Support::Unsupported; 2];
    };
    let state = &artifact.bundle.state_dict;
    let file = Rc::clone(&written(stream)[0]);
    let applied = ModelAdapterDelta::open(file)
        .and_then(|delta| block_on(state.apply_adapter_delta(&delta, true)));
    let digest = |state: &PortableModelStateDict| block_on(state.digests()).unwrap().state;
    match applied {
        Ok(applied) if digest(&applied) == digest(state) => [Support::Supported; 2],
        _ => [Support::Supported, Support::Unsupported],
    }
}

#[test]
fn contract_says_what_importer_and_exporter_do() {
    for artifact in artifacts() {
        let contract = block_on(artifact.bundle.compatibility_contract(false)).unwrap();
        for row in &contract.surfaces {
            let said = [row.export.support, row.round_trip.support];
            let place = format!("{} {}: {}", artifact.name, row.surface, row.export.reason);
            assert_eq!(said, found(&artifact, &row.surface), "{place}");
        }
    }
}

/// Files of the containers that no importer reads.
#[test]
fn containers_that_are_not_read_are_refused() {
    for (name, mark) in [
        ("model.pt", &b"PK\x03\x04"[..]),
        ("state.bin", b"\x80\x02}q\x00."),
    ] {
        let file: SharedFiles = vec![Rc::new(MemorySource::new(name, mark.to_vec()))];
        assert!(open_state(&file, NamePolicy::Hf).is_err(), "{name}");
    }
}
