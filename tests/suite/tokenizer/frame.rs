//! Tokens around a text, which are added by the post-processor or by `tokenizer_config.json`.

use serde_json::{Value, json};
use tabtune::tokenizer::{Tokenizer, TokenizerParts};

use super::sentence_piece;

/// Makes a folder's tokenizer, whose post-processor adds a beginning and an end if `added` says so.
fn of(class: &str, added: bool, keys: &Value) -> Tokenizer {
    let parts = TokenizerParts {
        add_bos: Some(added),
        add_eos: Some(added),
        ..sentence_piece(true)
    };
    let files = Tokenizer::from_parts(parts).unwrap().assets();
    let file = |name: &str| {
        files
            .iter()
            .find(|(found, _)| found == name)
            .unwrap()
            .1
            .clone()
    };
    let mut config: Value = serde_json::from_slice(&file("tokenizer_config.json")).unwrap();
    let fields = config.as_object_mut().unwrap();
    fields.retain(|key, _| !key.starts_with("add_"));
    fields.insert("tokenizer_class".to_owned(), json!(class));
    fields.extend(keys.as_object().unwrap().clone());
    Tokenizer::from_hf(
        &file("tokenizer.json"),
        Some(config.to_string().as_bytes()),
        None,
    )
    .unwrap()
}

/// Returns whether `Bennet` has tokens around it, at its beginning and at its end.
fn around(tokenizer: &Tokenizer) -> (bool, bool) {
    let (plain, prompt) = (
        tokenizer.encode("Bennet").unwrap(),
        tokenizer.encode_prompt("Bennet").unwrap(),
    );
    let (begun, ended) = (prompt.first() == Some(&1), prompt.last() == Some(&2));
    let expected = [
        &[1][..usize::from(begun)],
        &plain,
        &[2][..usize::from(ended)],
    ]
    .concat();
    assert_eq!(prompt, expected);
    assert_eq!(tokenizer.prompt_prefix(), &[1][..usize::from(begun)]);
    assert_eq!(
        tokenizer.encode_beginning("Bennet").unwrap(),
        expected[..expected.len() - usize::from(ended)]
    );
    (begun, ended)
}

#[test]
fn keys_of_the_settings_decide_over_the_post_processor_for_tokenizers_like_llamas() {
    for added in [true, false] {
        for class in [
            "LlamaTokenizer",
            "LlamaTokenizerFast",
            "CodeLlamaTokenizerFast",
            "GemmaTokenizerFast",
            "CohereTokenizerFast",
        ] {
            let around = |keys: Value| around(&of(class, added, &keys));
            // By itself the class begins a text.
            assert_eq!(around(json!({})), (true, added), "{class}");
            assert_eq!(
                around(json!({"add_bos_token": null, "add_eos_token": null})),
                (added, added),
                "{class}"
            );
            for (begun, ended) in [(true, true), (true, false), (false, true), (false, false)] {
                assert_eq!(
                    around(json!({"add_bos_token": begun, "add_eos_token": ended})),
                    (begun, ended),
                    "{class}"
                );
                assert_eq!(
                    around(json!({"add_bos_token": begun})),
                    (begun, added),
                    "{class}"
                );
                assert_eq!(
                    around(json!({"add_eos_token": ended})),
                    (true, ended),
                    "{class}"
                );
            }
            // A token that no key names cannot be added.
            assert_eq!(
                around(json!({"add_bos_token": true, "bos_token": null})),
                (false, added),
                "{class}"
            );
        }
        let of_keys = |keys: Value| around(&of("GPTNeoXTokenizerFast", added, &keys));
        assert_eq!(
            (of_keys(json!({})), of_keys(json!({"add_bos_token": true}))),
            ((false, false), (true, false))
        );
        for class in [
            "PreTrainedTokenizerFast",
            "Qwen2Tokenizer",
            "GPT2TokenizerFast",
        ] {
            assert_eq!(
                around(&of(
                    class,
                    added,
                    &json!({"add_bos_token": !added, "add_eos_token": !added})
                )),
                (added, added),
                "{class}"
            );
        }
    }
}
