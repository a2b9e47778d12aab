//! Receipts: their statements can be verified, and every change is found.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;
use tabtune::bundle::{OpenOptions, Verification, open_bundle_with, verify, verify_files};
use tabtune::export::{
    ExportDtype, ExportFormat, ExportOptions, ExportSource, export, export_folder, export_gguf,
};
use tabtune::formats::{ByteSource, Digest, MemorySource, SafetensorsFile};
use tabtune::portable::PortableModelBundle;
use tabtune::state::{
    CheckResult, ModelIoArtifactReceipt, NamePolicy, Operation, PortableModelImportRequest,
    RECEIPT, ReceiptFile, leaf, weights_digest,
};
use tabtune_tests::families::Family;
use tabtune_tests::{block_on, gguf_families};

use super::{all_files, golden, goldens, named, of_files, source, sources};

type Written = Vec<(String, Vec<u8>)>;

fn golden_folder() -> Written {
    ["config.json", "model.safetensors"]
        .map(|name| (name.to_string(), golden(&format!("llama3/{name}"))))
        .into()
}

fn exported() -> Written {
    let options = ExportOptions {
        shard_bytes: Some(3_000),
        ..ExportOptions::default()
    };
    all_files(&mut export_folder(&of_files(sources(&golden_folder())), &options).unwrap())
}

fn result(found: &Verification, name: &str) -> CheckResult {
    found
        .checks
        .iter()
        .find(|check| check.name == name)
        .unwrap_or_else(|| panic!("{name}: {found:?}"))
        .result
}

#[test]
fn line_43_receipt_states_what_the_files_have() {
    let files = exported();
    let text = String::from_utf8(files.last().unwrap().1.clone()).unwrap();
    assert_eq!(files.last().unwrap().0, RECEIPT);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&value["version"], &value["operation"]),
        (&1.into(), &"convert".into())
    );
    let mut leaves = BTreeMap::new();
    for (at, (name, bytes)) in files.iter().take(files.len() - 1).enumerate() {
        let output = &value["outputs"][at];
        assert_eq!(
            (output["name"].as_str(), output["bytes"].as_u64()),
            (Some(name.as_str()), Some(bytes.len() as u64))
        );
        assert_eq!(output["sha256"], Digest::of(bytes).to_string());
        if name.ends_with(".safetensors") {
            for tensor in SafetensorsFile::open(&MemorySource::new(&**name, bytes.clone()))
                .unwrap()
                .tensors
            {
                let payload = Digest::of(&bytes[tensor.begin as usize..tensor.end() as usize]);
                leaves.insert(
                    tensor.name.clone(),
                    leaf(&tensor.name, &tensor.dtype, &tensor.shape, payload),
                );
            }
        }
    }
    assert_eq!(value["outputs"].as_array().unwrap().len(), files.len() - 1);
    assert_eq!(
        value["digests"]["weights"],
        weights_digest(&leaves).to_string()
    );
    let base = golden("llama3/model.safetensors");
    let header = 8 + u64::from_le_bytes(base[..8].try_into().unwrap()) as usize;
    assert_eq!(
        value["base"]["files"][0]["sha256"],
        Digest::of(&base).to_string()
    );
    assert_eq!(
        value["base"]["files"][0]["header_sha256"],
        Digest::of(&base[..header]).to_string()
    );
    assert_eq!(value["inputs"][0]["sha256"], Digest::of(&base).to_string());
    assert_eq!(exported(), files, "the same bytes twice");
}

