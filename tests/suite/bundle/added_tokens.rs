//! Tokens of the vocabulary for which the embedding has no row.

use serde_json::{Value, json};
use tabtune::bundle::{Bundle, open_bundle};

use super::files::{file, ramp, safetensors};

/// Makes a vocabulary of the two letters and of `added` tokens, from id 2 on.
fn tokenizer(added: &[&str]) -> Value {
    let listed = added.iter().zip(2..).map(|(content, id)| {
        json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true})
    });
    json!({"version": "1.0", "added_tokens": listed.collect::<Vec<_>>(), "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}})
}

/// Opens a model of `rows` rows, with this tokenizer and further keys of its configuration.
fn opened(rows: usize, tokenizer: &Value, settings: &Value, more: &Value) -> Bundle {
    let mut config = json!({"model_type": "llama", "vocab_size": rows, "hidden_size": 4, "intermediate_size": 4, "num_hidden_layers": 1,
        "num_attention_heads": 1, "max_position_embeddings": 8, "rms_norm_eps": 1e-5, "rope_theta": 1e4, "tie_word_embeddings": true});
    config
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let weights = safetensors(&[(
        "model.embed_tokens.weight",
        vec![rows, 4],
        ramp(4 * rows, 0.0),
    )]);
    open_bundle(vec![
        file("chat_template.jinja", "{{ messages }}"),
        file("config.json", config.to_string()),
        file("model.safetensors", weights),
        file("tokenizer.json", tokenizer.to_string()),
        file("tokenizer_config.json", settings.to_string()),
    ])
    .unwrap()
}

fn codes(bundle: &Bundle) -> Vec<(&'static str, &str)> {
    bundle
        .warnings
        .iter()
        .map(|warning| (warning.code, warning.subject.as_str()))
        .collect()
}

#[test]
fn added_tokens_beyond_the_rows_are_out_of_use_with_a_warning() {
    let settings = json!({"bos_token": "<s>", "eos_token": "[END]", "pad_token": "[PAD]"});
    let bundle = opened(
        3,
        &tokenizer(&["<s>", "[END]", "[PAD]"]),
        &settings,
        &json!({}),
    );
    assert_eq!(
        codes(&bundle),
        [("tokenizer.tokens.beyond", "[END], [PAD]")]
    );
    assert!(
        bundle.warnings[0].message().contains("[END], [PAD]"),
        "{}",
        bundle.warnings[0].message()
    );
    let tokenizer = bundle.need_tokenizer().unwrap();
    assert_eq!(
        (
            tokenizer.vocab_size(),
            tokenizer.bos(),
            tokenizer.eos(),
            tokenizer.pad()
        ),
        (3, &[2][..], &[][..], None)
    );
    assert_eq!(tokenizer.encode("<s>ab").unwrap(), [2, 0, 1]);
    for refused in [
        tokenizer.encode("a[PAD]b"),
        tokenizer.encode_prompt("[PAD]"),
        tokenizer.encode_with_starts("a[PAD]").map(|(ids, _)| ids),
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.code(), "tokenizer.text");
        assert!(
            error.to_string().contains("[PAD]") && error.to_string().contains("3 rows"),
            "{error}"
        );
    }
    assert_eq!(
        tokenizer.decode(&[4]).unwrap_err().code(),
        "model.token-range"
    );
}

#[test]
fn a_list_of_tokens_beyond_the_rows_is_short() {
    let names: Vec<String> = (0..11).map(|n| format!("<{n}>")).collect();
    let bundle = opened(
        2,
        &tokenizer(&names.iter().map(String::as_str).collect::<Vec<_>>()),
        &json!({}),
        &json!({}),
    );
    assert_eq!(
        codes(&bundle),
        [(
            "tokenizer.tokens.beyond",
            "<0>, <1>, <2>, <3>, <4>, <5>, <6>, <7> and 3 more"
        )]
    );
}

#[test]
fn a_vocabulary_larger_than_the_embedding_is_refused_as_the_file_that_it_is_in() {
    let bundle = opened(1, &tokenizer(&["<s>"]), &json!({}), &json!({}));
    let error = bundle.need_tokenizer().unwrap_err();
    assert_eq!(error.code(), "tokenizer.size.mismatch");
    assert!(error.to_string().starts_with("tokenizer.json: "), "{error}");
}

