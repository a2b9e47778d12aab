//! Opened models that are exported without a device: the same bytes as from the device, and unchanged blocks.

use serde_json::json;
use tabtune::Error;
use tabtune::bundle::{Bundle, open_bundle};
use tabtune::config::{ModelConfig, Precision};
use tabtune::export::{ExportDtype, ExportOptions, ExportSource, export_folder, export_gguf};
use tabtune::families::config_from_hf;
use tabtune::formats::{GgufFile, MemorySource, TensorType};
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune_tests::families::Family;
use tabtune_tests::{block_on, cpu, gguf_families};

use super::{
    Files, all_files, gguf_recipe, golden, goldens, load, named, of_files, of_model, open, source,
    sources, written,
};

fn gguf(from: &ExportSource, base: Files, options: &ExportOptions) -> Vec<u8> {
    written(block_on(export_gguf(from, base, options)).unwrap()).1
}

fn refused(from: &ExportSource, options: &ExportOptions) -> Error {
    block_on(export_gguf(from, Vec::new(), options))
        .map(|_| ())
        .unwrap_err()
}

fn of_bytes(bytes: &[u8]) -> ExportSource {
    ExportSource::of_bundle(&open(bytes)).unwrap()
}

fn fresh(config: serde_json::Value) -> Model {
    let mut json = json!({"num_hidden_layers": 1, "tie_word_embeddings": true});
    json.as_object_mut()
        .unwrap()
        .extend(config.as_object().unwrap().clone());
    let config: ModelConfig = config_from_hf(&json).unwrap();
    block_on(Model::init(
        &config,
        4,
        Precision::F32,
        &cpu().inner(),
        &Interrupt::none(),
    ))
    .unwrap()
}

/// Makes a model whose rows are whole blocks of every type.
fn wide() -> Model {
    fresh(
        json!({"model_type": "llama", "vocab_size": 8, "hidden_size": 256, "intermediate_size": 256, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 8}),
    )
}

fn contents(bytes: &[u8]) -> Vec<(String, String, Vec<u8>)> {
    let file = GgufFile::open(&MemorySource::new("m.gguf", bytes)).unwrap();
    let one = |tensor: &tabtune::formats::FileTensor| {
        let begin = tensor.begin as usize;
        (
            tensor.name.clone(),
            tensor.dtype.clone(),
            bytes[begin..begin + tensor.bytes.unwrap() as usize].to_vec(),
        )
    };
    file.tensors.iter().map(one).collect()
}

fn weights_digest_of(bundle: Bundle) -> tabtune::formats::Digest {
    let from = ExportSource::of_bundle(&bundle).unwrap();
    let mut stream = export_folder(
        &from,
        &ExportOptions {
            dtype: ExportDtype::F32,
            ..ExportOptions::default()
        },
    )
    .unwrap();
    all_files(&mut stream);
    stream.receipt().unwrap().digests.weights.unwrap()
}

#[test]
fn line_38_untouched_files_in_their_base_are_the_base_byte_for_byte() {
    for Family {
        name: family,
        gguf: files,
    } in gguf_families()
    {
        let found = gguf(
            &of_files(goldens(files)),
            goldens(files),
            &named("m", "as-base"),
        );
        match files[..] {
            [file] => assert!(found == golden(file), "{family}"),
            _ => {
                let (again, before) = (open(&found), open_bundle(goldens(files)).unwrap());
                assert!(before.names().iter().all(|name| again.read_f32(name).unwrap() == before.read_f32(name).unwrap()));
            }
        }
    }
}

#[test]
fn line_39_recipe_of_files_is_that_of_the_device_in_every_type() {
    let words: Vec<&str> = TensorType::ALL
        .iter()
        .map(|one| one.word())
        .chain(["q4_k_m", "as-base"])
        .collect();
    for Family {
        name: family,
        gguf: files,
    } in gguf_families()
    {
        let model = load(&open_bundle(goldens(files)).unwrap(), Precision::F32);
        let tokenizer = open_bundle(goldens(files)).unwrap().tokenizer;
        for word in &words {
            let on_device = written(gguf_recipe(&model, tokenizer.as_ref(), "m", word).unwrap()).1;
            assert!(
                gguf(&of_files(goldens(files)), Vec::new(), &named("m", word)) == on_device,
                "{family} {word}"
            );
        }
    }
    let model = wide();
    let from = of_bytes(&written(gguf_recipe(&model, None, "m", "f32").unwrap()).1);
    for word in &words {
        assert!(
            gguf(&from, Vec::new(), &named("m", word))
                == written(gguf_recipe(&model, None, "m", word).unwrap()).1,
            "{word}"
        );
    }
}

