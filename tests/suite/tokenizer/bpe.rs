//! Vocabularies that are learned equal those of the Python package `tokenizers`.

use sha2::{Digest as _, Sha256};
use tabtune::config::DataSettings;
use tabtune::data::{DataFile, DataSource, train_tokenizer};
use tabtune::error::Error;
use tabtune::interrupt::Interrupt;
use tabtune::tokenizer::{BpeSettings, BpeTrainer};

use super::*;

const HEADS: [&str; 21] = [
    "b", "ch", "d", "fr", "g", "k", "l", "m", "n", "pl", "qu", "r", "s", "st", "th", "v", "w", "",
    "Ж", "漢", "é",
];
const TAILS: [&str; 15] = [
    "a", "e", "i", "o", "u", "ar", "en", "ing", "ion", "er", "ly", "ed", "ß", "я", "字",
];
/// Texts between words, in addition to two dozen single spaces.
const BETWEEN: [&str; 22] = [
    ", ", ". ", "\n", "\n\n", "  ", "\n    ", " - ", "'s ", "'ll ", "' ", "\" ", " 12", " 2024 ",
    "::", "------", "    ", "\t", "🙂", " \n ", "\u{a0}", "====", "aaaaaaaa",
];

/// Makes the text that `text` of make_bpe.py makes.
fn text(seed: u64, size: usize) -> String {
    let (mut state, mut text) = (seed, String::new());
    let mut below = |count: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % count
    };
    while text.len() < size {
        for _ in 0..below(4) + 1 {
            let head = below(HEADS.len()) + 1;
            text += HEADS[below(head)];
            let tail = below(TAILS.len()) + 1;
            text += TAILS[below(tail)];
        }
        let between = below(24 + BETWEEN.len());
        text += between.checked_sub(24).map_or(" ", |at| BETWEEN[at]);
    }
    text
}

fn sha256(bytes: impl AsRef<[u8]>) -> String {
    let sum = Sha256::digest(bytes);
    sum.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digest(lines: impl Iterator<Item = String>) -> String {
    sha256(lines.map(|line| line + "\n").collect::<String>())
}

fn settings(case: &Value) -> BpeSettings {
    BpeSettings {
        vocab_size: case["vocab_size"].as_u64().unwrap() as usize,
        min_frequency: case["min_frequency"].as_u64().unwrap(),
        special_tokens: strings(&case["special_tokens"]),
    }
}

fn texts(case: &Value) -> Vec<String> {
    let size = case["size"].as_u64().unwrap() as usize;
    let seeds = case["seeds"].as_array().unwrap().iter();
    seeds
        .map(|seed| text(seed.as_u64().unwrap(), size))
        .collect()
}

/// Returns the `tokenizer.json`.
fn document(tokenizer: &Tokenizer) -> Vec<u8> {
    tokenizer.assets()[0].1.clone()
}

#[test]
fn learned_vocabularies_and_merges_equal_those_of_python() {
    let golden = golden("bpe");
    let large = &golden["text"];
    let made = text(7, large["size"].as_u64().unwrap() as usize);
    assert_eq!(sha256(&made), large["sha256"], "the text itself");
    for case in golden["cases"].as_array().unwrap() {
        let mut trainer = BpeTrainer::new(settings(case)).unwrap();
        for text in texts(case) {
            trainer.add(&text);
        }
        let tokenizer = trainer.train().unwrap();
        let document = document(&tokenizer);
        let read: Value = serde_json::from_slice(&document).unwrap();
        let mut vocab: Vec<(String, u64)> = read["model"]["vocab"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(token, id)| (token.clone(), id.as_u64().unwrap()))
            .collect();
        vocab.sort_by_key(|(_, id)| *id);
        assert_eq!(vocab.len(), case["tokens"], "{case}");
        let merges = read["model"]["merges"].as_array().unwrap().iter();
        let merges = merges.map(|pair| strings(pair).join(" "));
        assert_eq!(digest(merges), case["merges_sha256"], "{case}");
        let tokens = vocab.into_iter().map(|(token, _)| token);
        assert_eq!(digest(tokens), case["vocab_sha256"], "{case}");
        assert_eq!(sha256(&document), case["document_sha256"], "{case}");
    }
}

#[test]
fn pieces_of_any_length_give_the_words_of_the_whole_text() {
    let text = text(11, 3000);
    let learned = |length: usize| {
        let settings = BpeSettings {
            vocab_size: 500,
            ..BpeSettings::default()
        };
        let mut trainer = BpeTrainer::new(settings).unwrap();
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let mut end = length.min(rest.len());
            while !rest.is_char_boundary(end) {
                end += 1;
            }
            trainer.push(&rest[..end]);
            rest = &rest[end..];
        }
        trainer.end();
        document(&trainer.train().unwrap())
    };
    let whole = learned(usize::MAX);
    for length in [1, 2, 3, 7, 255, 256, 257] {
        assert!(learned(length) == whole, "pieces of {length} bytes");
    }
}

