//! Tokenizers as GGUF metadata: rules found by trying, characters, and parts that GGUF cannot represent.

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
    let model = block_on(Model::init(&config, 1, Precision::F32, &cpu().inner(), &Interrupt::none())).unwrap();
    let stream = gguf_recipe(&model, Some(tokenizer), "tiny", "as-base").unwrap();
    let bundle = open(&written(stream).1);
    assert!(bundle.warnings.is_empty(), "{:?}", bundle.warnings);
    bundle.tokenizer.unwrap()
}

fn equal(found: &Tokenizer, expected: &Tokenizer) {
    assert_eq!(found.encode(TEXT).unwrap(), expected.encode(TEXT).unwrap());
    assert_eq!(found.encode_prompt(TEXT).unwrap(), expected.encode_prompt(TEXT).unwrap());
    assert_eq!(found.prompt_prefix(), expected.prompt_prefix());
    assert_eq!((found.bos(), found.eos(), found.pad()), (expected.bos(), expected.eos(), expected.pad()));
}

#[test]
fn rules_of_byte_level_vocabularies_are_found_by_trying() {
    for pre in ["gpt-2", "smollm", "llama-bpe", "qwen2"] {
        let tokenizer = Tokenizer::from_parts(byte_level(pre)).unwrap();
        let rows = tokenizer.vocab_size() + 3;
        let parts = tokenizer.to_parts(rows).unwrap();
        let PartsModel::ByteLevelBpe { pre: found, .. } = &parts.model else { panic!("{:?}", parts.model) };
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
        assert!(matches!(parts.model, PartsModel::SentencePiece { add_space_prefix: found, .. } if found == add_space_prefix));
        equal(&through_gguf(&tokenizer, tokenizer.vocab_size()), &tokenizer);
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
        assert_eq!(found.decode(&tokenizer.encode(text).unwrap()).unwrap(), text);
        assert_eq!(found.vocab_size(), tokenizer.vocab_size());
        assert!(found.eos().is_empty() && found.bos().is_empty());
    }
}

#[test]
fn named_chat_templates_come_back() {
    let named = vec![("rag".to_string(), "R{{ messages }}".to_string()), ("tool_use".to_string(), "T{{ messages }}".to_string())];
    let mut parts = byte_level("gpt-2");
    parts.named_templates.clone_from(&named);
    let tokenizer = Tokenizer::from_parts(parts.clone()).unwrap();
    assert_eq!(tokenizer.named_templates(), named);
    let found = through_gguf(&tokenizer, tokenizer.vocab_size());
    assert_eq!((found.named_templates(), found.chat_template()), (named.as_slice(), parts.chat_template.as_deref()));
    let assets = found.assets();
    let asset = |name: &str| assets.iter().find(|(found, _)| found == name).map(|(_, bytes)| bytes.as_slice());
    let again = Tokenizer::from_hf(asset("tokenizer.json").unwrap(), asset("tokenizer_config.json"), asset("chat_template.jinja")).unwrap();
    assert_eq!((again.named_templates(), again.chat_template()), (named.as_slice(), parts.chat_template.as_deref()));
}

/// Makes a byte-level tokenizer with a change to its `tokenizer.json`.
fn changed(change: impl Fn(&mut Value)) -> Tokenizer {
    let assets = Tokenizer::from_parts(byte_level("gpt-2")).unwrap().assets();
    let asset = |name: &str| assets.iter().find(|(found, _)| found == name).unwrap().1.clone();
    let mut document: Value = serde_json::from_slice(&asset("tokenizer.json")).unwrap();
    change(&mut document);
    Tokenizer::from_hf(document.to_string().as_bytes(), Some(&asset("tokenizer_config.json")), None).unwrap()
}

#[test]
fn tokenizers_of_other_rules_are_refused() {
    let refused = |tokenizer: &Tokenizer| tokenizer.to_parts(tokenizer.vocab_size()).unwrap_err().code();
    assert!(changed(|_| {}).to_parts(10_000).is_ok());
    assert_eq!(refused(&changed(|document| document["normalizer"] = json!({"type": "Lowercase"}))), "export.gguf.tokenizer");
    let mut many = changed(|_| {});
    many.add_eos(&[0, 1, 2, 3]);
    assert_eq!(refused(&many), "export.gguf.tokenizer");
    let tokenizer = changed(|_| {});
    let code = tokenizer.to_parts(tokenizer.vocab_size() - 1).map(|_: TokenizerParts| ()).unwrap_err().code();
    assert_eq!(code, "export.gguf.tokenizer", "fewer rows than tokens");
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
