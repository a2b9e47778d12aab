//! Bundles: folders, GGUF files, and the formats that they can become.

use std::rc::Rc;

use serde_json::json;
use tabtune::formats::{ByteSource, Digest, FileTensor, GgufValue, MemorySource, gguf_header};
use tabtune::portable::{
    ContractFacts, ModelIoCompatibilityContract, PortableModelBundle, SharedFiles, Support,
    open_gguf,
};
use tabtune::state::{
    Identity, ModelStateTensorManifest, NamePolicy, PortableModelImportRequest, SourceWord,
    TokenizerFamily,
};
use tabtune_tests::families::Family;
use tabtune_tests::{block_on, gguf_families};

fn golden(names: &[&str]) -> SharedFiles {
    let file = |name: &&str| {
        Rc::new(MemorySource::new(*name, tabtune_tests::golden(name))) as Rc<dyn ByteSource>
    };
    names.iter().map(file).collect()
}

fn hf() -> PortableModelImportRequest {
    PortableModelImportRequest {
        names: NamePolicy::Hf,
        ..PortableModelImportRequest::default()
    }
}

fn weights_of_gguf(files: &SharedFiles, request: &PortableModelImportRequest) -> Digest {
    let imported = block_on(PortableModelBundle::import_gguf(files, request)).unwrap();
    block_on(imported.bundle.state_dict.weights_digest()).unwrap()
}

/// Line 27 of ./README.md: the same F32 weights as a folder and as GGUF under Hugging Face's names have one digest, rows and columns in order.
#[test]
fn folder_and_gguf_of_the_same_weights_have_one_digest() {
    for Family { name: folder, gguf } in gguf_families() {
        let files = golden(&[
            &format!("{folder}/config.json"),
            &format!("{folder}/model.safetensors"),
        ]);
        let imported = block_on(PortableModelBundle::import_hf_folder(
            &files,
            &PortableModelImportRequest::default(),
        ))
        .unwrap();
        let state = &imported.bundle.state_dict;
        assert_eq!(state.source_format, SourceWord::HfFolder);
        let gguf = golden(gguf);
        assert_eq!(
            weights_of_gguf(&gguf, &hf()),
            block_on(state.weights_digest()).unwrap(),
            "{folder}"
        );
        // Parts in any order are one file.
        let turned: SharedFiles = gguf.iter().rev().cloned().collect();
        assert_eq!(
            weights_of_gguf(&turned, &hf()),
            block_on(state.weights_digest()).unwrap(),
            "{folder}"
        );
        // Under the names of the file it is another state.
        assert_ne!(
            weights_of_gguf(&gguf, &PortableModelImportRequest::default()),
            block_on(state.weights_digest()).unwrap()
        );
    }
}

/// Line 20 of ./README.md: a small GGUF file that is not a whole model: inventory, tokenizer and template.
#[test]
fn small_gguf_is_imported_with_its_tokenizer() {
    let metadata = [
        ("general.architecture", GgufValue::of_text("llama")),
        ("tokenizer.ggml.model", GgufValue::of_text("gpt2")),
        (
            "tokenizer.ggml.tokens",
            GgufValue::of_texts(&["a", "b", "ab"]),
        ),
        ("tokenizer.ggml.merges", GgufValue::of_texts(&["a b"])),
        (
            "tokenizer.chat_template",
            GgufValue::of_text("{{ messages }}"),
        ),
    ]
    .map(|(key, value)| (key.to_string(), value));
    let record = FileTensor::new("output.weight", "F32", &[2, 2]);
    let mut file = gguf_header(&metadata, &[record]).unwrap().bytes;
    [1.0f32, -2.0, 0.5, 4.0]
        .iter()
        .for_each(|value| file.extend(value.to_le_bytes()));
    file.extend([0; 16]);
    let files: SharedFiles = vec![Rc::new(MemorySource::new("small.gguf", file))];
    let imported = block_on(PortableModelBundle::import_gguf(
        &files,
        &PortableModelImportRequest::default(),
    ))
    .unwrap();
    let bundle = imported.bundle;
    assert_eq!(
        (
            bundle.state_dict.source_format,
            bundle.state_dict.identity.model_family.as_str()
        ),
        (SourceWord::Gguf, "llama")
    );
    let records: Vec<_> = bundle.state_dict.traversal_records().collect();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].model_tree_path, ["output", "weight"]);
    assert_eq!(
        block_on(bundle.state_dict.dense_f32("output.weight")).unwrap(),
        [1.0, -2.0, 0.5, 4.0]
    );
    let tokenizer = bundle.metadata.tokenizer.as_ref().unwrap();
    assert_eq!(
        (tokenizer.record.family, tokenizer.record.vocab_size),
        (TokenizerFamily::BytePairEncoding, 3)
    );
    assert!(bundle.metadata.config.is_none());
    let account = bundle.manifest().tokenizer.unwrap();
    assert_eq!(account.templates[0].sha256, Digest::of(b"{{ messages }}"));
    assert!(tokenizer.template_digest.is_some());
    // With the names of Hugging Face it would have to be a model.
    assert!(open_gguf(&files, NamePolicy::Hf).is_err());
}

