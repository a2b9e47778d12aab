//! The exports that are offered for a model are those that succeed.

use std::rc::Rc;

use serde_json::json;
use tabtune::bundle::{OpenOptions, open_bundle, open_bundle_with};
use tabtune::config::Precision;
use tabtune::export::{
    ExportChoice, ExportDtype, ExportFormat, ExportOptions, ExportSource, export, export_choices,
};
use tabtune::formats::ByteSource;
use tabtune::portable::{Support, export_options_of};
use tabtune::tokenizer::Tokenizer;
use tabtune_tests::{block_on, family};

use super::pieces::{config, fresh};
use super::{Files, all_files, gguf_recipe, golden, of_files, of_model, source, written};

fn folder(family: &str, more: &[(&str, &[u8])]) -> Files {
    let own = ["config.json", "model.safetensors"]
        .map(|name| (name, golden(&format!("{family}/{name}"))));
    let more = more.iter().map(|(name, bytes)| (*name, bytes.to_vec()));
    own.into_iter()
        .chain(more)
        .map(|(name, bytes)| source(name, bytes))
        .collect()
}

/// Description of a model, its export source, and the files of its base if there is one.
type Case = (&'static str, ExportSource, fn() -> Files);

fn models() -> Vec<Case> {
    let none: fn() -> Files = Vec::new;
    let blocks = written(
        gguf_recipe(
            &fresh(
                &config(json!({
                    "model_type": "llama", "vocab_size": 40, "hidden_size": 256, "intermediate_size": 256, "num_attention_heads": 4,
                    "num_hidden_layers": 1, "max_position_embeddings": 8
                })),
                Precision::F32,
            ),
            None,
            "m",
            "q8_0",
        )
        .unwrap(),
    )
    .1;
    let padded = |text: Vec<u8>| -> Vec<u8> {
        let mut value: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let rows = value["vocab_size"].as_u64().unwrap();
        value["vocab_size"] = (rows - 1).into();
        value.to_string().into_bytes()
    };
    let mut rows = folder("qwen2", &[]);
    rows[0] = source("config.json", padded(golden("qwen2/config.json")));
    let characters = fresh(
        &config(json!({
            "model_type": "llama", "vocab_size": 5, "hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 2,
            "num_hidden_layers": 1, "max_position_embeddings": 8
        })),
        Precision::Bf16,
    );
    let tokenizer = Tokenizer::characters("abcd\n").unwrap();
    let adapter = |name: &str| -> Rc<dyn ByteSource> {
        source(name, golden(&format!("../adapters/qwen2-patterns/{name}")))
    };
    let merged = OpenOptions {
        adapter: Some(vec![
            adapter("adapter_config.json"),
            adapter("adapter_model.safetensors"),
        ]),
        ..OpenOptions::default()
    };
    let merged = Rc::new(open_bundle_with(folder("qwen2", &[]), merged).unwrap());
    vec![
        ("dense", of_files(folder("qwen3", &[])), none),
        ("blocks", of_files(vec![source("m.gguf", blocks)]), none),
        ("padded", of_files(rows), none),
        ("tied", of_files(folder("gpt2", &[])), none),
        (
            "unknown tokenizer",
            of_files(folder("qwen2", &[("tokenizer.json", b"{}")])),
            none,
        ),
        (
            "character",
            of_model(&characters, Some(&tokenizer), None),
            none,
        ),
        (
            "adapter merged",
            ExportSource::of_bundle(&merged)
                .unwrap()
                .summed(&merged)
                .unwrap(),
            none,
        ),
        ("split", of_files(family("qwen3").gguf_files()), || {
            family("qwen3").gguf_files()
        }),
    ]
}

fn options(choice: &ExportChoice) -> ExportOptions {
    let types = choice.types.clone();
    match choice.format {
        ExportFormat::Safetensors if types.is_some() => ExportOptions {
            dtype: ExportDtype::F32,
            ..ExportOptions::default()
        },
        ExportFormat::Safetensors => ExportOptions::default(),
        format => ExportOptions {
            format,
            types,
            ..ExportOptions::default()
        },
    }
}

/// The terminal and the schema have a format's own word, options in JSON that of serde.
#[test]
fn formats_have_the_words_of_their_options() {
    for format in ExportFormat::ALL {
        assert_eq!(serde_json::to_value(format).unwrap(), json!(format.word()));
    }
}

#[test]
fn line_45_what_is_offered_is_what_exports_make() {
    for (what, from, base) in models() {
        let (choices, contract) = export_options_of(&from).unwrap();
        assert_eq!(
            choices.len(),
            14 + usize::from(what == "blocks"),
            "{what}: two formats and twelve types"
        );
        for choice in &choices {
            let files = if choice.needs.is_some() {
                base()
            } else {
                Vec::new()
            };
            let made = block_on(export(&from, files, &options(choice)));
            match (&choice.reason, made) {
                (None, Ok(mut stream)) => {
                    let bytes: u64 = all_files(&mut stream)
                        .iter()
                        .map(|(_, bytes)| bytes.len() as u64)
                        .sum();
                    assert!(
                        choice.bytes.is_none_or(|planned| planned == bytes),
                        "{what}: {choice:?}, {bytes}"
                    );
                    assert!(stream.receipt().is_some(), "{what}: {choice:?}");
                }
                (Some(reason), Err(error)) => {
                    assert!(
                        error.to_string() == *reason || choice.format == ExportFormat::Json,
                        "{what}: {choice:?}: {error}"
                    )
                }
                (_, made) => panic!("{what}: {choice:?}, {:?}", made.map(|_| "made")),
            }
        }
        let any = |format| {
            choices
                .iter()
                .any(|choice| choice.format == format && choice.ok)
        };
        let cell = |surface: &str| contract.row(surface).unwrap().export.support;
        assert_eq!(
            cell("gguf") != Support::Unsupported,
            any(ExportFormat::Gguf),
            "{what}"
        );
        let stored = choices.iter().any(|choice| {
            choice.format == ExportFormat::Safetensors && choice.types.is_none() && choice.ok
        });
        assert_eq!(cell("hf_folder") != Support::Unsupported, stored, "{what}");
    }
}

#[test]
fn line_45_sizes_are_known_before_the_files_are_summed() {
    let bundle = Rc::new(open_bundle(family("llama3").gguf_files()).unwrap());
    let unread = ExportSource::of_bundle(&bundle).unwrap();
    let summed = unread.clone().summed(&bundle).unwrap();
    assert_ne!(unread.base, summed.base);
    assert_eq!(export_choices(&unread), export_choices(&summed));
}
