//! Converts `vocab.json` with `merges.txt`, the byte-level byte pair encoding of GPT-2 and Qwen2, to a `tokenizer.json`.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use serde_json::{Map, Value, json};
use tokenizers::AddedToken;

use super::class::{GPT2, QWEN2, TokenizerClass};
use super::faults::flawed;
use super::names::{MERGES, VOCAB};
use super::pre::QWEN2 as QWEN2_SPLIT;
use super::stated::Stated;
use super::{CONFIG_FILE, TOKENIZER_FILE, bad, read_json};
use crate::error::{Refusal, Result, word};
use crate::formats::foreign;

/// Hint on how to get a tokenizer.json.
pub(crate) const SAVE_TOKENIZER: &str = "save a tokenizer.json where the model was made: AutoTokenizer.from_pretrained(folder).save_pretrained(folder) in transformers";

/// The files of a vocabulary, and `tokenizer_config.json` and `config.json`, which state its rule.
pub(super) struct Files<'a> {
    pub(super) vocab: &'a [u8],
    pub(super) merges: &'a [u8],
    pub(super) settings: &'a Value,
    pub(super) config: &'a Value,
}

impl Files<'_> {
    /// Returns the class, which is that of the model's type if the settings name none of its own.
    fn class(&self) -> Option<&'static TokenizerClass> {
        let stated = TokenizerClass::of(self.settings, self.config);
        let named = self.settings["tokenizer_class"].as_str();
        let open =
            named.is_none_or(|name| matches!(name, "PreTrainedTokenizer" | "TokenizersBackend"));
        let implied = || {
            if self.config["model_type"]
                .as_str()
                .is_some_and(|word| word.starts_with("qwen"))
            {
                &QWEN2
            } else {
                &GPT2
            }
        };
        stated
            .or_else(|| open.then(implied))
            .filter(|class| [&GPT2, &QWEN2].contains(class))
    }

    /// Converts the vocabulary to a `tokenizer.json`.
    ///
    /// # Errors
    /// `tokenizer.invalid`, and `tokenizer.model.unsupported` for another class and for tokens that are not bytes.
    pub(super) fn tokenizer_json(&self, stated: &Stated) -> Result<Vec<u8>> {
        let class = self.class().ok_or_else(|| {
            let refusal = Refusal::new(word!("tokenizer.model.unsupported"))
                .stage("bind")
                .of(CONFIG_FILE)
                .subject("tokenizer_class");
            refusal
                .expected("GPT2Tokenizer or Qwen2Tokenizer")
                .found(&self.settings["tokenizer_class"])
                .hint(SAVE_TOKENIZER)
        })?;
        let mut vocab: BTreeMap<String, u32> = read_json(VOCAB, self.vocab)?;
        let added = stated.with_ids(&vocab);
        let is_added = |text: &str| added.values().any(|token| token.content == text);
        check_bytes(vocab.keys().filter(|token| !is_added(token)))?;
        vocab.extend(added.iter().map(|(id, token)| (token.content.clone(), *id)));
        let mut ids = HashSet::new();
        if let Some((token, id)) = vocab.iter().find(|(_, id)| !ids.insert(**id)) {
            return Err(bad(
                VOCAB,
                format!("{token:?} has the id {id} of another token"),
            ));
        }
        let merges = self.pairs(&vocab)?;
        let made = |token: &&String| token.chars().count() > 1 && !is_added(token);
        if let Some(token) = vocab.keys().find(made).filter(|_| merges.is_empty()) {
            let refusal = Refusal::new(word!("tokenizer.merges.missing"))
                .stage("bind")
                .of(MERGES)
                .subject(token);
            let refusal = refusal
                .expected("the pairs that make the tokens of vocab.json")
                .found("no pair");
            return Err(refusal
                .hint("if the file was downloaded, fetch it again")
                .into());
        }
        let document = Document {
            version: "1.0",
            truncation: (),
            padding: (),
            post_processor: post_processor(self.settings, stated, &vocab),
            added_tokens: added.iter().map(|(id, token)| entry(*id, token)).collect(),
            normalizer: if class == &QWEN2 {
                json!({"type": "NFC"})
            } else {
                Value::Null
            },
            pre_tokenizer: pre_tokenizer(class, self.settings),
            decoder: byte_level(false, true),
            model: Bpe {
                r#type: "BPE",
                dropout: (),
                unk_token: (),
                continuing_subword_prefix: (),
                end_of_word_suffix: (),
                fuse_unk: false,
                byte_fallback: false,
                ignore_merges: false,
                vocab: &vocab,
                merges,
            },
        };
        serde_json::to_vec(&document).map_err(|e| bad(TOKENIZER_FILE, e))
    }

    /// Returns the pairs of `merges.txt`, each `left right`, best first. Both parts and what they make are tokens.
    fn pairs(&self, vocab: &BTreeMap<String, u32>) -> Result<Vec<&str>> {
        // A vocabulary of single bytes needs no pairs, and an empty file is one without any.
        if let Some(flaw) = foreign(self.merges).filter(|_| !self.merges.trim_ascii().is_empty()) {
            return Err(flawed(MERGES, &flaw));
        }
        let text = std::str::from_utf8(self.merges).map_err(|e| bad(MERGES, e))?;
        let lines = text
            .lines()
            .enumerate()
            .filter(|(at, line)| !(line.is_empty() || *at == 0 && line.starts_with("#version")));
        let pair = |(at, line)| {
            let line: &str = line;
            let fault = |what: &str| bad(MERGES, format!("line {} {what}", at + 1));
            let (left, right) = line
                .split_once(' ')
                .filter(|(left, right)| {
                    !left.is_empty() && !right.is_empty() && !right.contains(' ')
                })
                .ok_or_else(|| fault("is no pair"))?;
            let whole = format!("{left}{right}");
            match [left, right, &whole]
                .into_iter()
                .find(|token| !vocab.contains_key(*token))
            {
                Some(absent) => Err(fault(&format!(
                    "needs the token {absent}, which vocab.json lacks"
                ))),
                None => Ok(line),
            }
        };
        lines.map(pair).collect()
    }
}

