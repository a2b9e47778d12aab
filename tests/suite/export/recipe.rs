//! Whole models as new GGUF files, which open again with the bits of the model.

use burn::tensor::Tensor;
use half::f16;
use serde_json::json;
use tabtune::bundle::open_bundle;
use tabtune::config::{ModelConfig, Precision, RopeScaling};
use tabtune::export::{ExportOptions, ExportSource, export_folder, export_gguf};
use tabtune::families::config_from_hf;
use tabtune::formats::{GgufFile, GgufValue, MemorySource};
use tabtune::interrupt::Interrupt;
use tabtune::model::{Model, ParamMap};
use tabtune::state::ReceiptFile;
use tabtune::tokenizer::Tokenizer;
use tabtune_tests::families::Family;
use tabtune_tests::{block_on, cpu, gguf_families, weights};

use super::super::tokenizer::byte_level;
use super::{
    Raise, all_files, gguf_recipe, golden, goldens, load, named, of_files, open, rewritten, source,
    written,
};

fn fresh(config: &ModelConfig, precision: Precision) -> Model {
    block_on(Model::init(
        config,
        5,
        precision,
        &cpu().inner(),
        &Interrupt::none(),
    ))
    .unwrap()
}

fn file(model: &Model, types: &str) -> Vec<u8> {
    let (name, bytes) = written(gguf_recipe(model, None, "tiny", types).unwrap());
    assert_eq!(name, "tiny.gguf");
    bytes
}

fn llama(changes: serde_json::Value) -> ModelConfig {
    let mut json = json!({
        "model_type": "llama", "vocab_size": 9, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 8, "tie_word_embeddings": true
    });
    json.as_object_mut()
        .unwrap()
        .extend(changes.as_object().unwrap().clone());
    config_from_hf(&json).unwrap()
}

#[test]
fn recipe_of_every_family_opens_with_the_same_bits_and_configuration() {
    for Family {
        name: family,
        gguf: files,
    } in gguf_families()
    {
        let bundle = open_bundle(goldens(files)).unwrap();
        for precision in [Precision::F32, Precision::Bf16] {
            let model = load(&bundle, precision);
            let tokenizer = bundle.tokenizer.as_ref();
            let (_, bytes) = written(gguf_recipe(&model, tokenizer, family, "as-base").unwrap());
            let again = open(&bytes);
            assert_eq!(again.config, bundle.config, "{family}");
            assert!(
                weights(&load(&again, precision)) == weights(&model),
                "{family}"
            );
            assert!(again.warnings.is_empty(), "{family}: {:?}", again.warnings);
            let (found, expected) = (again.tokenizer.unwrap(), tokenizer.unwrap());
            assert_eq!(
                (found.eos(), found.bos(), found.pad()),
                (expected.eos(), expected.bos(), expected.pad()),
                "{family}"
            );
            assert_eq!(found.chat_template(), expected.chat_template(), "{family}");
            assert_eq!(
                found.encode("user\nassistant").unwrap(),
                expected.encode("user\nassistant").unwrap(),
                "{family}"
            );
            assert_eq!(
                bytes,
                written(gguf_recipe(&model, tokenizer, family, "as-base").unwrap()).1,
                "the same bytes again"
            );
        }
    }
}

#[test]
fn keys_of_a_recipe_stand_in_a_fixed_order() {
    let keys = |model: &Model| -> Vec<String> {
        let file = GgufFile::open(&MemorySource::new("m.gguf", file(model, "as-base"))).unwrap();
        file.metadata.iter().map(|(key, _)| key.clone()).collect()
    };
    let linear = json!({"head_dim": 6, "rope_scaling": {"rope_type": "linear", "factor": 2.0}});
    let found = keys(&fresh(&llama(linear), Precision::F32));
    let general = [
        "architecture",
        "name",
        "file_type",
        "quantization_version",
        "alignment",
    ]
    .map(|key| format!("general.{key}"));
    let own = [
        "vocab_size",
        "context_length",
        "embedding_length",
        "block_count",
        "feed_forward_length",
        "attention.head_count",
        "attention.head_count_kv",
        "attention.layer_norm_rms_epsilon",
        "attention.key_length",
        "attention.value_length",
        "rope.dimension_count",
        "rope.freq_base",
        "rope.scaling.type",
        "rope.scaling.factor",
    ];
    let own = own.map(|key| format!("llama.{key}"));
    assert_eq!(
        found,
        [
            &general[..],
            &own[..],
            &["tokenizer.ggml.model".to_string()]
        ]
        .concat()
    );
}

