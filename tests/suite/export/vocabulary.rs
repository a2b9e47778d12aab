//! Tokenizers as GGUF metadata: rules found by their structure, characters, and parts that GGUF cannot represent.

use serde_json::{Value, json};
use tabtune::config::Precision;
use tabtune::families::config_from_hf;
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune::tokenizer::{PartsModel, Tokenizer, TokenizerKind, TokenizerParts};
use tabtune_tests::{block_on, cpu};

use super::{gguf_recipe, open, written};
use crate::tokenizer::{byte_level, sentence_piece};

const TEXT: &str = "It's 12345 of  the words,\n\tand don't:  she'LL go.";

/// Exports a tokenizer to a GGUF file of a model with this many rows and opens it again.
fn through_gguf(tokenizer: &Tokenizer, rows: usize) -> Tokenizer {
    let config = json!({
        "model_type": "llama", "vocab_size": rows, "hidden_size": 4, "intermediate_size": 4, "num_hidden_layers": 1,
        "num_attention_heads": 1, "max_position_embeddings": 8, "tie_word_embeddings": true
    });
    let config = config_from_hf(&config).unwrap();
    let model = block_on(Model::init(
        &config,
        1,
        Precision::F32,
        &cpu().inner(),
        &Interrupt::none(),
    ))
    .unwrap();
    let stream = gguf_recipe(&model, Some(tokenizer), "tiny", "as-base").unwrap();
    let bundle = open(&written(stream).1);
    assert!(bundle.warnings.is_empty(), "{:?}", bundle.warnings);
    bundle.tokenizer.unwrap()
}

fn equal(found: &Tokenizer, expected: &Tokenizer) {
    assert_eq!(found.encode(TEXT).unwrap(), expected.encode(TEXT).unwrap());
    assert_eq!(
        found.encode_prompt(TEXT).unwrap(),
        expected.encode_prompt(TEXT).unwrap()
    );
    assert_eq!(found.prompt_prefix(), expected.prompt_prefix());
    assert_eq!(
        (found.bos(), found.eos(), found.pad()),
        (expected.bos(), expected.eos(), expected.pad())
    );
}

#[test]
fn rules_of_byte_level_vocabularies_are_found_by_their_structure() {
    for pre in [
        "gpt-2",
        "smollm",
        "llama-bpe",
        "qwen2",
        "dbrx",
        "deepseek-llm",
        "deepseek-coder",
        "deepseek-v3",
        "tekken",
        "gpt-4o",
        "falcon",
        "bloom",
    ] {
        let tokenizer = Tokenizer::from_parts(byte_level(pre)).unwrap();
        let rows = tokenizer.vocab_size() + 3;
        let parts = tokenizer.to_parts(rows).unwrap();
        let PartsModel::ByteLevelBpe { pre: found, .. } = &parts.model else {
            panic!("{:?}", parts.model)
        };
        assert_eq!(found, pre);
        let last = parts.tokens.iter().zip(&parts.types).next_back().unwrap();
        assert_eq!(last, (&format!("[PAD{}]", rows - 1), &5));
        equal(&through_gguf(&tokenizer, rows), &tokenizer);
    }
}

#[test]
fn sentence_piece_is_found_with_and_without_its_first_space() {
    for add_space_prefix in [true, false] {
        let tokenizer = Tokenizer::from_parts(sentence_piece(add_space_prefix)).unwrap();
        let parts = tokenizer.to_parts(tokenizer.vocab_size()).unwrap();
        assert!(
            matches!(parts.model, PartsModel::SentencePiece { add_space_prefix: found, .. } if found == add_space_prefix)
        );
        equal(
            &through_gguf(&tokenizer, tokenizer.vocab_size()),
            &tokenizer,
        );
    }
}

#[test]
fn characters_come_back_with_their_ids() {
    let text = "ab\\ \n\"é\u{1f642}[";
    let tokenizer = Tokenizer::characters(text).unwrap();
    for rows in [tokenizer.vocab_size(), tokenizer.vocab_size() + 2] {
        let found = through_gguf(&tokenizer, rows);
        assert_eq!(found.kind(), TokenizerKind::Characters);
        assert_eq!(found.encode(text).unwrap(), tokenizer.encode(text).unwrap());
        assert_eq!(
            found.decode(&tokenizer.encode(text).unwrap()).unwrap(),
            text
        );
        assert_eq!(found.vocab_size(), tokenizer.vocab_size());
        assert!(found.eos().is_empty() && found.bos().is_empty());
    }
}