/// Returns the entry of a token in a `tokenizer.json`.
fn entry(id: u32, token: &AddedToken) -> Value {
    json!({"id": id, "content": token.content, "single_word": token.single_word, "lstrip": token.lstrip, "rstrip": token.rstrip,
        "normalized": token.normalized, "special": token.special})
}

/// Refuses tokens with characters that do not represent bytes.
fn check_bytes<'a>(mut tokens: impl Iterator<Item = &'a String>) -> Result<()> {
    let bytes = tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet();
    let Some(token) = tokens.find(|token| !token.chars().all(|c| bytes.contains(&c))) else {
        return Ok(());
    };
    let refusal = Refusal::new(word!("tokenizer.model.unsupported"))
        .stage("bind")
        .of(VOCAB)
        .subject(token);
    Err(refusal
        .expected("tokens of bytes, each as a character of GPT-2's table")
        .hint(SAVE_TOKENIZER)
        .into())
}

fn byte_level(add_prefix_space: bool, use_regex: bool) -> Value {
    json!({"type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": true, "use_regex": use_regex})
}

fn pre_tokenizer(class: &TokenizerClass, settings: &Value) -> Value {
    let space = settings["add_prefix_space"] == true;
    if class == &GPT2 {
        return byte_level(space, true);
    }
    let split = json!({"type": "Split", "pattern": {"Regex": QWEN2_SPLIT}, "behavior": "Isolated", "invert": false});
    json!({"type": "Sequence", "pretokenizers": [split, byte_level(space, false)]})
}

/// Returns the post-processor that adds a beginning and an end to a text, if the settings ask for them.
fn post_processor(settings: &Value, stated: &Stated, vocab: &BTreeMap<String, u32>) -> Value {
    let asked = |flag: &str, name: &str| {
        let text = stated.text(name).filter(|_| settings[flag] == true)?;
        vocab.get(text).map(|id| (text.to_owned(), *id))
    };
    let (before, after) = (
        asked("add_bos_token", "bos_token"),
        asked("add_eos_token", "eos_token"),
    );
    if before.is_none() && after.is_none() {
        return Value::Null;
    }
    let mut specials = Map::new();
    let mut piece = |(text, id): &(String, u32)| {
        specials.insert(
            text.clone(),
            json!({"id": text, "ids": [id], "tokens": [text]}),
        );
        json!({"SpecialToken": {"id": text, "type_id": 0}})
    };
    let (before, after) = (
        before.as_ref().map(&mut piece),
        after.as_ref().map(&mut piece),
    );
    let whole = |sequences: &[Value]| -> Vec<Value> {
        before
            .iter()
            .chain(sequences)
            .chain(&after)
            .cloned()
            .collect()
    };
    let [first, second] =
        ["A", "B"].map(|id| json!({"Sequence": {"id": id, "type_id": u8::from(id == "B")}}));
    let (single, pair) = (whole(std::slice::from_ref(&first)), whole(&[first, second]));
    json!({"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": specials})
}

/// A `tokenizer.json`, written part by part.
#[derive(Serialize)]
struct Document<'a> {
    version: &'static str,
    truncation: (),
    padding: (),
    added_tokens: Vec<Value>,
    normalizer: Value,
    pre_tokenizer: Value,
    post_processor: Value,
    decoder: Value,
    model: Bpe<'a>,
}

#[derive(Serialize)]
struct Bpe<'a> {
    r#type: &'static str,
    dropout: (),
    unk_token: (),
    continuing_subword_prefix: (),
    end_of_word_suffix: (),
    fuse_unk: bool,
    byte_fallback: bool,
    ignore_merges: bool,
    vocab: &'a BTreeMap<String, u32>,
    merges: Vec<&'a str>,
}