#[test]
fn line_39_folder_to_gguf_and_back_has_the_same_weights() {
    for family in gguf_families().map(|family| family.name) {
        let folder = || {
            let mut config: serde_json::Value =
                serde_json::from_slice(&golden(&format!("{family}/config.json"))).unwrap();
            // Its scaling bounds are not published ones, so a file with frequency divisors would be needed.
            config.as_object_mut().unwrap().remove("rope_scaling");
            let weights = source(
                "model.safetensors",
                golden(&format!("{family}/model.safetensors")),
            );
            vec![
                source("config.json", config.to_string().into_bytes()),
                weights,
            ]
        };
        let bytes = gguf(&of_files(folder()), Vec::new(), &named("m", "f32"));
        assert_eq!(
            weights_digest_of(open(&bytes)),
            weights_digest_of(open_bundle(folder()).unwrap()),
            "{family}"
        );
    }
}

#[test]
fn blocks_are_copied_dequantised_or_refused() {
    let model = wide();
    for word in ["q8_0", "q4_k", "q6_k", "q4_k_m"] {
        let blocks = written(gguf_recipe(&model, None, "m", word).unwrap()).1;
        let from = of_bytes(&blocks);
        for same in [word, "as-base"] {
            assert_eq!(
                contents(&gguf(&from, Vec::new(), &named("m", same))),
                contents(&blocks),
                "{word} as {same}"
            );
        }
        let Error::Refused(list) = refused(&from, &named("m", "q5_1")) else {
            panic!("not refused")
        };
        let matrices = contents(&blocks)
            .iter()
            .filter(|(_, dtype, _)| dtype.starts_with("GGML:"))
            .count();
        assert!(
            list.len() == matrices
                && list
                    .iter()
                    .all(|one| one.code == "export.gguf.quantised-source"),
            "{list:?}"
        );
        let again = gguf(
            &from,
            Vec::new(),
            &ExportOptions {
                requantise: true,
                ..named("m", "q5_1")
            },
        );
        assert_eq!(
            contents(&again)
                .iter()
                .filter(|(_, dtype, _)| dtype == "GGML:Q5_1")
                .count(),
            matrices
        );
        let Error::Refused(list) = export_folder(&from, &ExportOptions::default())
            .map(|_| ())
            .unwrap_err()
        else {
            panic!("not refused")
        };
        assert!(
            list.len() == matrices
                && list
                    .iter()
                    .all(|one| one.code == "export.safetensors.quantised"),
            "{list:?}"
        );
        let plain = ExportOptions {
            dtype: ExportDtype::F32,
            ..ExportOptions::default()
        };
        let files = all_files(&mut export_folder(&from, &plain).unwrap());
        let (after, before) = (open_bundle(sources(&files)).unwrap(), open(&blocks));
        assert!(
            before
                .names()
                .iter()
                .all(|name| before.read_f32(name).unwrap() == after.read_f32(name).unwrap()),
            "{word}"
        );
    }
}

#[test]
fn what_encoding_costs_is_what_a_reader_of_the_file_finds() {
    let model = wide();
    let before = open(&written(gguf_recipe(&model, None, "m", "f32").unwrap()).1);
    let mut stream = block_on(export_gguf(
        &of_model(&model, None, None),
        Vec::new(),
        &named("m", "q4_k_m"),
    ))
    .unwrap();
    let bytes = all_files(&mut stream).remove(0).1;
    let (receipt, after) = (stream.receipt().unwrap(), open(&bytes));
    let file = GgufFile::open(&MemorySource::new("m.gguf", bytes)).unwrap();
    assert_eq!(
        receipt.conversions.len(),
        file.tensors
            .iter()
            .filter(|tensor| tensor.dtype != "F32")
            .count()
    );
    for told in &receipt.conversions {
        assert_eq!(
            (told.from.as_str(), told.to.clone()),
            ("F32", file.tensor(&told.tensor).unwrap().dtype.clone())
        );
        // The name differs for the same values: rows in pairs do not change the largest error.
        let name = before
            .names()
            .into_iter()
            .find(|name| stored_name(name) == told.tensor)
            .unwrap();
        let pairs = before
            .read_f32(&name)
            .unwrap()
            .into_iter()
            .zip(after.read_f32(&name).unwrap());
        let error = pairs
            .map(|(a, b)| (f64::from(a) - f64::from(b)).abs())
            .fold(0.0, f64::max);
        assert!(
            error > 0.0 && told.max_abs_error.to_bits() == error.to_bits(),
            "{told:?} {error}"
        );
    }
}

