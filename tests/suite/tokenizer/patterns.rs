//! Expressions of tokenizers compared with Hugging Face's library, whose engine is Oniguruma; the browser runs them again.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::{Value, json};
use tabtune::tokenizer::Tokenizer;

use super::golden;

/// `patterns.json`, as its maker writes it.
#[derive(Deserialize)]
struct Patterns {
    tokens: Vec<String>,
    texts: Vec<String>,
    replaced: Vec<Replaced>,
    rows: BTreeMap<String, Vec<Row>>,
}

/// Expressions that split a text one after another.
#[derive(Deserialize)]
struct Row {
    expressions: Vec<String>,
    /// Lengths of the words of each text, in characters.
    words: Option<Vec<Vec<usize>>>,
    /// Construct that our engine cannot say.
    refused: Option<String>,
}

/// An expression whose matches become `<>`, in a normalizer and in a decoder.
#[derive(Deserialize)]
struct Replaced {
    expression: String,
    normalized: Vec<String>,
    decoded: Vec<String>,
}

impl Patterns {
    fn read() -> Self {
        serde_json::from_value(golden("patterns")).unwrap()
    }

    /// Returns the model of two tokens for each character.
    fn model(&self) -> Value {
        let vocabulary: HashMap<&str, usize> = self
            .tokens
            .iter()
            .enumerate()
            .map(|(id, token)| (token.as_str(), id))
            .collect();
        json!({"type": "WordPiece", "unk_token": "a", "continuing_subword_prefix": "##", "max_input_chars_per_word": 10000, "vocab": vocabulary})
    }

    /// Returns the ids of a text that consists of words of these lengths.
    fn ids(&self, text: &str, words: &[usize]) -> Vec<u32> {
        let id = |token: &str| self.tokens.iter().position(|found| found == token).unwrap() as u32;
        let begins = words
            .iter()
            .flat_map(|length| (0..*length).map(|place| place == 0));
        text.chars()
            .zip(begins)
            .map(|(char, begins)| {
                id(&if begins {
                    char.to_string()
                } else {
                    format!("##{char}")
                })
            })
            .collect()
    }
}

/// Makes a `tokenizer.json`.
fn document(parts: &Value) -> Vec<u8> {
    let mut document = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null, "pre_tokenizer": null,
        "post_processor": null, "decoder": null,
    });
    document
        .as_object_mut()
        .unwrap()
        .extend(parts.as_object().unwrap().clone());
    document.to_string().into_bytes()
}

fn splits(expressions: &[String], model: &Value) -> Vec<u8> {
    let split = |text| json!({"type": "Split", "pattern": {"Regex": text}, "behavior": "Isolated", "invert": false});
    let all: Vec<Value> = expressions.iter().map(split).collect();
    document(&json!({"pre_tokenizer": {"type": "Sequence", "pretokenizers": all}, "model": model}))
}