fn contract(
    tensors: &[ModelStateTensorManifest],
    digest: Option<Digest>,
) -> ModelIoCompatibilityContract {
    let identity = Identity {
        model_family: "llama".into(),
        revision: "r1".into(),
        ..Identity::default()
    };
    let facts = ContractFacts {
        state_digest: digest,
        ..ContractFacts::default()
    };
    ModelIoCompatibilityContract::of(&identity, facts, tensors).unwrap()
}

/// Line 16 of ./README.md: family, revision and digests, and the statements of the rows.
#[test]
fn contract_names_what_the_artifact_can_become() {
    let dense = [ModelStateTensorManifest::parameter(
        "head.weight",
        "F32",
        &[2],
    )];
    let digest = Digest::of(b"x");
    let said = contract(&dense, Some(digest));
    let lines = said.stable_signature_lines();
    assert_eq!(
        lines[..3],
        [
            "model_family=llama".to_string(),
            "revision=r1".into(),
            format!("state_digest={digest}")
        ]
    );
    assert_eq!(
        lines[3],
        format!("contract_digest={}", said.contract_digest)
    );
    assert_eq!(
        lines[5],
        "tabtune_manifest_safetensors|import=supported|export=supported|roundtrip=supported"
    );
    let surfaces: Vec<&str> = said
        .surfaces
        .iter()
        .map(|row| row.surface.as_str())
        .collect();
    let expected = [
        "tabtune_state_dict",
        "tabtune_manifest_safetensors",
        "torch_state_dict_json",
        "gguf",
        "torch_pickle",
        "legacy_opaque_checkpoint",
        "hf_folder",
        "peft_adapter",
        "gguf_adapter",
        "exact_delta",
    ];
    assert_eq!(surfaces, expected);
    let pickle = said.row("torch_pickle").unwrap();
    assert_eq!(
        [
            pickle.import.support,
            pickle.export.support,
            pickle.round_trip.support
        ],
        [Support::Unsupported; 3]
    );
    assert!(pickle.import.reason.contains("opaque Python pickle"));
    // Everything is in the digest, and nothing else.
    assert_eq!(contract(&dense, Some(digest)), said);
    assert_ne!(contract(&dense, None).contract_digest, said.contract_digest);
    let document = serde_json::to_value(&said).unwrap();
    assert_eq!(
        document["surfaces"][3]["round_trip"]["support"],
        json!("unsupported")
    );
}

/// Line 17 of ./README.md: blocks cannot be stored as safetensors, and the reason names the tensor.
#[test]
fn contract_of_blocks_tells_the_tensor_and_what_to_do() {
    let blocks = [
        ModelStateTensorManifest::parameter("a", "F32", &[2]),
        ModelStateTensorManifest::parameter("b.weight", "GGML:Q4_0", &[32]),
        ModelStateTensorManifest::parameter("c", "GGML:Q8_0", &[32]),
    ];
    let said = contract(&blocks, None);
    let row = said.row("tabtune_manifest_safetensors").unwrap();
    assert_eq!(
        (row.import.support, row.export.support),
        (Support::Supported, Support::Unsupported)
    );
    assert!(
        row.export.reason.contains("b.weight") && row.export.reason.contains("dequantise"),
        "{}",
        row.export.reason
    );
    assert_eq!(
        said.row("torch_state_dict_json").unwrap().export.support,
        Support::Supported
    );
    let large = [ModelStateTensorManifest::parameter(
        "large",
        "F32",
        &[1 << 24],
    )];
    let json = &contract(&large, None)
        .row("torch_state_dict_json")
        .unwrap()
        .export
        .clone();
    assert_eq!(json.support, Support::Unsupported);
    assert!(json.reason.contains("large"));
}

#[test]
fn contract_of_a_folder_offers_gguf_by_the_recipe() {
    let files = golden(&["qwen2/config.json", "qwen2/model.safetensors"]);
    let imported = block_on(PortableModelBundle::import_hf_folder(
        &files,
        &PortableModelImportRequest::default(),
    ))
    .unwrap();
    let said = block_on(imported.bundle.compatibility_contract(true)).unwrap();
    let gguf = said.row("gguf").unwrap();
    assert!(gguf.export.support == Support::Lossy && gguf.export.reason.contains("qwen2"));
    assert_eq!(
        said.state_digest,
        Some(
            block_on(imported.bundle.state_dict.digests())
                .unwrap()
                .state
        )
    );
    assert_eq!(
        block_on(imported.bundle.compatibility_contract(false))
            .unwrap()
            .state_digest,
        None
    );
}
