//! Text to ids in commands: one probability in `generate` and `score`, warnings about prompts.

use super::*;

/// Writes a Llama of one layer with the ids of bytes, `<s>` before each text, and `€` without a token as `<unk>`.
fn begun(place: &Path) -> String {
    let to = place.join("model");
    std::fs::create_dir_all(&to).unwrap();
    let special = |id: usize, text: &str| json!({"id": id, "content": text, "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false});
    let letters = ["<unk>", "<s>", "</s>", " "]
        .iter()
        .map(ToString::to_string)
        .chain(('a'..='z').map(String::from));
    let vocab: serde_json::Map<String, Value> = letters
        .enumerate()
        .map(|(id, token)| (token, json!(id)))
        .collect();
    let rows = vocab.len();
    let document = json!({
        "version": "1.0", "added_tokens": [special(0, "<unk>"), special(1, "<s>"), special(2, "</s>")], "decoder": {"type": "Fuse"},
        "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
        "model": {"type": "BPE", "vocab": vocab, "merges": [], "unk_token": "<unk>"},
    });
    let config = json!({
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_act": "silu", "hidden_size": 16, "intermediate_size": 24,
        "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
        "tie_word_embeddings": true, "vocab_size": rows, "initializer_range": 0.5
    });
    // As many characters as there are tokens.
    let data = write(
        place,
        "data.txt",
        "abcdefghijklmnopqrstuvwxyz 012 the slithy toves".repeat(20),
    );
    let (config, run) = (
        write(place, "config.json", config.to_string()),
        text(&place.join("run")),
    );
    let mut train = vec![
        "train", "--config", &config, "--data", &data, "--device", "cpu", "--out", &run,
    ];
    train.extend(["--steps", "2", "--batch-size", "2", "--seq-len", "16"]);
    succeed(&train);
    for name in ["config.json", "model.safetensors"] {
        std::fs::copy(place.join("run").join(name), to.join(name)).unwrap();
    }
    write(&to, "tokenizer.json", document.to_string());
    write(
        &to,
        "tokenizer_config.json",
        r#"{"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}"#,
    );
    text(&to)
}

/// T5-09. The beginning of a text is before the scored text as it was before the prompt.
#[test]
fn a_generated_text_has_one_probability() {
    let place = folder("one-probability");
    let model = begun(&place);
    for (prompt, temperature) in [("ab", "0"), ("the ", "1")] {
        let args = [
            "generate",
            "--model",
            &model,
            "--device",
            "cpu",
            "--max-tokens",
            "12",
            "--temperature",
            temperature,
            "--prompt",
            prompt,
        ];
        let generated = succeed(&args);
        let tokens = generated.with("id");
        let written: String = tokens
            .iter()
            .map(|token| token["text"].as_str().unwrap())
            .collect();
        let scored = succeed(&[
            "score",
            "--model",
            &model,
            "--device",
            "cpu",
            "--text",
            &format!("{prompt}{written}"),
        ]);
        let scored = scored.with("id");
        assert_eq!(scored.len(), 1 + prompt.len() + tokens.len());
        for (scored, generated) in scored[1 + prompt.len()..].iter().zip(&tokens) {
            assert_eq!(scored["id"], generated["id"]);
            let difference =
                scored["logprob"].as_f64().unwrap() - generated["logprob"].as_f64().unwrap();
            assert!(difference.abs() < 1e-5, "{difference}");
        }
    }
}

#[test]
fn characters_of_prompts_without_a_token_are_reported() {
    let place = folder("told-prompts");
    let model = begun(&place);
    for (command, more) in [
        (
            "generate",
            &["--device", "cpu", "--max-tokens", "1", "--prompt"][..],
        ),
        ("score", &["--device", "cpu", "--text"]),
        ("tokenize", &["--text"]),
    ] {
        let log = |given: &str| {
            String::from_utf8(
                output(&[&[command, "--model", &model], more, &[given]].concat()).stderr,
            )
            .unwrap()
        };
        let told = log("a €</s>b");
        assert!(
            told.contains("\"€\" (1). [data.unknown]") && told.contains("</s> (1). [data.control]"),
            "{command}: {told}"
        );
        assert!(!log("a b").contains("[data."), "{command}");
    }
}
