//! Folders: shards, dtypes, documents, and the same bytes with and without a device.

use std::collections::BTreeMap;

use half::{bf16, f16};
use serde_json::{Value, json};
use tabtune::bundle::{ModelAssets, open_bundle};
use tabtune::config::{Precision, TrainConfig};
use tabtune::export::{ExportDtype, ExportOptions, ExportSource, ModelCard, export_folder};
use tabtune::formats::{MemorySource, SafetensorsFile, safetensors_header};
use tabtune::state::LossRecord;
use tabtune::tokenizer::Tokenizer;
use tabtune::train::Trainer;
use tabtune_tests::families::Family;
use tabtune_tests::{block_on, families, gguf_families};

use super::{all_files, load, of_files, of_model, source, sources};
use crate::resume::{LETTERS, shape, start};
use crate::tokenizer::byte_level;

type Written = Vec<(String, Vec<u8>)>;

fn folder(from: &ExportSource, options: &ExportOptions) -> Written {
    all_files(&mut export_folder(from, options).unwrap())
}

fn bytes<'a>(files: &'a Written, name: &str) -> &'a [u8] {
    &files
        .iter()
        .find(|(found, _)| found == name)
        .unwrap_or_else(|| panic!("{name}"))
        .1
}

fn names(files: &Written) -> Vec<&str> {
    files.iter().map(|(name, _)| name.as_str()).collect()
}

fn of_dtype(dtype: ExportDtype) -> ExportOptions {
    ExportOptions {
        dtype,
        ..ExportOptions::default()
    }
}

fn golden_folder(family: &str) -> Vec<std::rc::Rc<dyn tabtune::formats::ByteSource>> {
    tabtune_tests::family(family).folder()
}

