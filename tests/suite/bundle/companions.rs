//! Files next to a model: adapters, a configuration next to a GGUF file, usable tokenizers, parts of a split file; and a refused tokenizer.

use std::collections::BTreeSet;
use std::rc::Rc;

use tabtune::Error;
use tabtune::bundle::{Bundle, ModelAssets, open_bundle};
use tabtune::families::model_types;
use tabtune::formats::ByteSource;
use tabtune_tests::{families, gguf_families, golden};

use super::files::{Meta, file, gguf, ramp};

fn named(name: &str) -> Rc<dyn ByteSource> {
    file(name.rsplit('/').next().unwrap(), golden(name))
}

const PARTS: [&str; 3] = [
    "qwen3-00001-of-00003.gguf",
    "qwen3-00002-of-00003.gguf",
    "qwen3-00003-of-00003.gguf",
];

fn codes(bundle: &Bundle) -> Vec<(&'static str, &str)> {
    bundle
        .warnings
        .iter()
        .map(|warning| (warning.code, warning.subject.as_str()))
        .collect()
}

fn refusals(error: Error) -> Vec<(&'static str, Option<String>)> {
    match error {
        Error::Refused(list) => list
            .into_iter()
            .map(|refusal| (refusal.code, refusal.subject))
            .collect(),
        other => panic!("{other}"),
    }
}

/// Tests of every family take the golden models, so every model type needs one.
#[test]
fn every_model_type_has_a_golden_folder_and_gguf_file() {
    let types: BTreeSet<String> = families()
        .iter()
        .map(|model| model.config()["model_type"].as_str().unwrap().into())
        .collect();
    assert_eq!(types, model_types().into_iter().map(String::from).collect());
    let without = families().iter().filter(|model| model.gguf.is_empty());
    let without: Vec<_> = without.map(|model| model.name).collect();
    assert_eq!(without, ["granitemoehybrid"]);
}

#[test]
fn gguf_of_every_family_has_the_bits_of_its_folder() {
    for model in gguf_families() {
        let family = model.name;
        let folder = open_bundle(model.folder()).unwrap();
        let bundle = open_bundle(model.gguf_files()).unwrap();
        assert_eq!(bundle.names(), folder.names(), "{family}");
        for name in folder.names() {
            assert_eq!(bundle.shape(&name), folder.shape(&name), "{family} {name}");
            assert_eq!(
                bundle.read_f32(&name).unwrap(),
                folder.read_f32(&name).unwrap(),
                "{family} {name}"
            );
        }
        assert_eq!(
            bundle.config.tie_word_embeddings, folder.config.tie_word_embeddings,
            "{family}"
        );
        assert!(
            bundle.warnings.is_empty() && bundle.tokenizer.is_some(),
            "{family}: {:?}",
            bundle.warnings
        );
    }
}

#[test]
fn split_parts_open_in_any_order() {
    let whole = open_bundle(PARTS.iter().map(|part| named(part)).collect()).unwrap();
    for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let bundle = open_bundle(order.iter().map(|&n| named(PARTS[n])).collect()).unwrap();
        assert_eq!(bundle.config, whole.config);
        assert!(
            bundle
                .names()
                .iter()
                .all(|name| bundle.read_f32(name).unwrap() == whole.read_f32(name).unwrap())
        );
    }
}