#[test]
fn named_chat_templates_come_back() {
    let named = vec![
        ("rag".to_string(), "R{{ messages }}".to_string()),
        ("tool_use".to_string(), "T{{ messages }}".to_string()),
    ];
    let mut parts = byte_level("gpt-2");
    parts.named_templates.clone_from(&named);
    let tokenizer = Tokenizer::from_parts(parts.clone()).unwrap();
    assert_eq!(tokenizer.named_templates(), named);
    let found = through_gguf(&tokenizer, tokenizer.vocab_size());
    assert_eq!(
        (found.named_templates(), found.chat_template()),
        (named.as_slice(), parts.chat_template.as_deref())
    );
    let assets = found.assets();
    let asset = |name: &str| {
        assets
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, bytes)| bytes.as_slice())
    };
    let again = Tokenizer::from_hf(
        asset("tokenizer.json").unwrap(),
        asset("tokenizer_config.json"),
        asset("chat_template.jinja"),
    )
    .unwrap();
    assert_eq!(
        (again.named_templates(), again.chat_template()),
        (named.as_slice(), parts.chat_template.as_deref())
    );
}

/// Makes a byte-level tokenizer with a change to its `tokenizer.json`.
fn changed(change: impl Fn(&mut Value)) -> Tokenizer {
    let assets = Tokenizer::from_parts(byte_level("gpt-2")).unwrap().assets();
    let asset = |name: &str| {
        assets
            .iter()
            .find(|(found, _)| found == name)
            .unwrap()
            .1
            .clone()
    };
    let mut document: Value = serde_json::from_slice(&asset("tokenizer.json")).unwrap();
    change(&mut document);
    Tokenizer::from_hf(
        document.to_string().as_bytes(),
        Some(&asset("tokenizer_config.json")),
        None,
    )
    .unwrap()
}

