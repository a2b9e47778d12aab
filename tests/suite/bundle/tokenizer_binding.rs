//! Tokenizers that are bound to a model in a folder.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tabtune::Error;
use tabtune::bundle::PortableTokenizerBinding;
use tabtune::formats::{Digest, MemorySource};
use tabtune::state::{
    AssetFormat, TokenizerFamily, TokenizerRecord, template_digest, tokenizer_digest,
};
use tabtune::tokenizer::Tokenizer;

/// Returns the documents of a folder with five tokens, one of which is added.
fn folder() -> BTreeMap<String, Value> {
    let tokenizer = json!({
        "version": "1.0", "added_tokens": [{"id": 4, "content": "</s>", "special": true}], "pre_tokenizer": {"type": "ByteLevel"},
        "model": {"type": "BPE", "unk_token": "a", "vocab": {"a": 0, "b": 1, "ab": 2, "<s>": 3}, "merges": ["a b"]}
    });
    let settings = json!({
        "bos_token": "<s>", "eos_token": {"content": "</s>"}, "pad_token": null, "add_bos_token": true, "chat_template": "{{ messages }}"
    });
    [
        ("tokenizer.json", tokenizer),
        ("tokenizer_config.json", settings),
        ("special_tokens_map.json", json!({"eos_token": "</s>"})),
        ("generation_config.json", json!({"eos_token_id": [4, 2, 4]})),
    ]
    .map(|(name, value)| (name.to_string(), value))
    .into()
}

fn bytes(folder: &BTreeMap<String, Value>) -> BTreeMap<String, Vec<u8>> {
    folder
        .iter()
        .map(|(name, value)| (name.clone(), value.to_string().into_bytes()))
        .collect()
}

fn bound(
    documents: &BTreeMap<String, Vec<u8>>,
) -> (PortableTokenizerBinding, Vec<(&'static str, String)>) {
    let (binding, warnings) = PortableTokenizerBinding::from_documents(documents)
        .unwrap()
        .unwrap();
    (
        binding,
        warnings
            .into_iter()
            .map(|warning| (warning.code, warning.subject))
            .collect(),
    )
}

fn edited(edit: impl FnOnce(&mut BTreeMap<String, Value>)) -> BTreeMap<String, Vec<u8>> {
    let mut folder = folder();
    edit(&mut folder);
    bytes(&folder)
}

/// The digests of another program (Python's hashlib) for a document that is not a complete tokenizer.
#[test]
fn digests_are_those_of_another_program() {
    let record = json!({
        "family": "byte_pair_encoding", "asset_format": "tokenizer_json", "asset_version": "1", "vocab_size": 32000, "add_bos": true,
        "add_eos": null, "bos": 1, "eos": [2], "pad": 0, "unk": 3
    });
    let record: TokenizerRecord = serde_json::from_value(record).unwrap();
    let assets = [(
        "tokenizer.json".to_string(),
        b"{\"version\":\"1.0\"}".to_vec(),
    )]
    .into();
    let templates = [("default", "{{ messages }}"), ("tool_use", "{{ tools }}\n")]
        .map(|(name, text)| (name.into(), text.into()))
        .into();
    let binding = PortableTokenizerBinding::new(record, assets, templates).unwrap();
    assert_eq!(
        binding.tokenizer_digest.to_string(),
        "3cf3bf06b50fe5c984097285b8a8f75724b24490328905b4481c9873e10fbfa4"
    );
    assert_eq!(
        binding.template_digest.unwrap().to_string(),
        "aa01e0607a99b6d20429c7393fa7da4d6c5db6297de8a2048e36eae197614991"
    );
}

#[test]
fn folder_gives_assets_ids_flags_and_template() {
    let documents = bytes(&folder());
    let (binding, warnings) = bound(&documents);
    let record = TokenizerRecord {
        family: TokenizerFamily::BytePairEncoding,
        asset_format: AssetFormat::TokenizerJson,
        asset_version: "1.0".into(),
        vocab_size: 5,
        add_bos: Some(true),
        add_eos: None,
        bos: Some(3),
        eos: vec![4, 2],
        pad: None,
        unk: Some(0),
    };
    assert_eq!(
        (binding.record.clone(), warnings.len()),
        (record.clone(), 0)
    );
    let names: Vec<&str> = binding.assets.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "special_tokens_map.json",
            "tokenizer.json",
            "tokenizer_config.json"
        ]
    );
    assert!(
        binding
            .assets
            .iter()
            .all(|(name, asset)| asset.bytes == documents[name]
                && asset.sha256 == Digest::of(&asset.bytes))
    );
    let sums = binding
        .assets
        .iter()
        .map(|(name, asset)| (name.clone(), asset.sha256))
        .collect();
    assert_eq!(
        binding.tokenizer_digest,
        tokenizer_digest(&sums, &record).unwrap()
    );
    assert_eq!(
        binding.templates,
        [("default".to_string(), "{{ messages }}".to_string())].into()
    );
    assert_eq!(
        binding.template_digest,
        Some(template_digest(&binding.templates))
    );
    // From files too, in any order and with others among them; without a tokenizer.json there is no binding.
    let mut files: Vec<MemorySource> = documents
        .iter()
        .map(|(name, bytes)| MemorySource::new(format!("a/{name}"), bytes.clone()))
        .collect();
    files.insert(0, MemorySource::new("README.md", "no"));
    assert_eq!(
        PortableTokenizerBinding::from_hf_folder(&files)
            .unwrap()
            .unwrap()
            .0,
        binding
    );
    assert!(
        PortableTokenizerBinding::from_hf_folder(&files[..1])
            .unwrap()
            .is_none()
    );
    let account = binding.account();
    assert_eq!(
        (account.assets.len(), account.assets[1].bytes),
        (3, documents["tokenizer.json"].len() as u64)
    );
    assert_eq!(account.templates[0].sha256, Digest::of(b"{{ messages }}"));
}

