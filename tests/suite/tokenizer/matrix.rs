//! The tokenizer of a folder compared with `AutoTokenizer` of two versions of transformers, in several hundred folders
//! (`tests/golden/make_tokenizer_matrix.py`).

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::{Map, Value, json};
use tabtune::bundle::open_bundle;
use tabtune::formats::ByteSource;
use tabtune::tokenizer::{Conversation, Tokenizer};

use crate::bundle::files::{file, ramp, safetensors};

struct Matrix(Value);

impl Matrix {
    fn read() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/tokenizer-matrix.json");
        Self(serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
    }

    fn cases(&self) -> &Vec<Value> {
        self.0["cases"].as_array().unwrap()
    }

    /// Returns the files of a case by name.
    fn files(&self, case: &Value) -> BTreeMap<String, Vec<u8>> {
        let mut document = self.0["bases"][case["base"].as_str().unwrap()].clone();
        document.as_object_mut().unwrap().extend(
            case.get("change")
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default(),
        );
        let model_type = case
            .get("model_type")
            .map_or(json!({}), |word| json!({"model_type": word}));
        let named = [
            ("tokenizer.json", Some(&document)),
            ("config.json", Some(&model_type)),
            ("tokenizer_config.json", case.get("config")),
            ("special_tokens_map.json", case.get("map")),
            ("added_tokens.json", case.get("added")),
        ];
        let mut files: BTreeMap<String, Vec<u8>> = named
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_string().into_bytes())))
            .collect();
        let text = |value: &Value| value.as_str().unwrap().as_bytes().to_vec();
        files.extend(
            case.get("template")
                .map(|template| ("chat_template.jinja".to_owned(), text(template))),
        );
        for (name, template) in case
            .get("more")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            files.insert(
                format!("additional_chat_templates/{name}.jinja"),
                text(template),
            );
        }
        files
    }

    /// Returns what our tokenizer makes of the texts and the chats: tokens before and after a text, ids, chats without and with tools.
    fn answers(&self, tokenizer: &Tokenizer) -> Vec<Value> {
        let mut answers = vec![
            json!(tokenizer.prompt_prefix()),
            json!(tokenizer.prompt_suffix()),
        ];
        for text in self.0["texts"].as_array().unwrap() {
            let ids = tokenizer.encode(text.as_str().unwrap()).unwrap();
            let whole = [tokenizer.prompt_prefix(), &ids, tokenizer.prompt_suffix()].concat();
            assert_eq!(
                tokenizer.encode_prompt(text.as_str().unwrap()).unwrap(),
                whole
            );
            answers.push(json!(ids));
        }
        for tools in [None, Some(&self.0["tools"])] {
            let mut chat = Conversation::new(self.0["chat"].as_array().unwrap().clone());
            chat.names = tools
                .map(|tools| ("tools".to_owned(), tools.clone()))
                .into_iter()
                .collect::<Map<_, _>>();
            answers.push(
                tokenizer
                    .render_chat(&chat, false)
                    .map_or(Value::Null, |chat| json!(chat.text)),
            );
        }
        answers
    }

    /// Returns the answers of the versions of transformers that read the case, in the order of [`Self::answers`].
    fn expected(&self, case: &Value) -> Vec<Vec<Value>> {
        let of = |list: &Vec<Value>| {
            let mut answers: Vec<Value> = list
                .iter()
                .map(|at| self.0["answers"][at.as_u64().unwrap() as usize].clone())
                .collect();
            let frame = answers.remove(0);
            answers.splice(0..0, frame.as_array().unwrap().clone());
            answers
        };
        ["both", "five", "four"]
            .into_iter()
            .filter_map(|key| case.get(key)?.as_array().map(of))
            .collect()
    }
}

/// An answer of both versions is ours, too; where they differ, ours is that of one of them. A chat that they refuse may be one that we render,
/// and one that an empty template leaves empty is refused, or rendered by the template next to it.
#[test]
fn the_tokenizer_of_a_folder_is_what_auto_tokenizer_makes_of_it() {
    let matrix = Matrix::read();
    let (mut agreed, mut wrong) = (0, Vec::new());
    for case in matrix.cases() {
        let name = case["name"].as_str().unwrap();
        let tokenizer = match Tokenizer::from_folder(matrix.files(case)) {
            Ok(tokenizer) => tokenizer.unwrap(),
            Err(error) => {
                wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        let (found, expected) = (matrix.answers(&tokenizer), matrix.expected(case));
        agreed += usize::from(expected.windows(2).all(|pair| pair[0] == pair[1]));
        for (at, found) in found.iter().enumerate() {
            let expected: Vec<&Value> = expected
                .iter()
                .map(|answers| &answers[at])
                .filter(|answer| !answer.is_null())
                .collect();
            let empty = !expected.is_empty() && expected.iter().all(|chat| *chat == "");
            if !empty && !expected.is_empty() && !expected.contains(&found) {
                wrong.push(format!(
                    "{name}, answer {at}: expected {expected:?}, found {found}"
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        matrix.cases().len(),
        wrong.join("\n")
    );
    assert!(
        matrix.cases().len() >= 750 && agreed >= 400,
        "{} cases, in {agreed} of which both versions agree",
        matrix.cases().len()
    );
}

/// Folders in the shape of widely used models open as models, with every file that their tokenizer was made of in an export.
#[test]
fn folders_as_published_open_with_their_tokenizer() {
    let matrix = Matrix::read();
    let published: Vec<&Value> = matrix
        .cases()
        .iter()
        .filter(|case| case["name"].as_str().unwrap().starts_with("published"))
        .collect();
    for case in &published {
        let mut files = matrix.files(case);
        let expected = Tokenizer::from_folder(files.clone()).unwrap().unwrap();
        let rows = expected.vocab_size();
        let model_type = case
            .get("model_type")
            .filter(|word| *word == "llama" || *word == "mistral")
            .cloned()
            .unwrap_or(json!("llama"));
        let config = json!({"model_type": model_type, "vocab_size": rows, "hidden_size": 4, "intermediate_size": 4, "num_hidden_layers": 1,
            "num_attention_heads": 1, "max_position_embeddings": 8, "rms_norm_eps": 1e-5, "rope_theta": 1e4, "tie_word_embeddings": true,
            "sliding_window": null});
        files.insert("config.json".to_owned(), config.to_string().into_bytes());
        let mut sources: Vec<Rc<dyn ByteSource>> = files
            .iter()
            .map(|(name, bytes)| file(name, bytes.clone()))
            .collect();
        sources.push(file(
            "model.safetensors",
            safetensors(&[(
                "model.embed_tokens.weight",
                vec![rows, 4],
                ramp(4 * rows, 0.0),
            )]),
        ));
        let bundle = open_bundle(sources).unwrap();
        let tokenizer = bundle
            .need_tokenizer()
            .unwrap_or_else(|error| panic!("{}: {error}", case["name"]));
        assert_eq!(
            matrix.answers(tokenizer),
            matrix.answers(&expected),
            "{}",
            case["name"]
        );
    }
    let names: BTreeSet<&str> = published
        .iter()
        .filter_map(|case| case["name"].as_str())
        .collect();
    assert!(names.len() >= 20, "{names:?}");
}