#[test]
fn tokenizers_of_other_rules_are_refused() {
    let refused = |tokenizer: &Tokenizer| {
        tokenizer
            .to_parts(tokenizer.vocab_size())
            .unwrap_err()
            .code()
    };
    assert!(changed(|_| {}).to_parts(10_000).is_ok());
    assert_eq!(
        refused(&changed(
            |document| document["normalizer"] = json!({"type": "Lowercase"})
        )),
        "export.gguf.tokenizer"
    );
    let assets = Tokenizer::from_parts(byte_level("gpt-2")).unwrap().assets();
    let split = Tokenizer::from_hf(
        &assets[0].1,
        Some(br#"{"split_special_tokens": true}"#),
        None,
    )
    .unwrap();
    assert_eq!(
        (
            refused(&split),
            split.encode("<|im_end|>").unwrap().len() > 1
        ),
        ("export.gguf.tokenizer", true)
    );
    let mut many = changed(|_| {});
    many.add_eos(&[0, 1, 2, 3, 4]);
    assert_eq!(refused(&many), "export.gguf.tokenizer");
    let tokenizer = changed(|_| {});
    let code = tokenizer
        .to_parts(tokenizer.vocab_size() - 1)
        .map(|_: TokenizerParts| ())
        .unwrap_err()
        .code();
    assert_eq!(code, "export.gguf.tokenizer", "fewer rows than tokens");
}

/// Each part of a rule that llama.cpp's word does not have is named. The published spellings of a word's own rule are taken for it.
#[test]
fn a_word_is_written_only_for_its_own_rule() {
    let word = |change: &dyn Fn(&mut Value)| {
        let tokenizer = changed(change);
        tokenizer
            .to_parts(tokenizer.vocab_size())
            .map(|parts| match parts.model {
                PartsModel::ByteLevelBpe { pre, .. } => pre,
                other => panic!("{other:?}"),
            })
    };
    let bytes = |use_regex: bool| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex});
    let split = |regex: &str| json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": false});
    let digits = |one: bool| json!({"type": "Digits", "individual_digits": one});
    let after = |parts: Vec<Value>, last: bool| json!({"type": "Sequence", "pretokenizers": ([parts, vec![bytes(last)]].concat())});
    let llama = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
    let cl100k = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+";
    let coder = [
        r"[\r\n]",
        r"\s?\p{L}+",
        r"\s?\p{P}+",
        "[一-龥ࠀ-一가-\u{d7ff}]+",
    ]
    .map(split);
    let mut removed = split(llama);
    (removed["behavior"], removed["invert"]) = (json!("Removed"), json!(true));
    for (pre, whole, expected) in [
        (bytes(true), false, "gpt-2"),
        (after(vec![digits(true)], true), false, "smollm"),
        (after(vec![split(llama)], false), true, "llama-bpe"),
        (after(vec![split(llama)], false), false, "dbrx"),
        (after(vec![removed], false), false, "dbrx"),
        (after(vec![split(cl100k)], false), false, "dbrx"),
        (
            after(vec![split(&llama.replace("{1,3}", ""))], false),
            false,
            "qwen2",
        ),
        (
            after([coder.to_vec(), vec![digits(true)]].concat(), false),
            false,
            "deepseek-coder",
        ),
    ] {
        let found = word(&|document| {
            document["pre_tokenizer"] = pre.clone();
            document["model"]["ignore_merges"] = json!(whole);
        });
        assert_eq!(found.as_deref().ok(), Some(expected), "{pre} {found:?}");
    }
    let quotes = json!({"type": "Replace", "pattern": {"String": "``"}, "content": "\""});
    let mut spaced = bytes(true);
    spaced["add_prefix_space"] = json!(true);
    let mut merged = split(llama);
    merged["behavior"] = json!("MergedWithPrevious");
    let other = word(&|document| document["pre_tokenizer"] = after(vec![merged.clone()], false))
        .unwrap_err()
        .to_string();
    assert!(
        other.contains("GGUF cannot hold this tokenizer. Its pre_tokenizer splits texts by a rule that llama.cpp does not have: "),
        "{other}"
    );
    let refused: [(&str, &str, Value); 9] = [
        ("normalizer", "/normalizer", quotes),
        ("normalizer", "/normalizer", json!({"type": "NFKC"})),
        (
            "pre_tokenizer",
            "/pre_tokenizer",
            json!({"type": "Sequence", "pretokenizers": [spaced]}),
        ),
        (
            "pre_tokenizer",
            "/pre_tokenizer",
            after(vec![digits(false)], true),
        ),
        (
            "pre_tokenizer",
            "/pre_tokenizer",
            after(vec![split(llama)], true),
        ),
        (
            "pre_tokenizer",
            "/pre_tokenizer",
            after(vec![merged], false),
        ),
        (
            "pre_tokenizer",
            "/pre_tokenizer",
            json!({"type": "Sequence", "pretokenizers": [bytes(true), digits(true)]}),
        ),
        ("ignore_merges", "/model/ignore_merges", json!(true)),
        (
            "post_processor",
            "/post_processor",
            json!({"type": "TemplateProcessing", "pair": [], "single": [
            {"SpecialToken": {"id": "a", "type_id": 0}}, {"SpecialToken": {"id": "a", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "special_tokens": {"a": {"id": "a", "ids": [70], "tokens": ["a"]}}}),
        ),
    ];
    for (part, pointer, value) in refused {
        let error =
            word(&|document| *document.pointer_mut(pointer).unwrap() = value.clone()).unwrap_err();
        assert_eq!(error.code(), "export.gguf.tokenizer", "{part} {value}");
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
    // A token that tokenizer_config.json alone names is one, as llama.cpp finds it by its text.
    assert_eq!(
        word(&|document| document["added_tokens"].as_array_mut().unwrap().truncate(2))
            .ok()
            .as_deref(),
        Some("gpt-2")
    );
    assert!(word(&|document| document["normalizer"] = json!({"type": "NFC"})).is_ok());
    // llama.cpp takes a token with this text for a special one, which it is not in the folder.
    let ordinary = word(&|document| document["model"]["vocab"]["<|eot_id|>"] = json!(800))
        .unwrap_err()
        .to_string();
    assert!(
        ordinary.contains("added_tokens") && ordinary.contains("<|eot_id|>"),
        "{ordinary}"
    );
}

/// Named tokens that a GGUF file does not mark as special are letters in a text, also in the folder of a checkpoint.
#[test]
fn tokens_that_a_file_does_not_mark_stay_letters() {
    let mut parts = byte_level("gpt-2");
    parts.types.fill(1);
    let tokenizer = Tokenizer::from_parts(parts).unwrap();
    let assets = tokenizer.assets();
    let asset = |name: &str| {
        assets
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, bytes)| bytes.as_slice())
    };
    let again = Tokenizer::from_hf(
        asset("tokenizer.json").unwrap(),
        asset("tokenizer_config.json"),
        asset("chat_template.jinja"),
    )
    .unwrap();
    let text = "a<|im_end|>b<|endoftext|>";
    let ids = tokenizer.encode(text).unwrap();
    assert!(
        ids.len() > 10 && ids == again.encode(text).unwrap(),
        "{ids:?}"
    );
    assert_eq!(
        (again.bos(), again.pad(), again.eos().first()),
        (tokenizer.bos(), tokenizer.pad(), tokenizer.eos().first())
    );
}

/// Returns a tokenizer of pieces with a change to its `tokenizer.json`.
fn changed_pieces(change: impl Fn(&mut Value)) -> Tokenizer {
    let assets = Tokenizer::from_parts(sentence_piece(true))
        .unwrap()
        .assets();
    let asset = |name: &str| {
        assets
            .iter()
            .find(|(found, _)| found == name)
            .unwrap()
            .1
            .clone()
    };
    let mut document: Value = serde_json::from_slice(&asset("tokenizer.json")).unwrap();
    change(&mut document);
    Tokenizer::from_hf(
        document.to_string().as_bytes(),
        Some(&asset("tokenizer_config.json")),
        None,
    )
    .unwrap()
}

#[test]
fn pieces_are_written_only_for_their_own_rule() {
    let prefix = |change: &dyn Fn(&mut Value)| {
        let tokenizer = changed_pieces(change);
        tokenizer
            .to_parts(tokenizer.vocab_size())
            .map(|parts| match parts.model {
                PartsModel::SentencePiece {
                    add_space_prefix, ..
                } => add_space_prefix,
                other => panic!("{other:?}"),
            })
    };
    let metaspace = |scheme: &str| json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": false});
    let with = |scheme: &'static str| {
        move |document: &mut Value| {
            document["normalizer"] = Value::Null;
            document["pre_tokenizer"] = metaspace(scheme);
        }
    };
    assert!(prefix(&|_| {}).unwrap());
    assert!(!prefix(&with("never")).unwrap());
    type Change<'a> = (&'a str, &'a dyn Fn(&mut Value));
    let refused: [Change<'_>; 6] = [
        ("prepend_scheme", &with("first")),
        ("prepend_scheme", &with("always")),
        ("byte_fallback", &|document| {
            document["model"]["byte_fallback"] = json!(false)
        }),
        ("normalizer", &|document| {
            document["normalizer"] = json!({"type": "NFKC"})
        }),
        ("added_tokens", &|document| {
            document["added_tokens"][1]["normalized"] = json!(true)
        }),
        ("merge", &|document| {
            drop(document["model"]["merges"].as_array_mut().unwrap().pop())
        }),
    ];
    for (part, change) in refused {
        let error = prefix(change).unwrap_err();
        assert_eq!(error.code(), "export.gguf.tokenizer", "{part}");
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
}

#[test]
fn a_token_has_its_kind_whatever_id_its_entry_states() {
    const CONTROL: i32 = 3;
    let plain = changed(|_| {});
    let expected = plain.to_parts(plain.vocab_size()).unwrap().types;
    let ends: Vec<usize> = plain.eos().iter().map(|id| *id as usize).collect();
    assert!(!ends.is_empty() && ends.iter().all(|id| expected[*id] == CONTROL));
    let other = changed(|document| {
        for token in document["added_tokens"].as_array_mut().unwrap() {
            token["id"] = json!(token["id"].as_u64().unwrap() + 1);
        }
    });
    assert_eq!(other.to_parts(other.vocab_size()).unwrap().types, expected);
}
