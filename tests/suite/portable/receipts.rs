//! Line 43 of ./README.md: receipts of imports, selections and deltas, and of the files written from them.

use std::collections::BTreeMap;
use std::rc::Rc;

use tabtune::bundle::{FileStream, Verification, verify};
use tabtune::export::{ExportDtype, ExportOptions, JsonEncoding};
use tabtune::formats::{ByteSource, MemorySource};
use tabtune::portable::{ModelAdapterDelta, ModelMetadata, PortableModelBundle, SharedFiles};
use tabtune::state::{
    Bytes, CheckResult, ModelIoArtifactReceipt, NamePolicy, Operation, PortableModelImportRequest,
    PortableModelStateDict, RECEIPT,
};
use tabtune_tests::block_on;

use super::state_g::{state_g, written};

type Files = Vec<(String, Vec<u8>)>;

fn shared(files: &Files) -> SharedFiles {
    files
        .iter()
        .map(|(name, bytes)| {
            Rc::new(MemorySource::new(&**name, bytes.clone())) as Rc<dyn ByteSource>
        })
        .collect()
}

fn verified(receipt: &ModelIoArtifactReceipt, files: &Files) -> Verification {
    let sources: Vec<Rc<dyn ByteSource>> = files
        .iter()
        .map(|(name, bytes)| {
            Rc::new(MemorySource::new(&**name, bytes.clone())) as Rc<dyn ByteSource>
        })
        .collect();
    verify(receipt, &sources).unwrap()
}

/// Checks that the receipt is confirmed by its files, and not by files with one changed byte.
#[track_caller]
fn binds(receipt: &ModelIoArtifactReceipt, operation: Operation, files: &Files) -> Verification {
    assert_eq!(receipt.operation, operation);
    assert_eq!(
        receipt.inputs.len() + receipt.outputs.len(),
        files.len(),
        "{receipt:?}"
    );
    let good = verified(receipt, files);
    assert!(
        good.ok
            && good
                .checks
                .iter()
                .all(|check| check.result != CheckResult::Absent),
        "{good:?}"
    );
    for at in 0..files.len() {
        let len = files[at].1.len();
        for place in [0, 8, len / 3, len / 2, len - 1] {
            let mut changed = files.clone();
            changed[at].1[place] ^= 4;
            assert!(!verified(receipt, &changed).ok, "{} {place}", files[at].0);
        }
    }
    let mut other = receipt.clone();
    other.tensors.admitted.push("x".into());
    assert!(!verified(&other, files).ok);
    good
}

/// Splits the written files into the receipt and the others.
fn split(stream: FileStream) -> (Files, ModelIoArtifactReceipt) {
    let mut files = written(stream);
    let (name, text) = files.pop().unwrap();
    assert_eq!(name, RECEIPT);
    (
        files,
        ModelIoArtifactReceipt::read(std::str::from_utf8(&text).unwrap(), RECEIPT).unwrap(),
    )
}

fn of_state(state: PortableModelStateDict) -> PortableModelBundle {
    PortableModelBundle {
        state_dict: state,
        metadata: ModelMetadata::default(),
    }
}

/// Saves state G as `<name>.safetensors` and its optimizer file, with `change` added to the head's weights.
fn saved(name: &str, change: f32) -> (Files, PortableModelBundle) {
    let state = state_g();
    let mut tensors = state.tensors().clone();
    let head: Vec<u8> = block_on(state.dense_f32("head.weight"))
        .unwrap()
        .iter()
        .flat_map(|value| (value + change).to_le_bytes())
        .collect();
    let weight = tensors.get_mut("head.weight").unwrap();
    *weight = weight.clone().with_bytes(Bytes::host(head));
    let state = PortableModelStateDict::new(
        state.identity.clone(),
        state.source_format,
        tensors,
        state.groups().to_vec(),
    )
    .unwrap();
    let (mut files, receipt) = split(
        block_on(of_state(state).export_safetensors_as(&format!("{name}.safetensors"))).unwrap(),
    );
    let good = binds(&receipt, Operation::Export, &files);
    let verified: Vec<&str> = good
        .checks
        .iter()
        .filter(|c| c.result == CheckResult::Verified)
        .map(|c| c.name.as_str())
        .collect();
    assert!(
        ["weights", "optimizer", "assignment", "state", "bundle"]
            .iter()
            .all(|name| verified.contains(name)),
        "{verified:?}"
    );
    let imported = block_on(PortableModelBundle::import_safetensors(shared(&files))).unwrap();
    let digests = imported.receipt.digests.clone();
    assert_eq!(
        (digests.weights, digests.state, digests.bundle),
        (
            receipt.digests.weights,
            receipt.digests.state,
            receipt.digests.bundle
        )
    );
    binds(&imported.receipt, Operation::Import, &files);
    files
        .iter_mut()
        .for_each(|(file, _)| *file = file.replace("optimizer.", &format!("{name}-optimizer.")));
    let imported = block_on(PortableModelBundle::import_safetensors(shared(&files))).unwrap();
    (files, imported.bundle)
}