#[test]
fn learned_tokenizer_encodes_any_text_and_names_its_end() {
    let mut trainer = BpeTrainer::new(BpeSettings::default()).unwrap();
    trainer.add(&text(1, 20_000));
    let tokenizer = trainer.train().unwrap();
    assert_eq!(tokenizer.eos(), [0]);
    let said = "\u{0}\t naïve 漢字 🙂\r\n  <|endoftext|>x";
    let ids = tokenizer.encode(said).unwrap();
    assert!(ids.contains(&0));
    assert_eq!(tokenizer.decode(&ids).unwrap(), said);
    // Opened again, alone, it is the same.
    let again = Tokenizer::for_new_model(document(&tokenizer)).unwrap();
    assert_eq!((again.encode(said).unwrap(), again.eos()), (ids, &[0][..]));
}

#[test]
fn settings_that_cannot_be_used_are_all_reported() {
    let keys = |vocab_size: usize, special: &[&str]| -> Vec<String> {
        let settings = BpeSettings {
            vocab_size,
            special_tokens: special.iter().map(ToString::to_string).collect(),
            ..BpeSettings::default()
        };
        match BpeTrainer::new(settings) {
            Ok(_) => Vec::new(),
            Err(Error::InvalidConfig(faults)) => {
                faults.into_iter().map(|fault| fault.key).collect()
            }
            Err(other) => panic!("{other}"),
        }
    };
    assert!(keys(256, &[]).is_empty());
    assert!(keys(257, &["<e>"]).is_empty());
    assert_eq!(keys(255, &[]), ["vocab_size"]);
    assert_eq!(keys(256, &["<e>"]), ["vocab_size"]);
    assert_eq!(keys(usize::MAX, &["<e>"]), ["vocab_size"]);
    assert_eq!(keys(300, &[""]), ["special_tokens"]);
    assert_eq!(keys(300, &["a"]), ["special_tokens"]);
    assert_eq!(keys(300, &["Ġ"]), ["special_tokens"]);
    assert_eq!(keys(300, &["<e>", "<e>"]), ["special_tokens"]);
    assert_eq!(keys(1, &["", "b"]).len(), 3);
    let none = BpeTrainer::new(BpeSettings::default()).unwrap().train();
    assert_eq!(none.unwrap_err().code(), "data.too-short");
}

/// Trains on files of these names and contents.
fn of_files(
    files: &[(&str, &str)],
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(u64),
) -> tabtune::Result<Tokenizer> {
    let files: Vec<DataFile<'_>> = files
        .iter()
        .map(|(name, text)| DataFile {
            name,
            bytes: text.as_bytes(),
        })
        .collect();
    let files: Vec<&dyn DataSource> = files.iter().map(|file| file as &dyn DataSource).collect();
    let (settings, bpe) = (
        DataSettings::default(),
        BpeSettings {
            vocab_size: 300,
            ..BpeSettings::default()
        },
    );
    futures_lite::future::block_on(train_tokenizer(&files, &settings, bpe, interrupt, progress))
}

#[test]
fn files_are_read_as_data_are() {
    let (first, second) = (text(1, 2000), text(2, 2000));
    let by = |files: &[(&str, &str)]| {
        document(&of_files(files, &Interrupt::none(), &mut |_| {}).unwrap())
    };
    let mut trainer = BpeTrainer::new(BpeSettings {
        vocab_size: 300,
        ..BpeSettings::default()
    })
    .unwrap();
    trainer.add(&first);
    trainer.add(&second);
    let expected = document(&trainer.train().unwrap());
    assert!(by(&[("a.txt", &first), ("b.txt", &second)]) == expected);
    let rows = format!(
        "{}\n{}\n",
        json!({"text": first}),
        json!({"messages": [{"role": "user", "content": second}]})
    );
    assert!(by(&[("rows.jsonl", &rows)]) == expected);
    let halves = first.split_at(first.char_indices().nth(700).unwrap().0);
    let rows = format!(
        "{}\n{}\n",
        json!({"prompt": halves.0, "completion": halves.1}),
        json!({"text": second})
    );
    assert!(by(&[("rows.jsonl", &rows)]) == expected);
}

#[test]
fn reading_reports_its_progress_and_can_be_ended() {
    // More than one piece.
    let long = text(3, 600_000);
    let mut told = Vec::new();
    of_files(&[("a.txt", &long)], &Interrupt::none(), &mut |read| {
        told.push(read)
    })
    .unwrap();
    assert!(told.len() >= 3 && told.is_sorted(), "{told:?}");
    assert_eq!(told.last(), Some(&(long.len() as u64)));
    let interrupt = Interrupt::none();
    let mut pieces = 0;
    let ended = of_files(&[("a.txt", &long)], &interrupt, &mut |_| {
        pieces += 1;
        interrupt.request();
    });
    assert_eq!((ended.unwrap_err().code(), pieces), ("call.aborted", 1));
}

#[test]
fn data_without_a_text_are_refused() {
    let code = |files: &[(&str, &str)]| {
        let made = of_files(files, &Interrupt::none(), &mut |_| {});
        made.unwrap_err().code()
    };
    assert_eq!(code(&[("a.txt", "")]), "data.empty");
    assert_eq!(code(&[("a.tokens", "abcd")]), "data.form.contradicts");
    assert_eq!(
        code(&[("a.jsonl", "{\"input_ids\": [1, 2]}\n")]),
        "data.template"
    );
}