/// Line 4 of tests/suite/portable/README.md, for folders: each changed part changes its digest and no other.
#[test]
fn every_changed_part_changes_its_digest() {
    let (before, _) = bound(&bytes(&folder()));
    type Edit = fn(&mut BTreeMap<String, Value>);
    let edits: [(Edit, bool); 7] = [
        (
            |folder| {
                folder.get_mut("tokenizer.json").unwrap()["model"]["vocab"] =
                    json!({"a": 0, "c": 1, "ab": 2, "<s>": 3})
            },
            false,
        ),
        (
            |folder| folder.get_mut("tokenizer.json").unwrap()["model"]["merges"] = json!(["b a"]),
            false,
        ),
        (
            |folder| folder.get_mut("tokenizer_config.json").unwrap()["bos_token"] = json!("a"),
            false,
        ),
        (
            |folder| {
                folder.get_mut("tokenizer_config.json").unwrap()["add_bos_token"] = json!(false)
            },
            false,
        ),
        (
            |folder| folder.get_mut("special_tokens_map.json").unwrap()["x"] = json!(1),
            false,
        ),
        (
            |folder| folder.get_mut("generation_config.json").unwrap()["eos_token_id"] = json!(4),
            false,
        ),
        (
            |folder| drop(folder.insert("chat_template.jinja".into(), json!("other"))),
            true,
        ),
    ];
    for (edit, of_template) in edits {
        let (after, _) = bound(&edited(edit));
        assert_eq!(
            after.tokenizer_digest != before.tokenizer_digest,
            !of_template
        );
        assert_eq!(after.template_digest != before.template_digest, of_template);
    }
    // Generation settings that do not concern the ids are not part of the binding.
    let (same, _) = bound(&edited(|folder| {
        folder.get_mut("generation_config.json").unwrap()["temperature"] = json!(0.5)
    }));
    assert_eq!(same, before);
}

/// Line 42 of tests/suite/portable/README.md, for templates: precedence, conflict, list form, named ones, and one of 2 MiB that is kept unrendered.
#[test]
fn template_of_the_file_wins_and_a_conflict_is_reported() {
    let with_file = |text: &str, edit: fn(&mut BTreeMap<String, Value>)| {
        let mut documents = edited(edit);
        documents.insert("chat_template.jinja".into(), text.as_bytes().to_vec());
        bound(&documents)
    };
    let keep: fn(&mut BTreeMap<String, Value>) = |_| {};
    let (binding, warnings) = with_file("{{ other }}\n", keep);
    assert_eq!(
        warnings,
        [(
            "tokenizer.template.conflict",
            "chat_template.jinja".to_string()
        )]
    );
    assert_eq!(binding.templates["default"], "{{ other }}\n");
    let overruled = [("default".to_string(), "{{ messages }}".to_string())].into();
    assert_eq!(
        binding.overruled_template_digest,
        Some(template_digest(&overruled))
    );
    assert_ne!(binding.overruled_template_digest, binding.template_digest);
    // The same text twice is not a conflict.
    let (binding, warnings) = with_file("{{ messages }}", keep);
    assert_eq!(
        (warnings.len(), binding.overruled_template_digest),
        (0, None)
    );
    let list: fn(&mut BTreeMap<String, Value>) = |folder| {
        let list = json!([
            {"name": "default", "template": "{{ a }}"}, {"name": "tool_use", "template": "{{ b }}"}, {"name": "tool_use", "template": "{{ c }}"}
        ]);
        folder.get_mut("tokenizer_config.json").unwrap()["chat_template"] = list;
    };
    let named = |default: &str| -> BTreeMap<String, String> {
        [
            ("default".to_string(), default.to_string()),
            ("tool_use".to_string(), "{{ c }}".to_string()),
        ]
        .into()
    };
    assert_eq!(bound(&edited(list)).0.templates, named("{{ a }}"));
    let (binding, warnings) = with_file("{{ d }}", list);
    assert_eq!((binding.templates, warnings.len()), (named("{{ d }}"), 1));
    let without: fn(&mut BTreeMap<String, Value>) = |folder| {
        drop(
            folder
                .get_mut("tokenizer_config.json")
                .unwrap()
                .as_object_mut()
                .unwrap()
                .remove("chat_template"),
        )
    };
    assert_eq!(bound(&edited(without)).0.template_digest, None);
    let large = "{% for m in messages %}".repeat(100_000);
    assert!(large.len() > 2 << 20);
    assert_eq!(with_file(&large, without).0.templates["default"], large);
}