#[test]
fn expressions_cut_as_in_oniguruma() {
    let patterns = Patterns::read();
    let model = patterns.model();
    let (mut compared, mut refused, mut faulty) = (0, Vec::new(), 0);
    for (name, row) in patterns
        .rows
        .iter()
        .flat_map(|(name, rows)| rows.iter().map(move |row| (name, row)))
    {
        let expressions = &row.expressions;
        let made = Tokenizer::from_hf(&splits(expressions, &model), None, None);
        let Some(words) = row.words.as_ref().filter(|_| row.refused.is_none()) else {
            let error = made.expect_err(&expressions.join("\n"));
            assert_eq!(error.code(), "tokenizer.invalid", "{name}: {expressions:?}");
            let said = error.to_string();
            assert!(
                said.starts_with("tokenizer.json: ")
                    && said.contains("as Oniguruma reads it, because of "),
                "{said}"
            );
            faulty += usize::from(row.words.is_none());
            refused.extend(row.refused.as_deref());
            continue;
        };
        let tokenizer = made.unwrap_or_else(|error| panic!("{name}: {expressions:?}: {error}"));
        for (text, words) in patterns.texts.iter().zip(words) {
            let found = tokenizer.encode(text).unwrap();
            assert_eq!(
                found,
                patterns.ids(text, words),
                "{name}: {expressions:?}: {text:?}"
            );
            compared += 1;
        }
    }
    println!(
        "{compared} texts cut alike, {} expressions refused that Oniguruma takes, {faulty} that it refuses too",
        refused.len()
    );
    assert!(compared > 2500 && faulty > 40);
    // Oniguruma takes these and we refuse them: each is a construct that no known tokenizer uses.
    refused.sort_unstable();
    refused.dedup();
    let known = [
        "\\G",
        "[a-[b]]",
        "{41 42}",
        "\\M-a",
        "\\X",
        "\\K",
        "\\y",
        "\\g<",
        "(?~",
        "(?(1)",
        "(?{x})",
        "(*FAIL)",
        "(?<=\\R",
        "(?i)(a)\\1",
        "(?I)",
        "(?W)",
        "In_Basic_Latin",
    ];
    assert!(
        refused.iter().all(|construct| known.contains(construct)),
        "{refused:?}"
    );
    assert_eq!(refused.len(), known.len(), "{refused:?}");
}

#[test]
fn normalizers_and_decoders_replace_what_oniguruma_matches() {
    let patterns = Patterns::read();
    let texts: HashMap<&str, usize> = patterns
        .texts
        .iter()
        .enumerate()
        .map(|(id, text)| (text.as_str(), id))
        .collect();
    let whole = json!({"type": "WordLevel", "unk_token": patterns.texts[0], "vocab": texts});
    for Replaced {
        expression,
        normalized,
        decoded,
    } in &patterns.replaced
    {
        let replace = json!({"type": "Replace", "pattern": {"Regex": expression}, "content": "<>"});
        let normalizing = document(&json!({"normalizer": replace, "model": patterns.model()}));
        let decoding = document(
            &json!({"decoder": {"type": "Sequence", "decoders": [replace]}, "model": whole}),
        );
        let [normalizing, decoding] =
            [normalizing, decoding].map(|bytes| Tokenizer::from_hf(&bytes, None, None).unwrap());
        for (id, text) in patterns.texts.iter().enumerate() {
            let whole = patterns.ids(&normalized[id], &[normalized[id].chars().count()]);
            assert_eq!(
                normalizing.encode(text).unwrap(),
                whole,
                "{expression}: {text:?}"
            );
            assert_eq!(
                decoding.decode(&[id as u32]).unwrap(),
                decoded[id],
                "{expression}: {text:?}"
            );
        }
    }
}

/// The engine's own expression is not what an export contains.
#[test]
fn a_document_stays_as_it_was_read() {
    let bytes = splits(&[r"\d{1,3}+|^\w".to_owned()], &Patterns::read().model());
    let tokenizer = Tokenizer::from_hf(&bytes, None, None).unwrap();
    assert_eq!(tokenizer.assets()[0], ("tokenizer.json".to_owned(), bytes));
}

/// Byte pairs, whose documents are read pair by pair, have their expressions rewritten too.
#[test]
fn byte_pairs_are_split_by_oniguruma_s_rules() {
    let ids = |expression: &str, text: &str| {
        let split = json!({"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": false});
        let vocabulary =
            json!({"1": 0, "2": 1, "3": 2, "4": 3, "34": 4, " ": 5, "\n": 6, "\n ": 7});
        let model =
            json!({"type": "BPE", "vocab": vocabulary, "merges": [["3", "4"], ["\n", " "]]});
        Tokenizer::from_hf(
            &document(&json!({"pre_tokenizer": split, "model": model})),
            None,
            None,
        )
        .unwrap()
        .encode(text)
        .unwrap()
    };
    assert_eq!(ids(r"\p{N}{1,3}+", "1234"), [0, 1, 4]);
    assert_eq!(ids(r"^[ \t]*\d", "1\n  2"), [0, 6, 5, 5, 1]);
}