#[test]
fn line_43_deltas_and_selections_bind_their_files() {
    let (base_files, base) = saved("base", 0.0);
    let (target_files, target) = saved("target", 0.5);
    let inputs = [base_files.clone(), target_files].concat();
    let derived = block_on(
        base.state_dict
            .derive_adapter_delta(&target.state_dict, "head"),
    )
    .unwrap();
    binds(&derived.receipt().unwrap(), Operation::Derive, &inputs);
    let (delta_file, receipt) = split(derived.export_as("head.safetensors").unwrap());
    binds(
        &receipt,
        Operation::Derive,
        &[inputs.clone(), delta_file.clone()].concat(),
    );
    let delta = ModelAdapterDelta::open(shared(&delta_file)[0].clone()).unwrap();

    let applied = block_on(base.state_dict.apply_adapter_delta(&delta, true)).unwrap();
    let read = [base_files.clone(), delta_file.clone()].concat();
    let receipt = block_on(applied.receipt()).unwrap();
    assert_eq!(receipt.digests.weights, Some(delta.target_weights_digest));
    binds(&receipt, Operation::Apply, &read);
    let (files, receipt) =
        split(block_on(of_state(applied).export_safetensors_as("applied.safetensors")).unwrap());
    assert_eq!(receipt.digests.weights, Some(delta.target_weights_digest));
    binds(&receipt, Operation::Apply, &[read, files].concat());

    let removed = block_on(target.state_dict.remove_adapter_delta(&delta, false)).unwrap();
    assert_eq!(removed.tensors().len(), 2);
    let receipt = block_on(removed.receipt()).unwrap();
    assert_eq!(
        (receipt.digests.weights, receipt.tensors.dropped.len()),
        (Some(delta.base_weights_digest), 5)
    );
    binds(
        &receipt,
        Operation::Remove,
        &[inputs[2..].to_vec(), delta_file].concat(),
    );

    let mut request = PortableModelImportRequest::default();
    request.selection.include_patterns = vec!["head.*".into()];
    request.key_remap.source_to_target =
        BTreeMap::from([("head.weight".to_string(), "output.weight".to_string())]);
    let (selected, report, _) = base.select_and_remap(&request).unwrap();
    let receipt = block_on(selected.receipt()).unwrap();
    assert_eq!(
        (&receipt.tensors.admitted, &receipt.tensors.dropped),
        (&report.admitted, &report.dropped)
    );
    assert_eq!(
        (&receipt.groups.admitted, &receipt.groups.dropped),
        (&report.groups_admitted, &report.groups_dropped)
    );
    assert_eq!(
        receipt.tensors.renamed,
        [("head.weight".to_string(), "output.weight".to_string())]
    );
    binds(&receipt, Operation::Select, &base_files);
    // A partial import states that it is partial, and its receipt equals that of the same import.
    let part = || {
        block_on(PortableModelBundle::import_safetensors_with_request(
            shared(&base_files),
            &request,
        ))
        .unwrap()
        .receipt
    };
    assert_eq!(part(), part());
    let good = binds(&part(), Operation::Import, &base_files);
    assert!(
        good.checks
            .iter()
            .any(|check| check.name == "weights" && check.result == CheckResult::Subset)
    );
    let (files, receipt) = split(
        block_on(selected.export_torch_state_dict_json(
            "part.state_dict.json",
            JsonEncoding::Numbers,
            false,
        ))
        .unwrap(),
    );
    binds(&receipt, Operation::Select, &[base_files, files].concat());
}

fn golden(name: &str) -> (String, Vec<u8>) {
    (
        name.rsplit('/').next().unwrap_or(name).to_string(),
        tabtune_tests::golden(name),
    )
}

#[test]
fn line_43_imported_models_leave_as_folders_and_gguf_files() {
    let hf = PortableModelImportRequest {
        names: NamePolicy::Hf,
        ..PortableModelImportRequest::default()
    };
    for name in ["llama3.gguf", "qwen2.gguf", "gpt2.gguf"] {
        let base = vec![golden(name)];
        let imported = block_on(PortableModelBundle::import_gguf(&shared(&base), &hf)).unwrap();
        binds(&imported.receipt, Operation::Import, &base);
        let own = block_on(PortableModelBundle::import_gguf(
            &shared(&base),
            &PortableModelImportRequest::default(),
        ))
        .unwrap();
        binds(&own.receipt, Operation::Import, &base);
        assert_eq!(
            own.receipt.digests.tokenizer,
            own.bundle
                .metadata
                .tokenizer
                .map(|binding| binding.tokenizer_digest)
        );
        let weights = Some(block_on(imported.bundle.state_dict.weights_digest()).unwrap());
        let (folder, receipt) = split(
            block_on(imported.bundle.export_hf_folder(&ExportOptions {
                dtype: ExportDtype::F32,
                ..Default::default()
            }))
            .unwrap(),
        );
        binds(
            &receipt,
            Operation::Convert,
            &[base.clone(), folder.clone()].concat(),
        );
        let again = block_on(PortableModelBundle::import_hf_folder(
            &shared(&folder),
            &PortableModelImportRequest::default(),
        ))
        .unwrap();
        binds(&again.receipt, Operation::Import, &folder);
        let f32 = ExportOptions {
            types: Some("f32".into()),
            ..ExportOptions::default()
        };
        let (made, receipt) = split(block_on(again.bundle.export_gguf(&Vec::new(), &f32)).unwrap());
        assert_eq!(
            receipt.digests.weights, again.receipt.digests.weights,
            "{name}"
        );
        binds(&receipt, Operation::Convert, &[folder, made].concat());
        // Written back into its base, nothing changes.
        let (patched, receipt) = split(
            block_on(
                imported
                    .bundle
                    .export_gguf(&shared(&base), &ExportOptions::default()),
            )
            .unwrap(),
        );
        assert!(patched[0].1 == base[0].1, "{name}");
        assert_eq!(receipt.digests.weights, weights);
    }
    let error = block_on(of_state(state_g()).export_hf_folder(&ExportOptions::default()))
        .map(|_| ())
        .unwrap_err();
    assert_eq!(error.code(), "bundle.config.missing");
}