#[test]
fn line_43_receipt_is_confirmed_and_refuses_every_changed_file() {
    let files = exported();
    let good = verify_files(&sources(&files), None).unwrap();
    assert!(good.ok, "{good:?}");
    assert_eq!(result(&good, "receipt_digest"), CheckResult::Verified);
    assert_eq!(result(&good, "weights"), CheckResult::Verified);
    assert_eq!(
        result(&good, "input:model.safetensors"),
        CheckResult::Skipped,
        "the base is elsewhere"
    );
    for (at, (name, bytes)) in files
        .iter()
        .enumerate()
        .filter(|(_, (name, _))| name != RECEIPT)
    {
        for place in [0, bytes.len() / 2, bytes.len() - 1] {
            let mut changed = files.clone();
            changed[at].1[place] ^= 0x10;
            let found = verify_files(&sources(&changed), None).unwrap();
            assert!(
                !found.ok && result(&found, &format!("output:{name}")) == CheckResult::Differs,
                "{name} {place}"
            );
        }
        let mut absent = files.clone();
        absent.remove(at);
        let found = verify_files(&sources(&absent), None).unwrap();
        assert!(
            !found.ok && result(&found, &format!("output:{name}")) == CheckResult::Absent,
            "{name}"
        );
        let mut cut = files.clone();
        cut[at].1.pop();
        assert!(!verify_files(&sources(&cut), None).unwrap().ok, "{name}");
    }
    // Every change in the receipt itself, except for its white space.
    let text = &files.last().unwrap().1;
    for (place, byte) in text
        .iter()
        .enumerate()
        .filter(|(_, byte)| !byte.is_ascii_whitespace())
        .step_by(3)
    {
        let mut changed = files.clone();
        changed.last_mut().unwrap().1[place] = if *byte == b'7' { b'3' } else { b'7' };
        let found = verify_files(&sources(&changed), None);
        assert!(
            found.map_or_else(|error| error.code() == "receipt.invalid", |found| !found.ok),
            "{place}"
        );
    }
    let without: Written = files
        .iter()
        .filter(|(name, _)| name != RECEIPT)
        .cloned()
        .collect();
    let found = verify_files(&sources(&without), None).unwrap();
    assert!(!found.ok && result(&found, "receipt") == CheckResult::Absent);
}

#[test]
fn line_43_inputs_are_compared_where_they_are_given() {
    // One file, so that the output has the same name as the input.
    let mut stream = export_folder(
        &of_files(sources(&golden_folder())),
        &ExportOptions::default(),
    )
    .unwrap();
    let files = all_files(&mut stream);
    let receipt = stream.receipt().unwrap();
    assert_eq!(
        &ModelIoArtifactReceipt::read(
            std::str::from_utf8(&files.last().unwrap().1).unwrap(),
            RECEIPT
        )
        .unwrap(),
        receipt
    );
    let given = |change: bool| {
        let mut input = golden("llama3/model.safetensors");
        let last = input.len() - 1;
        input[last] ^= u8::from(change);
        let mut all = sources(&files);
        all.insert(0, source("elsewhere/model.safetensors", input));
        verify(receipt, &all).unwrap()
    };
    assert!(given(false).ok);
    assert_eq!(
        result(&given(false), "input:model.safetensors"),
        CheckResult::Verified
    );
    assert!(!given(true).ok);
    assert_eq!(
        result(&given(true), "input:model.safetensors"),
        CheckResult::Differs
    );
    assert_eq!(
        result(&given(true), "output:model.safetensors"),
        CheckResult::Verified
    );
}

#[test]
fn line_43_gguf_file_has_its_receipt_next_to_the_stream() {
    for base in [Vec::new(), goldens(&["llama3.gguf"])] {
        let patched = !base.is_empty();
        let options = named("out", if patched { "as-base" } else { "q8_0" });
        let mut stream = block_on(export_gguf(
            &of_files(goldens(&["llama3.gguf"])),
            base,
            &options,
        ))
        .unwrap();
        let files = all_files(&mut stream);
        let receipt = stream.receipt().unwrap();
        assert_eq!(receipt.inputs.len(), 1, "{:?}", receipt.inputs);
        assert_eq!(receipt.conversions.is_empty(), patched);
        let text = receipt.to_text().unwrap();
        let mut all = sources(&files);
        all.extend(goldens(&["llama3.gguf"]));
        let found = verify_files(&all, Some(&text)).unwrap();
        assert!(
            found.ok && result(&found, "input:llama3.gguf") == CheckResult::Verified,
            "{found:?}"
        );
        for place in [0, 100, files[0].1.len() - 1] {
            let mut changed = files.clone();
            changed[0].1[place] ^= 1;
            assert!(!verify_files(&sources(&changed), Some(&text)).unwrap().ok);
        }
    }
}

