//! Vocabularies of GGUF files with keys left out, of other types, or with other words, compared with llama.cpp (golden/make_vocabularies.mjs).

use std::collections::BTreeSet;

use serde_json::Value;
use tabtune::bundle::{Bundle, open_bundle};

use super::files::{Meta, file, gguf, ramp};
use crate::tokenizer::golden;

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap()
}

/// Returns a list in GGUF's form.
fn array(kind: u32, items: impl IntoIterator<Item = Vec<u8>>) -> Meta {
    let items: Vec<Vec<u8>> = items.into_iter().collect();
    Meta::Raw(
        9,
        [
            kind.to_le_bytes().to_vec(),
            (items.len() as u64).to_le_bytes().to_vec(),
            items.concat(),
        ]
        .concat(),
    )
}

fn text(text: &str) -> Vec<u8> {
    [
        (text.len() as u64).to_le_bytes().to_vec(),
        text.as_bytes().to_vec(),
    ]
    .concat()
}

/// Returns a value of the golden file; `listed` is the list of its vocabulary, which is written as "@".
fn meta(kind: &str, value: &Value, listed: &Value) -> Meta {
    let value = if *value == "@" { listed } else { value };
    let items = || value.as_array().unwrap().iter();
    let int = |value: &Value| u32::try_from(number(value)).unwrap().to_le_bytes().to_vec();
    match kind {
        "text" => Meta::Raw(8, text(value.as_str().unwrap())),
        "texts" => array(8, items().map(|item| text(item.as_str().unwrap()))),
        "i32s" => array(5, items().map(int)),
        "u32s" => array(4, items().map(int)),
        "f32s" => array(
            6,
            items().map(|item| (item.as_f64().unwrap() as f32).to_le_bytes().to_vec()),
        ),
        "bool" => Meta::Bool(value.as_bool().unwrap()),
        "u32" => Meta::Raw(4, int(value)),
        "i32" => Meta::Raw(5, int(value)),
        "f32" => Meta::F32(value.as_f64().unwrap() as f32),
        "u64" => Meta::Raw(10, (number(value) as u64).to_le_bytes().to_vec()),
        other => panic!("{other}"),
    }
}

fn opened(file_of: &Value, case: &Value) -> Bundle {
    let base = &file_of["bases"][case["base"].as_str().unwrap()];
    let rows = base["tokens"].as_array().unwrap().len();
    let key = |index: usize| case["keys"][index][0].as_str().unwrap();
    let keys = (0..case["keys"].as_array().unwrap().len()).map(|index| {
        let name = key(index).strip_prefix("tokenizer.ggml.").unwrap();
        let listed = if name == "token_type" {
            &base["types"]
        } else {
            &base[name]
        };
        (
            key(index),
            meta(
                case["keys"][index][1].as_str().unwrap(),
                &case["keys"][index][2],
                listed,
            ),
        )
    });
    let counts = [
        ("context_length", 64),
        ("embedding_length", 8),
        ("block_count", 1),
        ("feed_forward_length", 8),
        ("attention.head_count", 1),
    ];
    let counts = counts.map(|(name, count)| (format!("llama.{name}"), Meta::U32(count)));
    let mut metadata = vec![
        ("general.architecture", Meta::Text("llama")),
        ("llama.attention.layer_norm_rms_epsilon", Meta::F32(1e-5)),
    ];
    metadata.extend(
        case["title"]
            .as_str()
            .map(|title| ("general.name", Meta::Raw(8, text(title)))),
    );
    metadata.extend(
        counts
            .iter()
            .map(|(name, value)| (name.as_str(), value.clone())),
    );
    metadata.extend(keys);
    open_bundle(vec![file(
        "m.gguf",
        gguf(
            &metadata,
            &[("token_embd.weight", vec![rows, 8], ramp(8 * rows, 0.0))],
        ),
    )])
    .unwrap()
}