#[test]
fn documents_that_contradict_themselves_are_refused() {
    let code = |documents| {
        PortableTokenizerBinding::from_documents(&documents)
            .unwrap_err()
            .code()
    };
    let range = |ids: Value| {
        let error = PortableTokenizerBinding::from_documents(&edited(|folder| {
            folder.get_mut("generation_config.json").unwrap()["eos_token_id"] = ids;
        }));
        let Err(Error::Refused(list)) = error else {
            panic!("{error:?}")
        };
        (list[0].code, list[0].subject.clone().unwrap())
    };
    for ids in [
        json!(5),
        json!([4, 5]),
        json!(-1),
        json!("4"),
        json!(1u64 << 40),
    ] {
        assert_eq!(range(ids), ("tokenizer.id.range", "eos".to_string()));
    }
    assert_eq!(
        bound(&edited(|folder| folder
            .get_mut("generation_config.json")
            .unwrap()["eos_token_id"] =
            json!(null)))
        .0
        .record
        .eos,
        [4]
    );
    assert_eq!(
        code(edited(|folder| folder
            .get_mut("tokenizer_config.json")
            .unwrap()["chat_template"] = json!(7))),
        "tokenizer.invalid"
    );
    assert_eq!(
        code(edited(
            |folder| folder.get_mut("tokenizer.json").unwrap()["model"]["vocab"] = json!(7)
        )),
        "tokenizer.invalid"
    );
    let mut cut = bytes(&folder());
    cut.get_mut("tokenizer_config.json").unwrap().pop();
    assert_eq!(code(cut), "tokenizer.invalid");
}

#[test]
fn other_vocabularies_have_their_family_and_size() {
    let of = |model: Value| {
        bound(&edited(|folder| {
            folder.get_mut("tokenizer.json").unwrap()["model"] = model
        }))
        .0
        .record
    };
    let unigram = of(
        json!({"type": "Unigram", "unk_id": 1, "vocab": [["a", 0.0], ["<unk>", -1.5], ["<s>", 0]]}),
    );
    assert_eq!(
        (unigram.family, unigram.vocab_size, unigram.unk, unigram.bos),
        (TokenizerFamily::Unigram, 5, Some(1), Some(2))
    );
    let pieces =
        of(json!({"type": "WordPiece", "unk_token": "[UNK]", "vocab": {"[UNK]": 9, "<s>": 0}}));
    assert_eq!(
        (pieces.family, pieces.vocab_size, pieces.unk),
        (TokenizerFamily::WordPiece, 10, Some(9))
    );
    assert_eq!(
        of(json!({"type": "WordLevel", "vocab": {"x": 0}})).family,
        TokenizerFamily::Custom
    );
    // Vocabularies of single characters, as a run from scratch makes them.
    let characters = Tokenizer::characters("hello").unwrap();
    let (binding, _) = bound(&characters.assets().into_iter().collect());
    let record = &binding.record;
    assert_eq!(
        (record.family, record.asset_format),
        (TokenizerFamily::Character, AssetFormat::CharacterTable)
    );
    assert_eq!(
        (record.vocab_size, record.eos.len(), record.bos),
        (4, 0, None)
    );
    assert_ne!(
        binding.tokenizer_digest,
        bound(
            &Tokenizer::characters("help")
                .unwrap()
                .assets()
                .into_iter()
                .collect()
        )
        .0
        .tokenizer_digest
    );
}