#[test]
fn split_parts_that_do_not_make_a_whole_are_refused() {
    let open =
        |parts: &[&str]| open_bundle(parts.iter().map(|part| named(part)).collect()).unwrap_err();
    let error = open(&[PARTS[1]]);
    assert_eq!(error.code(), "gguf.split.incomplete");
    assert!(
        error.to_string().contains(PARTS[0])
            && error.to_string().contains(PARTS[2])
            && !error.to_string().contains("00004"),
        "{error}"
    );
    assert!(open(&[PARTS[2], PARTS[0]]).to_string().contains(PARTS[1]));
    assert_eq!(
        open(&[PARTS[0], PARTS[1], PARTS[1]]).code(),
        "gguf.split.mismatch"
    );
    assert_eq!(open(&[PARTS[0], "qwen2.gguf"]).code(), "bundle.ambiguous");
    let part = |no: u32, count: u32, total: u32, tensor: &'static str| {
        let metadata = [
            ("split.no", Meta::U32(no)),
            ("split.count", Meta::U32(count)),
            ("split.tensors.count", Meta::U32(total)),
        ];
        file(
            "m.gguf",
            gguf(&metadata, &[(tensor, vec![4], ramp(4, 0.0))]),
        )
    };
    let code = |files: Vec<Rc<dyn ByteSource>>| open_bundle(files).unwrap_err().code();
    assert_eq!(
        code(vec![part(0, 2, 2, "a"), part(1, 3, 2, "b")]),
        "gguf.split.mismatch"
    );
    assert_eq!(
        code(vec![part(0, 2, 2, "a"), part(2, 2, 2, "b")]),
        "gguf.split.mismatch"
    );
    assert_eq!(
        code(vec![part(0, 2, 3, "a"), part(1, 2, 3, "b")]),
        "gguf.split.mismatch"
    );
    assert_eq!(
        code(vec![part(0, 2, 2, "a"), part(1, 2, 2, "a")]),
        "gguf.name.duplicate"
    );
    assert_eq!(
        code(vec![part(0, u32::MAX, 2, "a"), part(1, u32::MAX, 2, "b")]),
        "gguf.split.incomplete"
    );
}

#[test]
fn adapter_next_to_a_base_is_refused_by_name() {
    let base = || vec![named("qwen2/config.json"), named("qwen2/model.safetensors")];
    let mut files = base();
    files.extend([
        file("adapter_config.json", "{}"),
        file("adapter_model.safetensors", "x"),
    ]);
    let found = refusals(open_bundle(files).unwrap_err());
    let expected = ["adapter_config.json", "adapter_model.safetensors"]
        .map(|name| ("bundle.adapter", Some(name.to_string())));
    assert_eq!(found, expected);
    let beside = vec![named("qwen2.gguf"), file("adapter_model.bin", "x")];
    let Err(Error::Refused(list)) = open_bundle(beside) else {
        panic!("an adapter was passed over")
    };
    assert!(
        list[0].code == "bundle.adapter"
            && list[0]
                .hint
                .as_deref()
                .is_some_and(|hint| hint.contains("merge"))
    );
    let own = gguf(
        &[
            ("general.architecture", Meta::Text("llama")),
            ("general.type", Meta::Text("adapter")),
        ],
        &[],
    );
    assert_eq!(
        open_bundle(vec![file("lora.gguf", own)])
            .unwrap_err()
            .code(),
        "bundle.adapter"
    );
    assert!(open_bundle(base()).is_ok());
}

#[test]
fn gguf_next_to_a_configuration_opens_and_names_what_is_unused() {
    let files = vec![
        named("llama3/config.json"),
        named("qwen2.gguf"),
        file("tokenizer.json", "{"),
        file("notes.txt", "x"),
    ];
    let bundle = open_bundle(files).unwrap();
    assert_eq!(bundle.config.model_type, "qwen2");
    let unused = ["config.json", "tokenizer.json", "notes.txt"].map(|name| ("bundle.unused", name));
    assert_eq!(codes(&bundle), unused);
    let both = vec![
        named("qwen2/config.json"),
        named("qwen2/model.safetensors"),
        named("llama3.gguf"),
        file("other.safetensors", ""),
    ];
    let bundle = open_bundle(both).unwrap();
    assert_eq!(bundle.config.model_type, "qwen2");
    assert_eq!(
        codes(&bundle),
        [
            ("bundle.unused", "llama3.gguf"),
            ("bundle.unused", "other.safetensors")
        ]
    );
}

