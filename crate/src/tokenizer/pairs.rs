//! Converts `vocab.json` with `merges.txt`, the byte-level byte pair encoding of GPT-2 and Qwen2, to a `tokenizer.json`.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};

use super::class::{GPT2, QWEN2, TokenizerClass};
use super::document::{Document, Model, added, byte_level, framed, isolated};
use super::faults::{flawed, refused};
use super::names::{MERGES, VOCAB};
use super::pre::QWEN2 as QWEN2_SPLIT;
use super::stated::Stated;
use super::{CONFIG_FILE, bad, read_json};
use crate::error::{Result, word};
use crate::formats::foreign;

/// Hint on how to get a tokenizer.json.
pub(crate) const SAVE_TOKENIZER: &str = "save a tokenizer.json where the model was made: AutoTokenizer.from_pretrained(folder).save_pretrained(folder) in transformers";

/// The files of a vocabulary, and `tokenizer_config.json` and `config.json`, which state its rule.
pub(super) struct Files<'a> {
    pub vocab: &'a [u8],
    pub merges: &'a [u8],
    pub settings: &'a Value,
    pub config: &'a Value,
}

impl Files<'_> {
    /// Returns the class, which is that of the model's type if the settings name none of its own.
    fn class(&self) -> Option<&'static TokenizerClass> {
        let stated = TokenizerClass::of(self.settings, self.config);
        let named = self.settings["tokenizer_class"].as_str();
        let open =
            named.is_none_or(|name| matches!(name, "PreTrainedTokenizer" | "TokenizersBackend"));
        let model_type = self.config["model_type"].as_str();
        let is_qwen = model_type.is_some_and(|word| word.starts_with("qwen"));
        let implied = if is_qwen { &QWEN2 } else { &GPT2 };
        let class = stated.or(open.then_some(implied));
        class.filter(|class| [&GPT2, &QWEN2].contains(class))
    }

    /// Converts the vocabulary to a `tokenizer.json`.
    ///
    /// # Errors
    /// `tokenizer.invalid`, and `tokenizer.model.unsupported` for another class and for tokens that are not bytes.
    pub fn tokenizer_json(&self, stated: &Stated) -> Result<Vec<u8>> {
        let class = self.class().ok_or_else(|| {
            let (code, expected) = (
                word!("tokenizer.model.unsupported"),
                "GPT2Tokenizer or Qwen2Tokenizer",
            );
            let found = &self.settings["tokenizer_class"];
            refused(code, CONFIG_FILE, expected)
                .found(found)
                .subject("tokenizer_class")
                .hint(SAVE_TOKENIZER)
        })?;
        let mut vocab: BTreeMap<String, u32> = read_json(VOCAB, self.vocab)?;
        let tokens = stated.with_ids(&vocab);
        let is_added = |text: &str| tokens.values().any(|token| token.content == text);
        check_bytes(vocab.keys().filter(|token| !is_added(token)))?;
        vocab.extend(
            tokens
                .iter()
                .map(|(id, token)| (token.content.clone(), *id)),
        );
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
            let expected = "the pairs that make the tokens of vocab.json";
            let refusal = refused(word!("tokenizer.merges.missing"), MERGES, expected)
                .found("no pair")
                .subject(token)
                .hint("if the file was downloaded, fetch it again");
            return Err(refusal.into());
        }
        let space = self.settings["add_prefix_space"] == true;
        let (normalizer, pre_tokenizer) = match class == &QWEN2 {
            true => {
                let steps = [isolated(QWEN2_SPLIT), byte_level(space, false)];
                let both = json!({"type": "Sequence", "pretokenizers": steps});
                (json!({"type": "NFC"}), both)
            }
            false => (Value::Null, byte_level(space, true)),
        };
        // Tokens that begin and end a text, if the settings ask for them.
        let asked = |flag: &str, name: &str| {
            let text = stated.text(name).filter(|_| self.settings[flag] == true)?;
            vocab.get(text).map(|id| (text, *id))
        };
        let (before, after) = (
            asked("add_bos_token", "bos_token"),
            asked("add_eos_token", "eos_token"),
        );
        let listed = vocab.iter().map(|(text, id)| (text.as_str(), *id as usize));
        Document {
            post_processor: framed(before, after, true),
            added_tokens: tokens.iter().map(|(id, token)| added(*id, token)).collect(),
            normalizer,
            pre_tokenizer,
            decoder: byte_level(false, true),
            ..Document::new(Model::new(listed.collect(), merges))
        }
        .bytes()
    }

    /// The pairs of `merges.txt`, best first. Both parts and what they make are tokens.
    fn pairs(&self, vocab: &BTreeMap<String, u32>) -> Result<Vec<(&str, &str)>> {
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
            let is_pair = |(left, right): &(&str, &str)| {
                !left.is_empty() && !right.is_empty() && !right.contains(' ')
            };
            let pair = line.split_once(' ').filter(is_pair);
            let (left, right) = pair.ok_or_else(|| fault("is no pair"))?;
            let whole = format!("{left}{right}");
            let mut tokens = [left, right, &whole].into_iter();
            match tokens.find(|token| !vocab.contains_key(*token)) {
                Some(absent) => Err(fault(&format!(
                    "needs the token {absent}, which vocab.json lacks"
                ))),
                None => Ok((left, right)),
            }
        };
        lines.map(pair).collect()
    }
}

/// Refuses tokens with characters that do not represent bytes.
fn check_bytes<'a>(mut tokens: impl Iterator<Item = &'a String>) -> Result<()> {
    let bytes = tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet();
    let Some(token) = tokens.find(|token| !token.chars().all(|c| bytes.contains(&c))) else {
        return Ok(());
    };
    let expected = "tokens of bytes, each as a character of GPT-2's table";
    let refusal = refused(word!("tokenizer.model.unsupported"), VOCAB, expected);
    Err(refusal.subject(token).hint(SAVE_TOKENIZER).into())
}
