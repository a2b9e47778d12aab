//! Embeddings and heads as PEFT stores them: copies under several names, originals next to them, and vocabularies that grew.

use safetensors::Dtype;
use serde_json::{Value, json};
use tabtune::bundle::{Bundle, OpenOptions, open_bundle, open_bundle_with};

use super::adapter::{Q, Stored, adapter, f32s, llama, pair, settings, written};

const EMBEDDING: &str = "model.embed_tokens.weight";
const HEAD: &str = "lm_head.weight";

/// Returns a stored tensor under another of PEFT's names.
fn renamed((_, dtype, shape, values): &Stored, name: &str) -> Stored {
    (
        format!("base_model.model.{name}"),
        *dtype,
        shape.clone(),
        values.clone(),
    )
}

fn config() -> Value {
    settings(json!({"target_modules": ["q_proj"], "modules_to_save": ["embed_tokens", "lm_head"]}))
}

fn with_pair(tensors: &[Stored]) -> Vec<Stored> {
    [pair(Q, 4, [8, 8]), tensors.to_vec()].concat()
}

fn merged(tied: bool, tensors: &[Stored], resize_vocabulary: bool) -> tabtune::Result<Bundle> {
    open_bundle_with(
        llama(Dtype::F32, tied),
        OpenOptions {
            resize_vocabulary,
            ..adapter(&config(), &with_pair(tensors))
        },
    )
}

/// Makes a `tokenizer.json` of this many letters.
fn tokenizer(tokens: u8) -> String {
    let vocab: serde_json::Map<String, Value> = (0..tokens)
        .map(|id| (char::from(b'a' + id).to_string(), id.into()))
        .collect();
    let model = json!({"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
        "fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": vocab, "merges": []});
    json!({"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null, "pre_tokenizer": null,
        "post_processor": null, "decoder": null, "model": model})
    .to_string()
}

fn codes(bundle: &Bundle) -> Vec<&str> {
    // Most of these adapters have a pair in one of the two blocks.
    bundle
        .warnings
        .iter()
        .map(|warning| warning.code)
        .filter(|code| *code != "adapter.pair.absent")
        .collect()
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
    assert_eq!(
        codes(&bundle),
        ["adapter.target.unmatched"],
        "embed_tokens was not saved"
    );
    // If copies differ, it is unknown which one is meant.
    assert_eq!(
        merged(false, &names(&other), false).unwrap_err().code(),
        "model.tensor.name-twice"
    );
}

#[test]
fn a_tied_head_that_equals_the_embedding_stays_tied() {
    let table = f32s("", &[5, 8], 93);
    let both = [
        renamed(&table, "model.embed_tokens.weight"),
        renamed(&table, "lm_head.weight"),
    ];
    let bundle = merged(true, &both, false).unwrap();
    assert!(bundle.config.tie_word_embeddings && bundle.shape(HEAD).is_none());
    assert_eq!(
        (bundle.read_f32(EMBEDDING).unwrap(), codes(&bundle)),
        (table.3.clone(), vec![])
    );
    let apart = [
        renamed(&table, "model.embed_tokens.weight"),
        renamed(&f32s("", &[5, 8], 94), "lm_head.weight"),
    ];
    let bundle = merged(true, &apart, false).unwrap();
    assert!(!bundle.config.tie_word_embeddings);
    assert_eq!(codes(&bundle), ["adapter.untied"]);
}