/// Returns the GGUF name of a matrix of `wide`.
fn stored_name(name: &str) -> String {
    let parts = [
        ("q_proj", "attn_q"),
        ("k_proj", "attn_k"),
        ("v_proj", "attn_v"),
        ("o_proj", "attn_output"),
        ("gate_proj", "ffn_gate"),
        ("up_proj", "ffn_up"),
        ("down_proj", "ffn_down"),
    ];
    match parts.iter().find(|(hf, _)| name.contains(hf)) {
        Some((_, gguf)) => format!("blk.0.{gguf}.weight"),
        None => "token_embd.weight".into(),
    }
}

#[test]
fn long_tensors_of_files_are_put_into_order_in_pieces() {
    // Heads longer than one read, eight heads in one, and transposed matrices with rows longer than what is gathered at once.
    let llama = |hidden_size: usize, head_dim: usize, heads: usize| {
        fresh(
            json!({"model_type": "llama", "vocab_size": 2, "hidden_size": hidden_size, "intermediate_size": 1, "head_dim": head_dim,
            "num_attention_heads": heads, "num_key_value_heads": 1, "max_position_embeddings": 4}),
        )
    };
    let gpt2 = |width: usize, inner: usize| {
        fresh(
            json!({"model_type": "gpt2", "vocab_size": 2, "n_embd": width, "n_layer": 1, "n_head": 1, "n_positions": 2, "n_inner": inner}),
        )
    };
    for model in [
        llama(300_000, 2, 2),
        llama(1_000, 64, 19),
        gpt2(2, 2_100_001),
        gpt2(48, 12_000),
    ] {
        let from_device = written(gguf_recipe(&model, None, "m", "f32").unwrap()).1;
        let folder = all_files(
            &mut export_folder(&of_model(&model, None, None), &ExportOptions::default()).unwrap(),
        );
        assert!(
            gguf(&of_files(sources(&folder)), Vec::new(), &named("m", "f32")) == from_device,
            "{:?}",
            model.config()
        );
        let again = all_files(
            &mut export_folder(&of_bytes(&from_device), &ExportOptions::default()).unwrap(),
        );
        assert!(again[0] == folder[0], "{:?}", model.config());
    }
}

#[test]
fn what_cannot_be_opened_again_is_refused() {
    let scaled = |low: f64, original: usize| {
        fresh(
            json!({"model_type": "llama", "vocab_size": 4, "hidden_size": 16, "head_dim": 16, "intermediate_size": 4,
            "num_attention_heads": 1, "max_position_embeddings": 8, "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
            "low_freq_factor": low, "high_freq_factor": 4.0, "original_max_position_embeddings": original}}),
        )
    };
    assert!(gguf_recipe(&scaled(1.0, 8192), None, "m", "f32").is_ok());
    for model in [scaled(2.0, 8192), scaled(1.0, 10_000)] {
        assert_eq!(
            gguf_recipe(&model, None, "m", "f32")
                .map(|_| ())
                .unwrap_err()
                .code(),
            "export.gguf.arch"
        );
    }
    // A refused tokenizer is not the same as no tokenizer.
    let folder = ["config.json", "model.safetensors"]
        .map(|name| source(name, golden(&format!("qwen2/{name}"))));
    let broken = folder
        .into_iter()
        .chain([source("tokenizer.json", b"{}".to_vec())])
        .collect();
    let from = of_files(broken);
    assert_eq!(
        refused(&from, &named("m", "f32")).code(),
        "tokenizer.invalid"
    );
    assert_eq!(
        refused(
            &from,
            &ExportOptions {
                name: Some("../m".into()),
                ..ExportOptions::default()
            }
        )
        .code(),
        "config.invalid"
    );
}