#[test]
fn ids_next_to_the_text_that_no_token_has_are_reported() {
    let more =
        json!({"pad_token_id": 3, "sep_token_id": 2, "cls_token_id": -1, "mask_token_id": -7});
    let bundle = opened(3, &tokenizer(&["<s>"]), &json!({}), &more);
    assert_eq!(
        codes(&bundle),
        [
            ("tokenizer.id.unused", "pad"),
            ("tokenizer.id.unused", "mask")
        ]
    );
    assert!(bundle.warnings[0].message().contains("pad"));
}

/// Ids of texts are used from these documents only where a token has them: GPT-2's 50256 is in the configuration of every small copy.
#[test]
fn ids_of_the_ends_of_a_text_that_no_token_has_are_reported() {
    let more = json!({"bos_token_id": 50256, "eos_token_id": [2, 50256], "pad_token_id": null});
    let bundle = opened(3, &tokenizer(&["<s>"]), &json!({}), &more);
    assert_eq!(
        codes(&bundle),
        [
            ("tokenizer.id.unused", "bos"),
            ("tokenizer.id.unused", "eos")
        ]
    );
    assert_eq!(bundle.need_tokenizer().unwrap().eos(), [2]);
}

#[test]
fn special_tokens_that_the_vocabulary_lacks_have_the_next_ids_and_are_reported() {
    let settings = json!({"bos_token": "<s>", "eos_token": "[STOP]", "unk_token": "<unk>"});
    let bundle = opened(3, &tokenizer(&["<s>"]), &settings, &json!({}));
    assert_eq!(codes(&bundle), [("tokenizer.tokens.beyond", "[STOP]")]);
    assert_eq!(
        bundle
            .need_tokenizer()
            .unwrap()
            .encode("a[STOP]")
            .unwrap_err()
            .code(),
        "tokenizer.text"
    );
    let bundle = opened(5, &tokenizer(&["<s>"]), &settings, &json!({}));
    assert_eq!(codes(&bundle), [("tokenizer.special.absent", "[STOP] 3")]);
    assert!(
        bundle.warnings[0].message().contains("[STOP] 3"),
        "{}",
        bundle.warnings[0].message()
    );
    let tokenizer = bundle.need_tokenizer().unwrap();
    assert_eq!(
        (tokenizer.encode("a[STOP]<unk>").unwrap(), tokenizer.eos()),
        (vec![0, 3, 4], &[3][..])
    );
}

#[test]
fn tokens_that_have_another_id_than_a_file_states_are_reported() {
    let token = json!({"content": "<x>", "special": true, "normalized": false});
    let settings = json!({"added_tokens_decoder": {"2": {"content": "<s>", "special": true, "normalized": false}, "4": token}});
    let bundle = opened(5, &tokenizer(&["<s>"]), &settings, &json!({}));
    assert_eq!(codes(&bundle), [("tokenizer.id.other", "<x> 4, not 3")]);
    assert_eq!(bundle.need_tokenizer().unwrap().encode("<x>").unwrap(), [3]);
}

#[test]
fn an_end_in_a_list_that_is_a_part_of_texts_is_reported() {
    let found = |ids: Value| {
        let bundle = opened(
            4,
            &tokenizer(&["<s>", "</s>"]),
            &json!({"eos_token": "</s>"}),
            &json!({"eos_token_id": ids}),
        );
        (
            bundle.need_tokenizer().unwrap().eos().to_vec(),
            bundle
                .warnings
                .into_iter()
                .map(|warning| (warning.code, warning.subject))
                .collect::<Vec<_>>(),
        )
    };
    assert_eq!(
        found(json!([0, 3])),
        (vec![3], vec![("tokenizer.end.ordinary", "0".to_string())])
    );
    assert_eq!(found(json!([2, 3])), (vec![3, 2], vec![]));
    // transformers writes a number where no one chose one.
    assert_eq!(found(json!(0)), (vec![3], vec![]));
}