#[test]
fn a_vocabulary_that_grew_is_taken_where_that_is_asked_for() {
    let (table, head) = (f32s("", &[7, 8], 95), f32s("", &[7, 8], 96));
    let both = [
        renamed(&table, "model.embed_tokens.weight"),
        renamed(&head, "lm_head.modules_to_save.default.weight"),
    ];
    let refused = merged(false, &both, false).unwrap_err();
    assert_eq!(refused.code(), "adapter.shape");
    let tabtune::Error::Refused(refusals) = &refused else {
        panic!("{refused}")
    };
    assert!(
        refusals.iter().all(|refusal| refusal
            .hint
            .as_deref()
            .is_some_and(|hint| hint.contains("--resize-vocabulary"))),
        "{refusals:?}"
    );

    let bundle = merged(false, &both, true).unwrap();
    assert_eq!(
        (
            bundle.config.vocab_size,
            bundle.shape(EMBEDDING),
            bundle.shape(HEAD)
        ),
        (7, Some(vec![7, 8]), Some(vec![7, 8]))
    );
    assert_eq!(
        (
            bundle.read_f32(EMBEDDING).unwrap(),
            bundle.read_f32(HEAD).unwrap()
        ),
        (table.3.clone(), head.3.clone())
    );
    assert_eq!(codes(&bundle), ["adapter.vocabulary"]);
    assert!(
        bundle.warnings[0]
            .message()
            .contains("5 → 7 rows, with the base's tokenizer"),
        "{}",
        bundle.warnings[0].message()
    );
    for name in bundle.names() {
        assert_eq!(bundle.non_finite(&name).unwrap(), 0, "{name}");
    }
    // A tokenizer stored with the tables belongs to them; the base's tokenizer knows none of the new tokens.
    let mut options = OpenOptions {
        resize_vocabulary: true,
        ..adapter(&config(), &with_pair(&both))
    };
    options
        .adapter
        .as_mut()
        .unwrap()
        .push(super::files::file("tokenizer.json", tokenizer(7)));
    let bundle = open_bundle_with(llama(Dtype::F32, false), options).unwrap();
    assert_eq!(
        bundle
            .tokenizer
            .as_ref()
            .map(tabtune::tokenizer::Tokenizer::vocab_size),
        Some(7)
    );
    assert!(
        bundle.warnings[0]
            .message()
            .contains("5 → 7 rows, with the adapter's tokenizer"),
        "{}",
        bundle.warnings[0].message()
    );
    // A refused tokenizer does not affect the tensors, and is not replaced by one that knows fewer tokens.
    let mut options = OpenOptions {
        resize_vocabulary: true,
        ..adapter(&config(), &with_pair(&both))
    };
    options
        .adapter
        .as_mut()
        .unwrap()
        .push(super::files::file("tokenizer.json", "{}".to_string()));
    let bundle = open_bundle_with(llama(Dtype::F32, false), options).unwrap();
    assert_eq!(bundle.read_f32(HEAD).unwrap(), head.3);
    assert_eq!(codes(&bundle), ["adapter.vocabulary", "tokenizer.invalid"]);
    assert!(
        bundle.warnings[0]
            .message()
            .contains("5 → 7 rows, without a tokenizer"),
        "{}",
        bundle.warnings[0].message()
    );
    assert_eq!(
        bundle.need_tokenizer().unwrap_err().code(),
        "tokenizer.invalid"
    );
    // Only one of the two tables does not fit the other.
    assert_eq!(
        merged(false, &both[..1], true).unwrap_err().code(),
        "adapter.shape"
    );
    // Fewer rows, as without the padding of a base's table, are not a larger vocabulary: another base has them.
    let refused = merged(
        false,
        &[renamed(&f32s("", &[4, 8], 1), "model.embed_tokens.weight")],
        true,
    )
    .unwrap_err();
    assert_eq!(refused.code(), "adapter.shape");
    let tabtune::Error::Refused(refusals) = &refused else {
        panic!("{refused}")
    };
    let hint = refusals[0].hint.as_deref().unwrap_or_default();
    assert!(
        hint.contains("a base of 4 rows") && hint.contains("resize_token_embeddings(4)"),
        "{hint}"
    );

    let bundle = merged(true, &both[..1], true).unwrap();
    assert!(bundle.config.tie_word_embeddings && bundle.config.vocab_size == 7);
    let plain = open_bundle(llama(Dtype::F32, true)).unwrap();
    assert_eq!(
        bundle.read_f32("model.norm.weight").unwrap(),
        plain.read_f32("model.norm.weight").unwrap()
    );
}