#[test]
fn types_of_a_recipe_are_those_asked_for() {
    let bundle = open_bundle(goldens(&["gpt2.gguf"])).unwrap();
    let model = load(&bundle, Precision::F32);
    let bytes = file(&model, "f16");
    let header = GgufFile::open(&MemorySource::new("m.gguf", bytes.clone())).unwrap();
    assert_eq!(header.get("general.file_type").unwrap().count(), Some(1));
    for tensor in &header.tensors {
        let plain = tensor.shape.len() == 1 || tensor.name == "position_embd.weight";
        assert_eq!(
            tensor.dtype,
            if plain { "F32" } else { "F16" },
            "{}",
            tensor.name
        );
    }
    let again = open(&bytes);
    for name in again.names() {
        let before = bundle.read_f32(&name).unwrap();
        let plain = again.shape(&name).unwrap().len() == 1 || name == "transformer.wpe.weight";
        let expected = before.iter().map(|value| {
            if plain {
                *value
            } else {
                f16::from_f32(*value).to_f32()
            }
        });
        assert_eq!(
            again.read_f32(&name).unwrap(),
            expected.collect::<Vec<_>>(),
            "{name}"
        );
    }
}

#[test]
fn values_beyond_their_type_are_refused_by_name() {
    let name = "model.layers.0.mlp.up_proj.weight";
    let model = fresh(&llama(json!({})), Precision::F32)
        .map(&mut Raise(&[name]))
        .map(&mut Scale(name));
    let mut stream = gguf_recipe(&model, None, "tiny", "f16").unwrap();
    let error = block_on(stream.next_chunk()).map(|_| ()).unwrap_err();
    assert_eq!(error.code(), "export.overflow");
    assert!(error.to_string().contains("blk.0.ffn_up.weight"), "{error}");
    assert!(!file(&model, "bf16").is_empty());
}

#[test]
fn frequency_factors_of_llama3_go_with_the_file() {
    let scaling = json!({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192});
    let config = llama(json!({"head_dim": 16, "rope_scaling": scaling}));
    let model = fresh(&config, Precision::F32);
    let again = open(&file(&model, "as-base"));
    assert!(matches!(
        again.config.rope_scaling,
        RopeScaling::Llama3 { .. }
    ));
    assert_eq!(again.config.rope_scaling, config.rope_scaling);
    assert!(weights(&load(&again, Precision::F32)) == weights(&model));
    let other = ModelConfig {
        model_type: "qwen2".into(),
        attention_bias: true,
        ..config
    };
    let error = gguf_recipe(&fresh(&other, Precision::F32), None, "tiny", "as-base")
        .map(|_| ())
        .unwrap_err();
    assert_eq!(
        error.code(),
        "export.gguf.arch",
        "llama.cpp reads the factors of llama alone"
    );
}

#[test]
fn model_that_no_architecture_describes_is_refused() {
    for (model_type, attention_bias, qk_norm) in [
        ("llama", false, true),
        ("qwen3", true, true),
        ("qwen2", false, false),
        ("other", false, false),
    ] {
        let config = ModelConfig {
            model_type: model_type.into(),
            attention_bias,
            qk_norm,
            ..llama(json!({}))
        };
        let error = gguf_recipe(&fresh(&config, Precision::F32), None, "tiny", "as-base")
            .map(|_| ())
            .unwrap_err();
        assert_eq!(error.code(), "export.gguf.arch", "{model_type}");
    }
}

/// Makes one parameter larger than F16 can hold.
struct Scale<'a>(&'a str);

impl ParamMap for Scale<'_> {
    fn map<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) -> Tensor<D> {
        if name == self.0 { tensor * 1e6 } else { tensor }
    }
}