/// Returns true for a vocabulary that llama.cpp reads by a guess, and that is refused here by name.
fn is_guessed(case: &Value) -> bool {
    let value = |name: &str| {
        case["keys"]
            .as_array()
            .unwrap()
            .iter()
            .find(|entry| entry[0] == format!("tokenizer.ggml.{name}"))
    };
    match value("model").map(|entry| &entry[2]) {
        Some(model) if model == "llama" => value("scores").is_none(),
        Some(_) => value("pre").is_none_or(|entry| entry[2] == "default" || entry[2] == "gemma4"),
        None => false,
    }
}

/// Returns true for a vocabulary that is refused by llama.cpp, or here by name.
fn is_refused(case: &Value) -> bool {
    case["refused"] == true || is_guessed(case)
}

#[test]
fn vocabularies_that_llama_cpp_refuses_or_guesses_are_refused() {
    let recorded = golden("vocabularies");
    let cases: Vec<&Value> = recorded["cases"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|case| is_refused(case))
        .collect();
    for case in &cases {
        let bundle = opened(&recorded, case);
        assert!(
            bundle.tokenizer.is_none() && bundle.tokenizer_refused().is_some(),
            "{} {}",
            case["kind"],
            case["keys"]
        );
    }
    assert!(cases.len() > 30, "{}", cases.len());
}

#[test]
fn an_end_that_no_key_names_is_reported() {
    let recorded = golden("vocabularies");
    let names_end = |case: &Value| {
        case["keys"]
            .as_array()
            .unwrap()
            .iter()
            .any(|key| key[0] == "tokenizer.ggml.eos_token_id")
    };
    let mut cases = recorded["cases"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|case| !is_refused(case) && !names_end(case));
    assert!(cases.any(|case| {
        opened(&recorded, case)
            .warnings
            .iter()
            .any(|warning| warning.code == "tokenizer.end.default")
    }));
}

#[test]
fn vocabularies_are_read_as_by_llama_cpp() {
    let recorded = golden("vocabularies");
    let texts: Vec<&str> = recorded["texts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|text| text.as_str().unwrap())
        .collect();
    let (mut equal, mut wrong) = (0, Vec::new());
    for (index, case) in recorded["cases"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
        .filter(|(_, case)| !is_refused(case))
    {
        let bundle = opened(&recorded, case);
        let mut fail =
            |what: String| wrong.push(format!("{index} {}: {what} {}", case["kind"], case["keys"]));
        let Some(tokenizer) = &bundle.tokenizer else {
            fail(format!(
                "refused {:?}",
                bundle.tokenizer_refused().map(ToString::to_string)
            ));
            continue;
        };
        let ends: BTreeSet<i64> = case["ends"]
            .as_array()
            .unwrap()
            .iter()
            .map(number)
            .collect();
        let found: BTreeSet<i64> = tokenizer.eos().iter().map(|id| i64::from(*id)).collect();
        if ends != found {
            fail(format!("ends {found:?}, not {ends:?}"));
        }
        // llama.cpp's package does not tell the id of a token that is not marked as special.
        let begun: Vec<i64> = tokenizer
            .prompt_prefix()
            .iter()
            .map(|id| i64::from(*id))
            .collect();
        if begun.len() != usize::from(case["begins"] == true)
            || case["bos"].as_i64().is_some_and(|bos| begun != [bos])
        {
            fail(format!("begins with {begun:?}, not {}", case["bos"]));
        }
        for (text, list) in texts.iter().zip(case["ids"].as_array().unwrap()) {
            let expected: Vec<i64> = recorded["ids"][list.as_u64().unwrap() as usize]
                .as_array()
                .unwrap()
                .iter()
                .map(number)
                .collect();
            let ids: Vec<i64> = tokenizer
                .encode(text)
                .unwrap()
                .into_iter()
                .map(i64::from)
                .collect();
            if ids == expected {
                equal += 1
            } else {
                fail(format!("{text:?} {ids:?}, not {expected:?}"))
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong\n{}",
        wrong.len(),
        wrong
            .iter()
            .map(|line| line.chars().take(700).collect::<String>() + "\n")
            .collect::<String>()
    );
    assert!(equal > 1_300, "{equal}");
}
