//! Embeddings and heads as PEFT stores them: copies under several names, originals next to them, and vocabularies that grew.

use safetensors::Dtype;
use serde_json::{Value, json};
use tabtune::bundle::{Bundle, OpenOptions, open_bundle, open_bundle_with};

use super::adapter::{Q, Stored, adapter, f32s, llama, pair, settings};

const EMBEDDING: &str = "model.embed_tokens.weight";
const HEAD: &str = "lm_head.weight";

/// Returns a stored tensor under another of PEFT's names.
fn renamed((_, dtype, shape, values): &Stored, name: &str) -> Stored {
    (format!("base_model.model.{name}"), *dtype, shape.clone(), values.clone())
}

fn config() -> Value {
    settings(json!({"target_modules": ["q_proj"], "modules_to_save": ["embed_tokens", "lm_head"]}))
}

fn with_pair(tensors: &[Stored]) -> Vec<Stored> {
    [pair(Q, 4, [8, 8]), tensors.to_vec()].concat()
}

fn merged(tied: bool, tensors: &[Stored], resize_vocabulary: bool) -> tabtune::Result<Bundle> {
    open_bundle_with(llama(Dtype::F32, tied), OpenOptions { resize_vocabulary, ..adapter(&config(), &with_pair(tensors)) })
}

/// Makes a `tokenizer.json` of this many letters.
fn tokenizer(tokens: u8) -> String {
    let vocab: serde_json::Map<String, Value> = (0..tokens).map(|id| (char::from(b'a' + id).to_string(), id.into())).collect();
    let model = json!({"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
        "fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": vocab, "merges": []});
    json!({"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null, "pre_tokenizer": null,
        "post_processor": null, "decoder": null, "model": model})
    .to_string()
}

fn codes(bundle: &Bundle) -> Vec<&str> {
    bundle.warnings.iter().map(|warning| warning.code).collect()
}

#[test]
fn originals_are_left_out_and_equal_copies_are_one() {
    let trained = f32s("", &[5, 8], 91);
    let other = f32s("", &[5, 8], 92);
    let names = |copy: &Stored| {
        vec![
            renamed(&trained, "lm_head.modules_to_save.default.weight"),
            renamed(copy, "lm_head.weight"),
            renamed(&other, "lm_head.original_module.weight"),
        ]
    };
    let bundle = merged(false, &names(&trained), false).unwrap();
    assert_eq!(bundle.read_f32(HEAD).unwrap(), trained.3);
    assert_eq!(codes(&bundle), ["adapter.target.unmatched"], "embed_tokens was not saved");
    // If copies differ, it is unknown which one is meant.
    assert_eq!(merged(false, &names(&other), false).unwrap_err().code(), "model.tensor.name-twice");
}

#[test]
fn a_tied_head_that_equals_the_embedding_stays_tied() {
    let table = f32s("", &[5, 8], 93);
    let both = [renamed(&table, "model.embed_tokens.weight"), renamed(&table, "lm_head.weight")];
    let bundle = merged(true, &both, false).unwrap();
    assert!(bundle.config.tie_word_embeddings && bundle.shape(HEAD).is_none());
    assert_eq!((bundle.read_f32(EMBEDDING).unwrap(), codes(&bundle)), (table.3.clone(), vec![]));
    let apart = [renamed(&table, "model.embed_tokens.weight"), renamed(&f32s("", &[5, 8], 94), "lm_head.weight")];
    let bundle = merged(true, &apart, false).unwrap();
    assert!(!bundle.config.tie_word_embeddings);
    assert_eq!(codes(&bundle), ["adapter.untied"]);
}