/// A merge lists the adapter's files among its inputs, and each of their bytes counts.
#[test]
fn line_43_adapter_is_an_input_of_its_merge() {
    let read = |path: &str| {
        std::fs::read(format!("{}/golden/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    };
    let of = |folder: &str, names: [&str; 2]| -> Written {
        names
            .map(|name| (name.to_string(), read(&format!("{folder}/{name}"))))
            .into()
    };
    let inputs = [
        of("models/gpt2", ["config.json", "model.safetensors"]),
        of(
            "adapters/gpt2",
            ["adapter_config.json", "adapter_model.safetensors"],
        ),
    ];
    let options = OpenOptions {
        adapter: Some(sources(&inputs[1])),
        ..OpenOptions::default()
    };
    let bundle = Rc::new(open_bundle_with(sources(&inputs[0]), options).unwrap());
    let mut stream = export_folder(
        &ExportSource::of_bundle(&bundle)
            .unwrap()
            .summed(&bundle)
            .unwrap(),
        &ExportOptions::default(),
    )
    .unwrap();
    let files = all_files(&mut stream);
    let receipt = stream.receipt().unwrap();
    assert_eq!(receipt.operation, Operation::Merge);
    assert!(receipt.checks.is_empty(), "{:?}", receipt.checks);
    let known = [
        "model.safetensors",
        "adapter_config.json",
        "adapter_model.safetensors",
    ];
    assert_eq!(
        receipt
            .inputs
            .iter()
            .map(|file| file.name.as_str())
            .collect::<Vec<_>>(),
        known
    );
    let given: Written = inputs
        .concat()
        .into_iter()
        .filter(|(name, _)| name != "config.json")
        .collect();
    let verified = |given: &Written| {
        verify(receipt, &sources(&[files.clone(), given.clone()].concat())).unwrap()
    };
    assert!(verified(&given).ok, "{:?}", verified(&given));
    for (at, (name, bytes)) in given.iter().enumerate() {
        for place in [0, bytes.len() / 2, bytes.len() - 1] {
            let mut changed = given.clone();
            changed[at].1[place] ^= 4;
            let found = verified(&changed);
            assert!(
                !found.ok && result(&found, &format!("input:{name}")) == CheckResult::Differs,
                "{name} {place}"
            );
        }
    }
}

/// Imports a GGUF file and returns the digest of its weights under Hugging Face's names and in its order.
fn imported_weights(files: &Written) -> Digest {
    let files: Vec<Rc<dyn ByteSource>> = files
        .iter()
        .map(|(name, bytes)| {
            Rc::new(MemorySource::new(&**name, bytes.clone())) as Rc<dyn ByteSource>
        })
        .collect();
    let request = PortableModelImportRequest {
        names: NamePolicy::Hf,
        ..PortableModelImportRequest::default()
    };
    let imported = block_on(PortableModelBundle::import_gguf(&files, &request)).unwrap();
    block_on(imported.bundle.state_dict.weights_digest()).unwrap()
}

#[test]
fn line_43_receipt_states_every_digest_that_applies_in_every_container() {
    let confirmed = |files: &Written, receipt: &ModelIoArtifactReceipt, digests: &[&str]| {
        let found = verify_files(&sources(files), Some(&receipt.to_text().unwrap())).unwrap();
        assert!(found.ok, "{found:?}");
        digests
            .iter()
            .for_each(|name| assert_eq!(result(&found, name), CheckResult::Verified, "{name}"));
    };
    for Family {
        name: family,
        gguf: base,
    } in gguf_families()
    {
        let source = of_files(goldens(base));
        let options = ExportOptions {
            dtype: ExportDtype::F32,
            manifest: true,
            ..ExportOptions::default()
        };
        let mut stream = export_folder(&source, &options).unwrap();
        let files: Written = all_files(&mut stream)
            .into_iter()
            .filter(|(name, _)| name != RECEIPT)
            .collect();
        let folder = stream.receipt().unwrap().clone();
        confirmed(&files, &folder, &["weights", "state", "bundle"]);
        for types in ["f32", "f16", "q8_0", "as-base"] {
            for base in [Vec::new(), goldens(base)] {
                let mut stream = block_on(export_gguf(&source, base, &named("m", types))).unwrap();
                let files: Written = all_files(&mut stream)
                    .into_iter()
                    .filter(|(name, _)| name != RECEIPT)
                    .collect();
                let receipt = stream.receipt().unwrap();
                confirmed(&files, receipt, &["weights", "state", "bundle"]);
                assert_eq!(
                    receipt.digests.weights,
                    Some(imported_weights(&files)),
                    "{family} {types}"
                );
                assert_eq!(
                    (types == "f32").then_some(receipt.digests.weights),
                    (types == "f32").then_some(folder.digests.weights)
                );
                assert_eq!(
                    receipt.digests.tokenizer.is_some(),
                    source.assets.tokenizer.is_some(),
                    "{family}"
                );
            }
        }
        // The columns of some matrices are not read in the order in which they are hashed.
        let of_base = source.base.unwrap().weights_digest;
        assert_eq!(of_base.is_none(), ["gpt2", "qwen3_5"].contains(family));
        if base.len() == 1 {
            let whole: Written = base
                .iter()
                .map(|name| (name.to_string(), golden(name)))
                .collect();
            assert!(
                of_base.is_none_or(|digest| digest == imported_weights(&whole)),
                "{family}"
            );
        }
    }
}

/// The receipt uses the caller's name of a file, whatever the model is called; and a patch states the digest of its base.
#[test]
fn line_43_receipt_has_the_names_and_the_base_of_the_caller() {
    let mut source = of_files(goldens(&["llama3.gguf"]));
    source.base.as_mut().unwrap().files[0].sha256 = None;
    for (format, base, mine) in [
        (ExportFormat::Gguf, goldens(&["llama3.gguf"]), "mine.gguf"),
        (ExportFormat::Gguf, Vec::new(), "mine.gguf"),
        (ExportFormat::Json, Vec::new(), "mine.state_dict.json"),
    ] {
        let options = ExportOptions {
            format,
            file_name: Some(mine.into()),
            name: Some("other".into()),
            ..ExportOptions::default()
        };
        let patched = !base.is_empty();
        let mut stream = block_on(export(&source, base, &options)).unwrap();
        let files = all_files(&mut stream);
        let receipt = stream.receipt().unwrap();
        assert_eq!(
            (files[0].0.as_str(), receipt.outputs[0].name.as_str()),
            (mine, mine)
        );
        let sum = receipt.base.as_ref().unwrap().files[0].sha256;
        assert_eq!(
            (sum, receipt.checks.is_empty()),
            (patched.then(|| Digest::of(&golden("llama3.gguf"))), patched)
        );
        assert!(verify_files(&sources(&files), None).unwrap().ok);
    }
    // A name with another ending is refused.
    for (format, file) in [
        (ExportFormat::Gguf, "a/b.gguf"),
        (ExportFormat::Gguf, "a.json"),
        (ExportFormat::Json, "a.json"),
    ] {
        let wrong = ExportOptions {
            format,
            file_name: Some(file.into()),
            ..ExportOptions::default()
        };
        assert_eq!(
            block_on(export(&source, Vec::new(), &wrong))
                .map(|_| ())
                .unwrap_err()
                .code(),
            "config.invalid",
            "{file}"
        );
    }
}

#[test]
fn broken_receipts_are_refused() {
    let text = String::from_utf8(exported().last().unwrap().1.clone()).unwrap();
    assert!(ModelIoArtifactReceipt::read(&text, RECEIPT).is_ok());
    for (from, to) in [
        ("\"version\": 1", "\"version\": 2"),
        ("\"version\": 1", "\"version\": 1, \"extra\": 0"),
        ("\"version\": 1", "\"version\": 1, \"version\": 1"),
        ("\"version\": 1", "\"version\": 9007199254740993"),
        ("\"receipt_digest\"", "\"time\""),
        ("\"operation\": \"convert\"", "\"operation\": \"invent\""),
        ("\"inputs\"", "\"in\""),
        ("{", "["),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text);
        assert_eq!(
            ModelIoArtifactReceipt::read(&changed, RECEIPT)
                .unwrap_err()
                .code(),
            "receipt.invalid",
            "{to}"
        );
    }
    // Time and device are outside the digest.
    let mut receipt = ModelIoArtifactReceipt::read(&text, RECEIPT).unwrap();
    receipt.time = Some("2026-01-01T00:00:00Z".into());
    receipt.device = Some("a GPU".into());
    assert_eq!(Some(receipt.digest().unwrap()), receipt.receipt_digest);
}

/// Files in a format that only other programs read are compared by size and bytes; their digests are said to be skipped.
#[test]
fn line_43_files_that_nothing_here_reads_are_compared_as_bytes() {
    let bytes = b"PK\x03\x04 arrays of NumPy".to_vec();
    let text = String::from_utf8(exported().pop().unwrap().1).unwrap();
    let receipt = ModelIoArtifactReceipt::read(&text, RECEIPT).unwrap();
    let outputs = vec![ReceiptFile::of_name(
        "model.npz",
        bytes.len() as u64,
        Some(Digest::of(&bytes)),
    )];
    let receipt = ModelIoArtifactReceipt { outputs, ..receipt }
        .seal()
        .unwrap();
    let found = verify(&receipt, &[source("model.npz", bytes.clone())]).unwrap();
    assert!(
        found.ok && result(&found, "output:model.npz") == CheckResult::Verified,
        "{found:?}"
    );
    assert_eq!(result(&found, "weights"), CheckResult::Skipped);
    let mut changed = bytes;
    changed[9] ^= 1;
    let found = verify(&receipt, &[source("model.npz", changed)]).unwrap();
    assert!(
        !found.ok && result(&found, "output:model.npz") == CheckResult::Differs,
        "{found:?}"
    );
}
