//! The probability that a score gives to a generated text is the one that the generation reported.

use serde_json::{Map, Value, json};
use tabtune::config::{BaseStorage, ModelConfig};
use tabtune::device::Device;
use tabtune::families::{config_from_hf, model_types};
use tabtune::generate::score::{ScoreConfig, score};
use tabtune::generate::{GenerateConfig, Generator};
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune::tokenizer::Tokenizer;
use tabtune::train::Trainer;
use tabtune_tests::{block_on, devices, in_full};

use super::{adapted, base, dataset, opened, settings};

/// The printable characters of ASCII; then a beginning and an end.
const ROWS: usize = 97;

/// Returns a vocabulary in which a text has one way to be written, with the beginning-of-text before each.
fn tokenizer() -> Tokenizer {
    let letters = (' '..='~').map(|c| {
        if c == ' ' {
            "Ġ".to_owned()
        } else {
            c.to_string()
        }
    });
    let vocab: Map<String, Value> = letters
        .enumerate()
        .map(|(id, letter)| (letter, json!(id)))
        .collect();
    let special = |id: usize, text: &str| json!({"id": id, "content": text, "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false});
    let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    let document = json!({
        "version": "1.0", "added_tokens": [special(95, "<s>"), special(96, "</s>")], "pre_tokenizer": byte_level, "decoder": byte_level,
        "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": {"<s>": {"id": "<s>", "ids": [95], "tokens": ["<s>"]}}},
        "model": {"type": "BPE", "vocab": vocab, "merges": []},
    });
    Tokenizer::from_hf(
        document.to_string().as_bytes(),
        Some(br#"{"bos_token": "<s>", "eos_token": "</s>"}"#),
        None,
    )
    .unwrap()
}

/// Returns a small shape of each word that a configuration has for a family.
/// Families whose configurations need more keys than the shape here.
const NEED_MORE_KEYS: [&str; 1] = ["granitemoehybrid"];

fn shapes() -> Vec<(&'static str, ModelConfig)> {
    let llama = json!({
        "vocab_size": ROWS, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "tie_word_embeddings": true,
        "initializer_range": 0.1
    });
    let of = |kind: &str| {
        let mut config = match kind {
            "gpt2" => {
                json!({"n_embd": 32, "n_head": 4, "n_layer": 2, "n_positions": 64, "vocab_size": ROWS, "initializer_range": 0.1})
            }
            _ => llama.clone(),
        };
        config["model_type"] = json!(kind);
        match kind {
            // In GGUF scores are divided by the root of the width of a head.
            "gemma2" | "gemma3_text" => config["query_pre_attn_scalar"] = json!(8),
            // GGUF has windows in a model of 64 layers alone.
            "exaone4" => config["sliding_window"] = json!(null),
            // llama.cpp takes this ε for the length of keys, too.
            "qwen3_5_text" => {
                config["rms_norm_eps"] = json!(1e-6);
                for (key, value) in [
                    ("linear_num_key_heads", 2),
                    ("linear_num_value_heads", 4),
                    ("linear_key_head_dim", 8),
                    ("linear_value_head_dim", 8),
                ] {
                    config[key] = json!(value);
                }
            }
            _ => {}
        }
        config
    };
    model_types()
        .into_iter()
        .filter(|kind| !NEED_MORE_KEYS.contains(kind))
        .map(|kind| (kind, config_from_hf(&of(kind)).unwrap()))
        .collect()
}

fn compared(model: &Model, name: &str) {
    let tokenizer = tokenizer();
    let prompts = [(" Once", 0), ("<s>x", 1), ("", 2), ("ab", 3)];
    for (prompt, seed) in prompts.into_iter().take(if in_full() { 4 } else { 2 }) {
        let config = GenerateConfig {
            max_tokens: if in_full() { 12 } else { 6 },
            temperature: if seed == 0 { 0.0 } else { 1.0 },
            seed,
            ..GenerateConfig::default()
        };
        let mut generator = Generator::new(model, &tokenizer, prompt, config).unwrap();
        let (mut text, mut generated) = (prompt.to_owned(), Vec::new());
        while let Some(token) = block_on(generator.next(model, &tokenizer)).unwrap() {
            text.push_str(&token.text);
            generated.push(token);
        }
        let (ids, _) = tokenizer.encode_text(&text).unwrap();
        let scored = block_on(score(
            model,
            &tokenizer,
            &ids,
            &ScoreConfig::default(),
            &Interrupt::none(),
        ))
        .unwrap();
        let last = &scored.tokens[scored.tokens.len() - generated.len()..];
        for (at, (scored, generated)) in last.iter().zip(&generated).enumerate() {
            assert_eq!(scored.id, generated.id, "{name}: {text:?} {at}");
            let error = (scored.logprob.unwrap() - generated.logprob).abs();
            // Keys and values from a cache are the same sums in another order.
            assert!(error < 1e-5, "{name}: {text:?} {at}: {error:e}");
        }
    }
}

fn by_storage(config: &ModelConfig, types: &str, name: &str, device: &Device) {
    let bundle = opened(&base(config, types));
    for storage in [BaseStorage::F32, BaseStorage::Stored] {
        let model = block_on(Model::for_inference(
            &bundle,
            storage,
            &device.inner(),
            &Interrupt::none(),
        ))
        .unwrap();
        compared(&model, &format!("{name} {types} {storage:?}"));
    }
    for storage in ["f32", "stored"] {
        let adapter = json!({ "r": 3, "alpha": 6.0, "target_modules": "all-linear" });
        let config = settings(adapter, json!({ "base_storage": storage }));
        let mut trainer =
            Trainer::new(adapted(&bundle, &config, device), dataset(), config).unwrap();
        for _ in 0..2 {
            block_on(trainer.step()).unwrap();
        }
        compared(
            trainer.model(),
            &format!("{name} {types} {storage} with an adapter"),
        );
    }
}

#[test]
fn a_score_gives_the_probability_that_the_generation_gave() {
    for (which, device) in devices().into_iter().enumerate() {
        // The short form has each family on every second device.
        for (at, (name, config)) in shapes()
            .into_iter()
            .enumerate()
            .filter(|(at, _)| in_full() || (at + which) % 2 == 0)
        {
            let types = ["f16", "q8_0", "q4_0"];
            for types in if in_full() {
                &types[..]
            } else {
                &types[at % 3..][..1]
            } {
                by_storage(&config, types, name, &device);
            }
        }
    }
}