/// Makes a Llama as a GGUF file; `extra` are the keys of its tokenizer.
fn llama(extra: Vec<(&'static str, Meta)>) -> Rc<dyn ByteSource> {
    let mut metadata = vec![("general.architecture", Meta::Text("llama"))];
    let counts = [
        ("llama.context_length", 16),
        ("llama.embedding_length", 8),
        ("llama.block_count", 1),
        ("llama.feed_forward_length", 4),
    ];
    metadata.extend(counts.map(|(key, count)| (key, Meta::U32(count))));
    metadata.extend([
        ("llama.attention.head_count", Meta::U32(2)),
        ("llama.attention.layer_norm_rms_epsilon", Meta::F32(1e-5)),
    ]);
    metadata.extend(extra);
    file(
        "m.gguf",
        gguf(
            &metadata,
            &[("token_embd.weight", vec![12, 8], ramp(96, 0.0))],
        ),
    )
}

fn broken() -> Vec<(&'static str, Meta)> {
    vec![
        ("tokenizer.ggml.model", Meta::Text("zzz")),
        ("tokenizer.ggml.eos_token_id", Meta::U32(1)),
    ]
}

#[test]
fn refused_tokenizer_leaves_the_tensors_usable() {
    let unknown_pre = vec![
        ("tokenizer.ggml.model", Meta::Text("gpt2")),
        ("tokenizer.ggml.pre", Meta::Text("unheard\u{202e}-of")),
        (
            "tokenizer.ggml.tokens",
            Meta::Texts(vec!["a".into(), "b".into()]),
        ),
        ("tokenizer.ggml.merges", Meta::Texts(vec![])),
    ];
    let large = vec![
        ("tokenizer.ggml.model", Meta::Text("gpt2")),
        ("tokenizer.ggml.pre", Meta::Text("gpt-2")),
        (
            "tokenizer.ggml.tokens",
            Meta::Texts((0..13).map(|n| format!("t{n}")).collect()),
        ),
        ("tokenizer.ggml.merges", Meta::Texts(vec![])),
    ];
    let known = vec![
        ("tokenizer.ggml.model", Meta::Text("bert")),
        ("tokenizer.ggml.tokens", Meta::Texts(vec!["a".into()])),
    ];
    for (metadata, code) in [
        (broken(), "tokenizer.model.unsupported"),
        (unknown_pre, "tokenizer.model.unsupported"),
        (known, "tokenizer.model.unsupported"),
        (large, "tokenizer.size.mismatch"),
        (
            vec![("tokenizer.ggml.eos_token_id", Meta::U32(1))],
            "tokenizer.model.missing",
        ),
    ] {
        let bundle = open_bundle(vec![llama(metadata)]).unwrap();
        assert!(bundle.tokenizer.is_none());
        assert_eq!(
            bundle
                .warnings
                .iter()
                .map(|warning| warning.code)
                .collect::<Vec<_>>(),
            [code]
        );
        let message = bundle.warnings[0].message();
        assert!(
            message.contains("without a tokenizer") && !message.contains('\u{202e}'),
            "{message}"
        );
        assert_eq!(
            bundle.need_tokenizer().unwrap_err().code(),
            code,
            "what text needs says why it is not there"
        );
        assert_eq!(
            bundle.read_f32("model.embed_tokens.weight").unwrap(),
            ramp(96, 0.0)
        );
        assert_eq!(
            ModelAssets::of_bundle(&bundle)
                .need_tokenizer()
                .unwrap_err()
                .code(),
            code
        );
    }
    let folder = vec![
        named("qwen2/config.json"),
        named("qwen2/model.safetensors"),
        file("tokenizer.json", "{"),
    ];
    let bundle = open_bundle(folder).unwrap();
    assert_eq!(codes(&bundle), [("tokenizer.invalid", "tokenizer")]);
}

fn documents(bundle: &Bundle) -> std::collections::BTreeMap<String, Vec<u8>> {
    ModelAssets::of_bundle(bundle)
        .documents
        .into_iter()
        .collect()
}

#[test]
fn tokenizer_file_serves_where_the_gguf_has_none() {
    let qwen2 = documents(&open_bundle(vec![named("qwen2.gguf")]).unwrap());
    let beside = |extra| {
        let names = [
            "tokenizer.json",
            "tokenizer_config.json",
            "chat_template.jinja",
            "generation_config.json",
        ];
        let mut files = vec![llama(extra)];
        files.extend(names.iter().map(|name| file(name, qwen2[*name].clone())));
        open_bundle(files).unwrap()
    };
    let bundle = beside(vec![]);
    assert_eq!(
        (codes(&bundle), bundle.need_tokenizer().unwrap().eos()),
        (vec![], [2, 0].as_slice())
    );
    let bundle = beside(broken());
    assert_eq!(codes(&bundle)[0].0, "tokenizer.model.unsupported");
    assert!(
        bundle.warnings[0]
            .message()
            .contains("tokenizer of tokenizer.json is used instead"),
        "{}",
        bundle.warnings[0].message()
    );
    assert_eq!(
        bundle.need_tokenizer().unwrap().encode("user").unwrap(),
        [4, 5, 6, 7]
    );
    assert_eq!(
        bundle.need_tokenizer().unwrap().eos(),
        [2, 1, 0],
        "the file's own end ids count too"
    );
    assert!(bundle.need_tokenizer().unwrap().has_chat_template());
}

#[test]
fn end_ids_of_a_gguf_survive_as_documents() {
    let bundle = open_bundle(vec![named("qwen2.gguf")]).unwrap();
    assert_eq!(bundle.need_tokenizer().unwrap().eos(), [2, 0]);
    let documents = documents(&bundle);
    let generation: serde_json::Value =
        serde_json::from_slice(&documents["generation_config.json"]).unwrap();
    assert_eq!(generation["eos_token_id"], serde_json::json!([2, 0]));
    // The files of a checkpoint or an export open with both ids again.
    let mut files: Vec<Rc<dyn ByteSource>> = documents
        .iter()
        .map(|(name, bytes)| file(name, bytes.clone()))
        .collect();
    files.push(named("qwen2/model.safetensors"));
    let again = open_bundle(files).unwrap();
    assert_eq!(again.need_tokenizer().unwrap().eos(), [2, 0]);
    assert_eq!(self::documents(&again), documents);
}

#[test]
fn the_end_of_a_text_counts_in_whichever_document_states_it() {
    let qwen2 = documents(&open_bundle(vec![named("qwen2.gguf")]).unwrap());
    let config: serde_json::Value = serde_json::from_slice(&qwen2["config.json"]).unwrap();
    let open = |id: serde_json::Value, specials: Option<&str>| {
        let mut config = config.clone();
        config["eos_token_id"] = id;
        let mut files = vec![
            file("config.json", config.to_string()),
            named("qwen2/model.safetensors"),
            file("tokenizer.json", qwen2["tokenizer.json"].clone()),
            file("tokenizer_config.json", "{}"),
        ];
        files.extend(specials.map(|text| file("special_tokens_map.json", text.to_string())));
        open_bundle(files)
            .unwrap()
            .need_tokenizer()
            .unwrap()
            .eos()
            .to_vec()
    };
    let none = serde_json::Value::Null;
    // The class of Qwen2's tokenizers has an end, which counts where no document names one.
    assert_eq!(open(none.clone(), None), [0]);
    assert_eq!(open(serde_json::json!(2), None), [2], "config.json");
    assert_eq!(open(serde_json::json!([0, 2]), None), [0, 2]);
    // A letter cannot be an end id, and a number beyond the vocabulary is not an id.
    assert_eq!(open(serde_json::json!([7, 100_000]), None), [0]);
    assert_eq!(
        open(none, Some(r#"{"eos_token": "<|im_end|>"}"#)),
        [2],
        "special_tokens_map.json"
    );
    assert_eq!(
        open(
            serde_json::json!(0),
            Some(r#"{"eos_token": {"content": "<|im_end|>"}}"#)
        ),
        [0, 2]
    );
}