#[test]
fn facts_that_a_new_file_cannot_hold_are_in_its_receipt() {
    let told = |model: &Model, tokenizer: Option<&Tokenizer>, types: &str| {
        let mut stream = gguf_recipe(model, tokenizer, "tiny", types).unwrap();
        all_files(&mut stream);
        let warnings = &stream.receipt().unwrap().warnings;
        warnings
            .iter()
            .map(|warning| (warning.code.clone(), warning.subject.clone()))
            .collect::<Vec<_>>()
    };
    let narrow = fresh(&llama(json!({})), Precision::F32);
    let unused = |word: &str| vec![("export.gguf.type-unused".to_string(), word.to_string())];
    assert_eq!(told(&narrow, None, "q6_k"), unused("q6_k"));
    assert_eq!(told(&narrow, None, "q4_k_m"), unused("q4_k_m"));
    assert_eq!(told(&narrow, None, "f16"), []);
    // Rows of 32 values are whole blocks of Q8_0; only one matrix has them.
    let wider = fresh(&llama(json!({"intermediate_size": 32})), Precision::F32);
    assert_eq!(told(&wider, None, "q8_0"), []);
    let assets = Tokenizer::from_parts(byte_level("gpt-2")).unwrap().assets();
    let mut document: serde_json::Value = serde_json::from_slice(&assets[0].1).unwrap();
    document["added_tokens"][0]["rstrip"] = json!(true);
    document["normalizer"] = json!({"type": "NFC"});
    let tokenizer = Tokenizer::from_hf(document.to_string().as_bytes(), None, None).unwrap();
    let model = fresh(
        &llama(json!({"vocab_size": tokenizer.vocab_size()})),
        Precision::F32,
    );
    let border = document["added_tokens"][0]["content"]
        .as_str()
        .unwrap()
        .to_string();
    // No document names an end: llama.cpp takes the token 11 for it.
    let eleventh = document["model"]["vocab"]
        .as_object()
        .unwrap()
        .iter()
        .find(|(_, id)| **id == 11)
        .unwrap()
        .0;
    let end = ("export.gguf.end", format!("{eleventh} (id 11)"));
    let expected = [
        ("export.gguf.token-border", border),
        end,
        ("export.gguf.normalizer", "NFC".to_string()),
    ];
    assert_eq!(
        told(&model, Some(&tokenizer), "f32"),
        expected.map(|(code, subject)| (code.to_string(), subject))
    );
}

#[test]
fn recipe_of_a_gguf_file_has_its_license_and_authors() {
    let told = [
        ("general.license", "mit"),
        ("general.license.link", "https://example.org"),
        ("general.author", "someone"),
    ];
    let gone = [
        ("general.quantized_by", "somebody"),
        ("general.licensed", "no such key"),
    ];
    let bytes = rewritten(&golden("qwen2.gguf"), |metadata, _| {
        metadata.extend(
            told.iter()
                .chain(&gone)
                .map(|(key, value)| (key.to_string(), GgufValue::of_text(value))),
        );
    });
    let file_of = |source: &ExportSource| {
        let (_, bytes) =
            written(block_on(export_gguf(source, Vec::new(), &named("m", "f32"))).unwrap());
        GgufFile::open(&MemorySource::new("m.gguf", bytes)).unwrap()
    };
    let plain = of_files(vec![source("m.gguf", bytes)]);
    let file = file_of(&plain);
    for (key, value) in told {
        assert_eq!(
            file.get(key).and_then(GgufValue::text),
            Some(value),
            "{key}"
        );
    }
    assert!(gone.iter().all(|(key, _)| file.get(key).is_none()));
    let card = |source: &ExportSource| {
        let files = all_files(&mut export_folder(source, &ExportOptions::default()).unwrap());
        String::from_utf8(
            files
                .into_iter()
                .find(|(name, _)| name == "README.md")
                .unwrap()
                .1,
        )
        .unwrap()
    };
    let license = "---\nlicense: \"mit\"\nlicense_link: \"https://example.org\"\ntags:";
    assert!(card(&plain).starts_with(license), "{}", card(&plain));
    // The weights of a merged model are not the author's.
    let merged = ExportSource {
        adapter: vec![ReceiptFile::of_name("adapter_model.safetensors", 8, None)],
        ..plain
    };
    let file = file_of(&merged);
    assert!(card(&merged).starts_with(license));
    assert!(
        file.get("general.license").is_some()
            && file.get("general.license.link").is_some()
            && file.get("general.author").is_none()
    );
}