/// Makes a safetensors file of a table of tokens `[rows, 2]`.
fn table(rows: usize, values: &[f32]) -> Vec<u8> {
    let entry = (
        "model.embed_tokens.weight".to_string(),
        "F32",
        vec![rows, 2],
    );
    let mut bytes = safetensors_header(&[entry], &BTreeMap::new()).unwrap().0;
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

/// Makes a run of a small new model with a tokenizer.
pub fn trainer() -> (Trainer, ModelAssets) {
    let config: TrainConfig = serde_json::from_value(
        json!({"steps": 3, "batch_size": 2, "seq_len": 6, "learning_rate": 1e-2}),
    )
    .unwrap();
    let device = tabtune_tests::cpu().inner();
    (
        start(config, &device),
        ModelAssets::of_config(&shape(), Some(Tokenizer::characters(LETTERS).unwrap())),
    )
}

#[test]
fn folder_of_opened_files_is_that_of_the_model_on_the_device() {
    for family in families().iter().map(|family| family.name) {
        let bundle = open_bundle(golden_folder(family)).unwrap();
        let model = load(&bundle, Precision::F32);
        let on_device = ExportSource {
            assets: ModelAssets::of_bundle(&bundle),
            ..of_model(&model, None, None)
        };
        let in_files = of_files(golden_folder(family));
        for dtype in [
            ExportDtype::Stored,
            ExportDtype::F32,
            ExportDtype::Bf16,
            ExportDtype::F16,
        ] {
            let (a, b) = (
                folder(&on_device, &of_dtype(dtype)),
                folder(&in_files, &of_dtype(dtype)),
            );
            assert_eq!(names(&a), names(&b));
            let differ = a
                .iter()
                .zip(&b)
                .filter(|(a, b)| a.1 != b.1)
                .map(|(a, _)| a.0.as_str());
            assert_eq!(
                differ.collect::<Vec<_>>(),
                ["README.md", "tabtune.receipt.json"],
                "{family}: only the base is known of files"
            );
        }
    }
    let (trainer, assets) = trainer();
    let of_run = ExportSource::of_trainer(&trainer, assets, None, "letters").unwrap();
    let first = folder(&of_run, &ExportOptions::default());
    let again = folder(&of_files(sources(&first)), &ExportOptions::default());
    for (name, bytes) in again
        .iter()
        .filter(|(name, _)| name != "README.md" && name != "tabtune.receipt.json")
    {
        assert!(
            first
                .iter()
                .any(|(found, other)| found == name && other == bytes),
            "{name}"
        );
    }
    assert_eq!(names(&first), names(&again));
}

#[test]
fn line_33_shards_are_filled_in_the_order_of_the_names() {
    let from = of_files(golden_folder("llama3"));
    let whole = folder(&from, &ExportOptions::default());
    let file = SafetensorsFile::open(&MemorySource::new(
        "m.safetensors",
        bytes(&whole, "model.safetensors"),
    ))
    .unwrap();
    let weights = |files: &Written| -> Value {
        let receipt: Value = serde_json::from_slice(bytes(files, "tabtune.receipt.json")).unwrap();
        receipt["digests"]["weights"].clone()
    };
    assert!(weights(&whole).is_string());
    let total: u64 = file
        .tensors
        .iter()
        .map(|tensor| tensor.end() - tensor.begin)
        .sum();
    for limit in [1, 700, 3_000, total - 1, total] {
        let files = folder(
            &from,
            &ExportOptions {
                shard_bytes: Some(limit),
                ..ExportOptions::default()
            },
        );
        let mut expected: Vec<Vec<&str>> = Vec::new();
        let mut filled = u64::MAX;
        for tensor in &file.tensors {
            let size = tensor.end() - tensor.begin;
            if filled.saturating_add(size) > limit {
                expected.push(Vec::new());
                filled = 0;
            }
            expected.last_mut().unwrap().push(&tensor.name);
            filled += size;
        }
        if expected.len() == 1 {
            assert_eq!(
                (limit, bytes(&files, "model.safetensors")),
                (total, bytes(&whole, "model.safetensors"))
            );
            continue;
        }
        let index: Value =
            serde_json::from_slice(bytes(&files, "model.safetensors.index.json")).unwrap();
        assert_eq!(index["metadata"]["total_size"], total);
        assert_eq!(
            index["weight_map"].as_object().unwrap().len(),
            file.tensors.len()
        );
        for (at, wanted) in expected.iter().enumerate() {
            let name = format!("model-{:05}-of-{:05}.safetensors", at + 1, expected.len());
            let shard =
                SafetensorsFile::open(&MemorySource::new(&*name, bytes(&files, &name))).unwrap();
            assert_eq!(
                &shard
                    .tensors
                    .iter()
                    .map(|tensor| tensor.name.as_str())
                    .collect::<Vec<_>>(),
                wanted,
                "{limit}"
            );
            assert!(
                wanted
                    .iter()
                    .all(|tensor| index["weight_map"][tensor] == name.as_str())
            );
        }
        assert_eq!(
            weights(&files),
            weights(&whole),
            "the digest does not know of shards"
        );
        let (one, other) = (
            open_bundle(sources(&whole)).unwrap(),
            open_bundle(sources(&files)).unwrap(),
        );
        assert!(other.warnings.is_empty(), "{:?}", other.warnings);
        assert!(
            one.names()
                .iter()
                .all(|name| one.read_f32(name).unwrap() == other.read_f32(name).unwrap())
        );
    }
}

#[test]
fn dtypes_are_those_asked_for_and_their_cost_is_reported() {
    let from = of_files(golden_folder("qwen2"));
    let before = open_bundle(golden_folder("qwen2")).unwrap();
    for (dtype, word, torch) in [
        (ExportDtype::Bf16, "BF16", "bfloat16"),
        (ExportDtype::F16, "F16", "float16"),
    ] {
        let rounded = |value: f32| {
            if word == "F16" {
                f16::from_f32(value).to_f32()
            } else {
                bf16::from_f32(value).to_f32()
            }
        };
        let mut stream = export_folder(&from, &of_dtype(dtype)).unwrap();
        assert!(
            stream.receipt().is_none(),
            "nothing is known before it is written"
        );
        let files = all_files(&mut stream);
        let receipt = stream.receipt().unwrap();
        let after = open_bundle(sources(&files)).unwrap();
        assert_eq!(receipt.conversions.len(), before.names().len());
        for name in before.names() {
            let values = before.read_f32(&name).unwrap();
            assert_eq!(after.dtype(&name).as_deref(), Some(word));
            assert_eq!(
                after.read_f32(&name).unwrap(),
                values
                    .iter()
                    .map(|value| rounded(*value))
                    .collect::<Vec<_>>()
            );
            let error = values
                .iter()
                .map(|value| (f64::from(*value) - f64::from(rounded(*value))).abs())
                .fold(0.0, f64::max);
            let told = receipt
                .conversions
                .iter()
                .find(|one| one.tensor == name)
                .unwrap();
            assert_eq!((told.from.as_str(), told.to.as_str()), ("F32", word));
            assert!(
                told.max_abs_error.to_bits() == error.to_bits() && told.non_finite == 0,
                "{name}: {told:?} {error}"
            );
        }
        let config: Value = serde_json::from_slice(bytes(&files, "config.json")).unwrap();
        assert_eq!(
            config.get("torch_dtype").or(config.get("dtype")).unwrap(),
            torch
        );
    }
    let same = all_files(&mut export_folder(&from, &of_dtype(ExportDtype::F32)).unwrap());
    assert!(
        bytes(&same, "model.safetensors")
            == bytes(
                &folder(&from, &ExportOptions::default()),
                "model.safetensors"
            )
    );
}

#[test]
fn values_beyond_the_dtype_are_refused_and_odd_ones_counted() {
    let config = json!({"model_type": "llama", "vocab_size": 2, "hidden_size": 2, "intermediate_size": 2, "num_hidden_layers": 1,
        "num_attention_heads": 1, "max_position_embeddings": 4, "tie_word_embeddings": true});
    let files = |values: [f32; 4]| {
        let weights = table(2, &values);
        vec![
            source("config.json", config.to_string().into_bytes()),
            source("model.safetensors", weights),
        ]
    };
    let mut stream = export_folder(
        &of_files(files([1.0, 65_520.0, -1e9, 2.0])),
        &of_dtype(ExportDtype::F16),
    )
    .unwrap();
    let error = block_on(stream.next_chunk()).map(|_| ()).unwrap_err();
    assert_eq!(error.code(), "export.overflow");
    assert!(
        error.to_string().contains("model.embed_tokens.weight")
            && error.to_string().contains("2 would become"),
        "{error}"
    );
    let odd = of_files(files([f32::NAN, 65_519.0, f32::INFINITY, 2.0]));
    let mut stream = export_folder(
        &odd,
        &ExportOptions {
            allow_non_finite: true,
            ..of_dtype(ExportDtype::F16)
        },
    )
    .unwrap();
    all_files(&mut stream);
    let told = &stream.receipt().unwrap().conversions[0];
    assert!(
        told.non_finite == 2 && told.max_abs_error == 15.0,
        "{told:?}"
    );
}

#[test]
fn value_beyond_the_dtype_is_refused_before_its_piece_is_given() {
    // Three times the size of one read: 12 MiB of F16, in two pieces.
    let rows = 3 << 20;
    let config = json!({"model_type": "llama", "vocab_size": rows, "hidden_size": 2, "intermediate_size": 2, "num_hidden_layers": 1,
        "num_attention_heads": 1, "max_position_embeddings": 4, "tie_word_embeddings": true});
    let given = |places: &[usize]| {
        let mut values = vec![1.0; 2 * rows];
        places.iter().for_each(|&place| values[place] = 1e9);
        let files = vec![
            source("config.json", config.to_string().into_bytes()),
            source("model.safetensors", table(rows, &values)),
        ];
        let mut stream = export_folder(&of_files(files), &of_dtype(ExportDtype::F16)).unwrap();
        let mut bytes = 0;
        loop {
            match block_on(stream.next_chunk()) {
                Ok(Some(chunk)) => bytes += chunk.bytes.len(),
                Ok(None) => return (bytes, None),
                Err(error) => return (bytes, Some(error.to_string())),
            }
        }
    };
    let last = 2 * rows - 1;
    let (first, told) = given(&[5, last]);
    assert!(
        first == 0 && told.unwrap().contains("2 would become"),
        "all are counted, none is given"
    );
    let (piece, told) = given(&[last]);
    assert!(
        piece == 8 << 20 && told.unwrap().contains("1 would become"),
        "the piece before the value's is given"
    );
    assert_eq!(given(&[]).1, None);
}

#[test]
fn line_34_documents_keep_their_bytes_and_every_end_of_a_text() {
    let tokenizer = Tokenizer::from_parts(byte_level("gpt-2")).unwrap();
    let asset = |name: &str| {
        tokenizer
            .assets()
            .into_iter()
            .find(|(found, _)| found == name)
            .unwrap()
            .1
    };
    let rows = tokenizer.vocab_size() + 5;
    let config = format!(
        "{{\n \"model_type\": \"llama\",  \"vocab_size\":{}, \"hidden_size\": 2,\n\"intermediate_size\": 2, \"num_hidden_layers\": 1, \
         \"num_attention_heads\": 1, \"max_position_embeddings\": 4, \"tie_word_embeddings\" : true, \"mine\": [1.50],\t\"dtype\": \"float16\"}}",
        tokenizer.vocab_size()
    );
    let weights = table(rows, &vec![0.5; 2 * rows]);
    let special = b"{ \"eos_token\":\"<|im_end|>\" } \n".to_vec();
    let given = "{\"temperature\": 0.70,\n \"eos_token_id\": [0,  1], \"bos_token_id\":null}";
    let files = |generation: Option<&str>| {
        let mut files = vec![
            source("config.json", config.clone().into_bytes()),
            source("model.safetensors", weights.clone()),
            source("tokenizer.json", asset("tokenizer.json")),
            source("tokenizer_config.json", asset("tokenizer_config.json")),
            source("chat_template.jinja", asset("chat_template.jinja")),
            source("special_tokens_map.json", special.clone()),
        ];
        files.extend(
            generation.map(|text| source("generation_config.json", text.as_bytes().to_vec())),
        );
        files
    };
    let options = ExportOptions {
        card: Some(ModelCard {
            license: Some("mit".into()),
            ..ModelCard::default()
        }),
        ..of_dtype(ExportDtype::Bf16)
    };
    let written = folder(&of_files(files(Some(given))), &options);
    assert_eq!(
        written,
        folder(&of_files(files(Some(given))), &options),
        "the same bytes twice"
    );
    let expected = config
        .replacen(&tokenizer.vocab_size().to_string(), &rows.to_string(), 1)
        .replace("float16", "bfloat16");
    assert_eq!(
        String::from_utf8_lossy(bytes(&written, "config.json")),
        expected
    );
    for name in [
        "tokenizer.json",
        "tokenizer_config.json",
        "chat_template.jinja",
    ] {
        assert_eq!(bytes(&written, name), asset(name));
    }
    assert_eq!(bytes(&written, "special_tokens_map.json"), special);
    // The tokenizer's own end ids are 2 and 0, of which a folder names the first.
    let kept = "{\"pad_token_id\": 2,\"temperature\": 0.70,\n \"eos_token_id\": [0,1,2], \"bos_token_id\":1}";
    assert_eq!(
        String::from_utf8_lossy(bytes(&written, "generation_config.json")),
        kept
    );
    let made: Value = serde_json::from_slice(bytes(
        &folder(&of_files(files(None)), &options),
        "generation_config.json",
    ))
    .unwrap();
    assert_eq!(
        made,
        json!({"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2})
    );
    let right = r#"{"eos_token_id":[1,2],"bos_token_id":1,"pad_token_id":0}"#;
    assert_eq!(
        bytes(
            &folder(&of_files(files(Some(right))), &options),
            "generation_config.json"
        ),
        right.as_bytes(),
        "what is right stays"
    );
    let card = String::from_utf8(bytes(&written, "README.md").to_vec()).unwrap();
    assert!(
        card.starts_with("---\nlicense: \"mit\"\ntags:\n- tabtune\n---\n"),
        "{card}"
    );
    assert!(
        !card.contains("Training")
            && card.contains("model.safetensors")
            && card.contains("SHA-256"),
        "{card}"
    );
}

#[test]
fn line_34_ends_of_a_gguf_file_survive_the_folder() {
    for family in gguf_families() {
        let before = open_bundle(family.gguf_files()).unwrap();
        let expected = before.tokenizer.as_ref().unwrap();
        let written = folder(&of_files(family.gguf_files()), &ExportOptions::default());
        let after = open_bundle(sources(&written)).unwrap();
        let found = after.tokenizer.as_ref().unwrap();
        assert_eq!(
            (found.eos(), found.bos(), found.pad()),
            (expected.eos(), expected.bos(), expected.pad())
        );
        assert_eq!(found.chat_template(), expected.chat_template());
        assert!(
            before
                .names()
                .iter()
                .all(|name| before.read_f32(name).unwrap() == after.read_f32(name).unwrap())
        );
    }
    let several = |family: &Family| {
        open_bundle(family.gguf_files())
            .unwrap()
            .tokenizer
            .is_some_and(|tokenizer| tokenizer.eos().len() > 1)
    };
    assert!(gguf_families().any(several));
}

#[test]
fn optimizer_file_names_the_weights_that_it_belongs_to() {
    let (mut trainer, assets) = trainer();
    block_on(trainer.step()).unwrap();
    let losses = LossRecord {
        last: Some(2.5),
        ..LossRecord::default()
    };
    let mut from = ExportSource::of_trainer(&trainer, assets, None, "letters").unwrap();
    from.training.as_mut().unwrap().losses = losses;
    let mut stream = export_folder(
        &from,
        &ExportOptions {
            optimizer: true,
            ..ExportOptions::default()
        },
    )
    .unwrap();
    let files = all_files(&mut stream);
    let receipt = stream.receipt().unwrap();
    let file = SafetensorsFile::open(&MemorySource::new(
        "o",
        bytes(&files, "optimizer.safetensors"),
    ))
    .unwrap();
    assert_eq!(
        file.metadata.get("tabtune.weights"),
        receipt.digests.weights.map(|digest| digest.to_string())
    );
    assert!(receipt.digests.optimizer.is_some());
    let training = receipt.training.as_ref().unwrap();
    assert_eq!(
        (
            training.completed_steps,
            training.data.name.as_str(),
            training.losses.last
        ),
        (1, "letters", Some(2.5))
    );
    assert_eq!(training.settings["seed"], "0x0000000000000000");
    let card = String::from_utf8(bytes(&files, "README.md").to_vec()).unwrap();
    assert!(
        card.contains("1 steps") && card.contains("2.5 nats") && !card.contains("evaluation: "),
        "{card}"
    );
    let without = all_files(&mut export_folder(&from, &ExportOptions::default()).unwrap());
    assert!(!names(&without).contains(&"optimizer.safetensors"));
}