/// Makes PEFT's pair for a table of embeddings.
fn embedding_pair(module: &str, rows: usize) -> [Stored; 2] {
    let name = |side: &str| format!("base_model.model.{module}.lora_embedding_{side}");
    [
        f32s(&name("A"), &[4, rows], 5),
        f32s(&name("B"), &[8, 4], 6),
    ]
}

/// Compares each value of a table of width 8 with the stored one and 2 · `product` of its row and column, in f64.
#[track_caller]
fn assert_sum(found: &[f32], table: &[f32], product: impl Fn(usize, usize, usize) -> f64) {
    assert_eq!(found.len(), table.len());
    for (at, (value, stored)) in found.iter().zip(table).enumerate() {
        let (row, column) = (at / 8, at % 8);
        let expected =
            f64::from(*stored) + 2.0 * (0..4).map(|k| product(k, row, column)).sum::<f64>();
        assert!(
            (f64::from(*value) - expected).abs() < 1e-6,
            "{row}, {column}: {value} for {expected}"
        );
    }
}

/// Compares an embedding with the stored table and its pair.
#[track_caller]
fn assert_embedding(found: &[f32], table: &[f32], [a, b]: &[Stored; 2]) {
    let rows = table.len() / 8;
    assert_sum(found, table, |k, row, column| {
        f64::from(a.3[k * rows + row]) * f64::from(b.3[column * 4 + k])
    });
}

/// Compares a head with the stored table and its pair.
#[track_caller]
fn assert_head(found: &[f32], table: &[f32], pair: &[Stored]) {
    assert_sum(found, table, |k, row, column| {
        f64::from(pair[1].3[row * 4 + k]) * f64::from(pair[0].3[k * 8 + column])
    });
}

/// PEFT stores the rows of a resized table that is a target as its base layer, next to the pair.
#[test]
fn a_pair_of_a_table_that_grew_is_added_to_it() {
    let table = f32s("", &[7, 8], 97);
    let pair = embedding_pair("model.embed_tokens", 7);
    let config = settings(json!({"target_modules": ["embed_tokens"], "ensure_weight_tying": true}));
    let tensors = [
        vec![renamed(&table, "model.embed_tokens.base_layer.weight")],
        pair.to_vec(),
    ]
    .concat();
    let options = OpenOptions {
        resize_vocabulary: true,
        ..adapter(&config, &tensors)
    };
    let bundle = open_bundle_with(llama(Dtype::F32, true), options).unwrap();
    assert!(bundle.config.tie_word_embeddings && bundle.shape(HEAD).is_none());
    assert_embedding(&bundle.read_f32(EMBEDDING).unwrap(), &table.3, &pair);
}

/// Opens a tied base with tables of so many rows that an adapter stores for these targets, and checks that the model is untied.
#[track_caller]
fn untied(rows: usize, targets: &Value, tensors: &[Stored]) -> Bundle {
    let grown = rows > 5;
    let options = OpenOptions {
        resize_vocabulary: grown,
        ..adapter(&settings(json!({"target_modules": targets})), tensors)
    };
    let bundle = open_bundle_with(llama(Dtype::F32, true), options).unwrap();
    assert!(!bundle.config.tie_word_embeddings && bundle.config.vocab_size == rows);
    assert_eq!(
        codes(&bundle),
        if grown {
            vec!["adapter.untied", "adapter.vocabulary"]
        } else {
            vec!["adapter.untied"]
        }
    );
    assert_eq!(
        (bundle.shape(EMBEDDING), bundle.shape(HEAD)),
        (Some(vec![rows, 8]), Some(vec![rows, 8]))
    );
    bundle
}