#[test]
fn a_vocabulary_that_grew_is_taken_where_that_is_asked_for() {
    let (table, head) = (f32s("", &[7, 8], 95), f32s("", &[7, 8], 96));
    let both = [renamed(&table, "model.embed_tokens.weight"), renamed(&head, "lm_head.modules_to_save.default.weight")];
    let refused = merged(false, &both, false).unwrap_err();
    assert_eq!(refused.code(), "adapter.shape");
    let tabtune::Error::Refused(refusals) = &refused else { panic!("{refused}") };
    assert!(
        refusals.iter().all(|refusal| refusal.hint.as_deref().is_some_and(|hint| hint.contains("--resize-vocabulary"))),
        "{refusals:?}"
    );

    let bundle = merged(false, &both, true).unwrap();
    assert_eq!((bundle.config.vocab_size, bundle.shape(EMBEDDING), bundle.shape(HEAD)), (7, Some(vec![7, 8]), Some(vec![7, 8])));
    assert_eq!((bundle.read_f32(EMBEDDING).unwrap(), bundle.read_f32(HEAD).unwrap()), (table.3.clone(), head.3.clone()));
    assert_eq!(codes(&bundle), ["adapter.vocabulary"]);
    assert!(bundle.warnings[0].message().contains("5 → 7 rows, with the base's tokenizer"), "{}", bundle.warnings[0].message());
    assert!(bundle.measure_merge().unwrap().iter().all(|one| one.max_abs_change.is_finite()));
    // A tokenizer stored with the tables belongs to them; the base's tokenizer knows none of the new tokens.
    let mut options = OpenOptions { resize_vocabulary: true, ..adapter(&config(), &with_pair(&both)) };
    options.adapter.as_mut().unwrap().push(super::files::file("tokenizer.json", tokenizer(7)));
    let bundle = open_bundle_with(llama(Dtype::F32, false), options).unwrap();
    assert_eq!(bundle.tokenizer.as_ref().map(tabtune::tokenizer::Tokenizer::vocab_size), Some(7));
    assert!(bundle.warnings[0].message().contains("5 → 7 rows, with the adapter's tokenizer"), "{}", bundle.warnings[0].message());
    // A refused tokenizer does not affect the tensors, and is not replaced by one that knows fewer tokens.
    let mut options = OpenOptions { resize_vocabulary: true, ..adapter(&config(), &with_pair(&both)) };
    options.adapter.as_mut().unwrap().push(super::files::file("tokenizer.json", "{}".to_string()));
    let bundle = open_bundle_with(llama(Dtype::F32, false), options).unwrap();
    assert_eq!(bundle.read_f32(HEAD).unwrap(), head.3);
    assert_eq!(codes(&bundle), ["adapter.vocabulary", "tokenizer.invalid"]);
    assert!(bundle.warnings[0].message().contains("5 → 7 rows, without a tokenizer"), "{}", bundle.warnings[0].message());
    assert_eq!(bundle.need_tokenizer().unwrap_err().code(), "tokenizer.invalid");
    // Only one of the two tables does not fit the other.
    assert_eq!(merged(false, &both[..1], true).unwrap_err().code(), "adapter.shape");
    // Fewer rows are not a larger vocabulary.
    assert_eq!(merged(false, &[renamed(&f32s("", &[4, 8], 1), "model.embed_tokens.weight")], true).unwrap_err().code(), "adapter.shape");

    let bundle = merged(true, &both[..1], true).unwrap();
    assert!(bundle.config.tie_word_embeddings && bundle.config.vocab_size == 7);
    let plain = open_bundle(llama(Dtype::F32, true)).unwrap();
    assert_eq!(bundle.read_f32("model.norm.weight").unwrap(), plain.read_f32("model.norm.weight").unwrap());
}

/// PEFT stores the rows of a resized table that is a target as its base layer, next to the pair.
#[test]
fn a_pair_of_a_table_that_grew_is_added_to_it() {
    let table = f32s("", &[7, 8], 97);
    let a = ("base_model.model.model.embed_tokens.lora_embedding_A".to_string(), Dtype::F32, vec![4, 7], super::adapter::noise(5, 28));
    let b = ("base_model.model.model.embed_tokens.lora_embedding_B".to_string(), Dtype::F32, vec![8, 4], super::adapter::noise(6, 32));
    let config = settings(json!({"target_modules": ["embed_tokens"], "ensure_weight_tying": true}));
    let tensors = [renamed(&table, "model.embed_tokens.base_layer.weight"), a.clone(), b.clone()];
    let options = OpenOptions { resize_vocabulary: true, ..adapter(&config, &tensors) };
    let found = open_bundle_with(llama(Dtype::F32, true), options).unwrap().read_f32(EMBEDDING).unwrap();
    for (row, values) in found.chunks(8).enumerate() {
        for (column, value) in values.iter().enumerate() {
            let product: f64 = (0..4).map(|k| f64::from(a.3[k * 7 + row]) * f64::from(b.3[column * 4 + k])).sum();
            let expected = f64::from(table.3[row * 8 + column]) + 2.0 * product;
            assert!((f64::from(*value) - expected).abs() < 1e-6, "{row}, {column}: {value} for {expected}");
        }
    }
}