/// PEFT loads the base layer of the embedding into the tensor that a tied head has too, and adds the pair to the embedding alone. Some files
/// have the table under both names.
#[test]
fn a_table_stored_with_the_pair_of_an_embedding_is_the_head_without_the_pair() {
    for rows in [5, 7] {
        let table = f32s("", &[rows, 8], 97);
        let pair = embedding_pair("model.embed_tokens", rows);
        let stored = [
            vec![renamed(&table, "model.embed_tokens.base_layer.weight")],
            pair.to_vec(),
        ]
        .concat();
        for copy in [vec![], vec![renamed(&table, HEAD)]] {
            let bundle = untied(
                rows,
                &json!(["embed_tokens"]),
                &[stored.clone(), copy].concat(),
            );
            assert_eq!(bundle.read_f32(HEAD).unwrap(), table.3);
            assert_embedding(&bundle.read_f32(EMBEDDING).unwrap(), &table.3, &pair);
        }
        // A head that was trained in full is none of the base's.
        let head = f32s("", &[rows, 8], 98);
        let bundle = untied(
            rows,
            &json!(["embed_tokens"]),
            &[stored, vec![renamed(&head, HEAD)]].concat(),
        );
        assert_eq!(bundle.read_f32(HEAD).unwrap(), head.3);
        assert_embedding(&bundle.read_f32(EMBEDDING).unwrap(), &table.3, &pair);
    }
}

#[test]
fn a_table_stored_with_the_pair_of_a_head_is_the_embedding_without_the_pair() {
    for rows in [5, 7] {
        let table = f32s("", &[rows, 8], 97);
        let of_head = pair("lm_head", 4, [rows, 8]);
        let stored = [
            vec![renamed(&table, "lm_head.base_layer.weight")],
            of_head.clone(),
        ]
        .concat();
        for copy in [vec![], vec![renamed(&table, EMBEDDING)]] {
            let bundle = untied(rows, &json!(["lm_head"]), &[stored.clone(), copy].concat());
            assert_eq!(bundle.read_f32(EMBEDDING).unwrap(), table.3);
            assert_head(&bundle.read_f32(HEAD).unwrap(), &table.3, &of_head);
        }
        // With pairs of both, the table may be stored once or twice.
        let of_embedding = embedding_pair("model.embed_tokens", rows);
        let base = |module: &str| renamed(&table, &format!("{module}.base_layer.weight"));
        for tables in [
            vec![base("lm_head")],
            vec![base("model.embed_tokens")],
            vec![base("lm_head"), base("model.embed_tokens")],
        ] {
            let tensors = [tables, of_head.clone(), of_embedding.to_vec()].concat();
            let bundle = untied(rows, &json!(["embed_tokens", "lm_head"]), &tensors);
            assert_embedding(
                &bundle.read_f32(EMBEDDING).unwrap(),
                &table.3,
                &of_embedding,
            );
            assert_head(&bundle.read_f32(HEAD).unwrap(), &table.3, &of_head);
        }
    }
}

/// PEFT stores both tables of GPT-2 with a pair of its embedding, whose name is none of those that PEFT knows for embeddings.
#[test]
fn a_tied_head_of_gpt2_is_the_stored_table() {
    let config = json!({"model_type": "gpt2", "vocab_size": 5, "n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 16});
    let base = || {
        let tensors = [
            f32s("transformer.wte.weight", &[5, 8], 1),
            f32s("transformer.wpe.weight", &[16, 8], 2),
        ];
        vec![
            super::files::file("config.json", config.to_string()),
            super::files::file("model.safetensors", written(&tensors)),
        ]
    };
    let pair = embedding_pair("transformer.wte", 7);
    let table = f32s("", &[7, 8], 97);
    let tensors = [
        vec![
            renamed(&table, "transformer.wte.base_layer.weight"),
            renamed(&table, HEAD),
        ],
        pair.to_vec(),
    ]
    .concat();
    let options = OpenOptions {
        resize_vocabulary: true,
        ..adapter(&settings(json!({"target_modules": ["wte"]})), &tensors)
    };
    let bundle = open_bundle_with(base(), options).unwrap();
    assert!(!bundle.config.tie_word_embeddings);
    assert_eq!(bundle.read_f32(HEAD).unwrap(), table.3);
    assert_embedding(
        &bundle.read_f32("transformer.wte.weight").unwrap(),
        &table.3,
        &pair,
    );
}
