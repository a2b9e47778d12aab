//! Converts `vocab.json` with `merges.txt`, the byte-level byte pair encoding of GPT-2 and Qwen2, to a `tokenizer.json`.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::faults::flawed;
use super::parts::QWEN2;
use super::templates::special_text;
use super::{CONFIG_FILE, SPECIAL_KEYS, TOKENIZER_FILE, bad, read_json};
use crate::error::{Refusal, Result, word};
use crate::formats::foreign;

pub(super) const SPECIALS: &str = "special_tokens_map.json";
const VOCAB: &str = "vocab.json";
const MERGES: &str = "merges.txt";
const ADDED: &str = "added_tokens.json";
/// Token that ends a text in both classes.
const END: &str = "<|endoftext|>";
/// Hint on how to get a tokenizer.json.
pub(crate) const SAVE_TOKENIZER: &str =
    "save a tokenizer.json where the model was made: AutoTokenizer.from_pretrained(folder).save_pretrained(folder) in transformers";

/// Tokenizer class of transformers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenizerClass {
    Gpt2,
    Qwen2,
}

impl TokenizerClass {
    /// Returns the class that the settings name, or else that of the model's type; `None` for a class with another rule.
    fn of(config: &Value, model_type: &str) -> Option<Self> {
        let named = config.get("tokenizer_class").and_then(Value::as_str);
        match named.map(|name| name.strip_suffix("Fast").unwrap_or(name)) {
            Some("GPT2Tokenizer") => Some(Self::Gpt2),
            Some("Qwen2Tokenizer") => Some(Self::Qwen2),
            None | Some("PreTrainedTokenizer" | "TokenizersBackend") if model_type.starts_with("qwen") => Some(Self::Qwen2),
            None | Some("PreTrainedTokenizer" | "TokenizersBackend") => Some(Self::Gpt2),
            Some(_) => None,
        }
    }

    /// Returns true if a document states the class, rather than only the form of the files.
    fn is_stated(config: &Value, model_type: &str) -> bool {
        config.get("tokenizer_class").is_some() || model_type == "gpt2" || model_type.starts_with("qwen")
    }

    /// Returns the keys of the special tokens that the class has by default.
    fn defaults(self) -> [&'static str; 3] {
        match self {
            Self::Gpt2 => ["bos_token", "eos_token", "unk_token"],
            Self::Qwen2 => ["eos_token", "unk_token", "pad_token"],
        }
    }
}

/// Adds the special tokens that `tokenizer_config.json` lacks: those of `special_tokens_map.json`, then those of the class.
pub(super) fn fill_in(config: &mut Value, specials: &Value, model_type: &str) {
    let class = TokenizerClass::of(config, model_type).filter(|_| TokenizerClass::is_stated(config, model_type));
    let Some(fields) = config.as_object_mut() else { return };
    for key in SPECIAL_KEYS {
        let own = class.filter(|class| class.defaults().contains(&key)).map(|_| json!(END));
        if let (false, Some(token)) = (fields.contains_key(key), specials.get(key).cloned().or(own)) {
            fields.insert(key.to_owned(), token);
        }
    }
}

/// The files of a vocabulary.
pub(super) struct Files<'a> {
    pub(super) vocab: &'a [u8],
    pub(super) merges: &'a [u8],
    pub(super) added: Option<&'a [u8]>,
}

impl Files<'_> {
    /// Converts the vocabulary to a `tokenizer.json`, by the settings of `tokenizer_config.json`.
    ///
    /// # Errors
    /// `tokenizer.invalid`, and `tokenizer.model.unsupported` for another class and for tokens that are not bytes.
    pub(super) fn tokenizer_json(&self, config: &Value, specials: &Value, model_type: &str) -> Result<Vec<u8>> {
        let class = TokenizerClass::of(config, model_type).ok_or_else(|| {
            let refusal = Refusal::new(word!("tokenizer.model.unsupported")).stage("bind").of(CONFIG_FILE).subject("tokenizer_class");
            refusal.expected("GPT2Tokenizer or Qwen2Tokenizer").found(&config["tokenizer_class"]).hint(SAVE_TOKENIZER)
        })?;
        let mut vocab: BTreeMap<String, u32> = read_json(VOCAB, self.vocab)?;
        let added = self.added_tokens(&vocab, config, specials)?;
        check_bytes(vocab.keys().filter(|token| !added.iter().any(|(_, entry)| entry["content"] == token.as_str())))?;
        for (id, entry) in &added {
            vocab.insert(entry["content"].as_str().unwrap_or_default().to_owned(), *id);
        }
        let mut ids = HashSet::new();
        if let Some((token, id)) = vocab.iter().find(|(_, id)| !ids.insert(**id)) {
            return Err(bad(VOCAB, format!("{token:?} has the id {id} of another token")));
        }
        let merges = self.pairs(&vocab)?;
        let is_added = |token: &str| added.iter().any(|(_, entry)| entry["content"] == token);
        let made = |token: &&String| token.chars().count() > 1 && !is_added(token);
        if let Some(token) = vocab.keys().find(made).filter(|_| merges.is_empty()) {
            let refusal = Refusal::new(word!("tokenizer.merges.missing")).stage("bind").of(MERGES).subject(token);
            let refusal = refusal.expected("the pairs that make the tokens of vocab.json").found("no pair");
            return Err(refusal.hint("if the file was downloaded, fetch it again").into());
        }
        let document = Document {
            version: "1.0",
            truncation: (),
            padding: (),
            post_processor: post_processor(config, &vocab),
            added_tokens: added.into_iter().map(|(_, entry)| entry).collect(),
            normalizer: if class == TokenizerClass::Qwen2 { json!({"type": "NFC"}) } else { Value::Null },
            pre_tokenizer: pre_tokenizer(class, config),
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
        let lines = text.lines().enumerate().filter(|(at, line)| !(line.is_empty() || *at == 0 && line.starts_with("#version")));
        let pair = |(at, line)| {
            let line: &str = line;
            let fault = |what: &str| bad(MERGES, format!("line {} {what}", at + 1));
            let (left, right) = line
                .split_once(' ')
                .filter(|(left, right)| !left.is_empty() && !right.is_empty() && !right.contains(' '))
                .ok_or_else(|| fault("is no pair"))?;
            let whole = format!("{left}{right}");
            match [left, right, &whole].into_iter().find(|token| !vocab.contains_key(*token)) {
                Some(absent) => Err(fault(&format!("needs the token {absent}, which vocab.json lacks"))),
                None => Ok(line),
            }
        };
        lines.map(pair).collect()
    }

    /// Returns the tokens that are searched for in a text before it is split, with their ids: those of `added_tokens_decoder` in the
    /// settings, those of `added_tokens.json`, and the special tokens.
    fn added_tokens(&self, vocab: &BTreeMap<String, u32>, config: &Value, specials: &Value) -> Result<Vec<(u32, Value)>> {
        let named = special_texts(config, specials);
        let flag = |token: &Value, key: &str| token.get(key).and_then(Value::as_bool).unwrap_or(false);
        let entry = |id: u32, content: &str, token: &Value| {
            json!({"id": id, "content": content, "single_word": flag(token, "single_word"), "lstrip": flag(token, "lstrip"),
                "rstrip": flag(token, "rstrip"), "normalized": flag(token, "normalized"),
                "special": flag(token, "special") || named.contains(content)})
        };
        let mut tokens: BTreeMap<u32, Value> = BTreeMap::new();
        for (id, token) in config.get("added_tokens_decoder").and_then(Value::as_object).into_iter().flatten() {
            let id = id.parse().map_err(|_| bad(CONFIG_FILE, format!("added_tokens_decoder: {id:?} is no id")))?;
            let content = special_text(token).ok_or_else(|| bad(CONFIG_FILE, format!("added_tokens_decoder: {id} has no content")))?;
            tokens.insert(id, entry(id, &content, token));
        }
        let beside: BTreeMap<String, u32> = match self.added {
            Some(bytes) => read_json(ADDED, bytes)?,
            None => BTreeMap::new(),
        };
        let of_vocab = named.iter().filter_map(|text| Some((text, vocab.get(text)?)));
        for (content, id) in beside.iter().chain(of_vocab) {
            tokens.entry(*id).or_insert_with(|| entry(*id, content, &Value::Null));
        }
        Ok(tokens.into_iter().collect())
    }
}

/// Returns the texts of all special tokens that the documents name.
fn special_texts(config: &Value, specials: &Value) -> BTreeSet<String> {
    let keys = SPECIAL_KEYS.into_iter().chain(["sep_token", "cls_token", "mask_token"]);
    let single = keys.flat_map(|key| [config.get(key), specials.get(key)]).flatten().filter_map(special_text);
    let more = [config, specials].into_iter().filter_map(|document| document.get("additional_special_tokens")?.as_array());
    single.chain(more.flatten().filter_map(special_text)).collect()
}

/// Refuses tokens with characters that do not represent bytes.
fn check_bytes<'a>(mut tokens: impl Iterator<Item = &'a String>) -> Result<()> {
    let bytes = tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet();
    let Some(token) = tokens.find(|token| !token.chars().all(|c| bytes.contains(&c))) else { return Ok(()) };
    let refusal = Refusal::new(word!("tokenizer.model.unsupported")).stage("bind").of(VOCAB).subject(token);
    Err(refusal.expected("tokens of bytes, each as a character of GPT-2's table").hint(SAVE_TOKENIZER).into())
}

fn byte_level(add_prefix_space: bool, use_regex: bool) -> Value {
    json!({"type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": true, "use_regex": use_regex})
}

fn pre_tokenizer(class: TokenizerClass, config: &Value) -> Value {
    let space = config.get("add_prefix_space").and_then(Value::as_bool).unwrap_or(false);
    match class {
        TokenizerClass::Gpt2 => byte_level(space, true),
        TokenizerClass::Qwen2 => {
            let split = json!({"type": "Split", "pattern": {"Regex": QWEN2}, "behavior": "Isolated", "invert": false});
            json!({"type": "Sequence", "pretokenizers": [split, byte_level(space, false)]})
        }
    }
}

/// Returns the post-processor that adds a beginning and an end to a text, if the settings ask for them.
fn post_processor(config: &Value, vocab: &BTreeMap<String, u32>) -> Value {
    let asked = |flag: &str, key: &str| {
        let text = config.get(key).and_then(special_text).filter(|_| config.get(flag).and_then(Value::as_bool) == Some(true))?;
        vocab.get(&text).map(|id| (text, *id))
    };
    let (before, after) = (asked("add_bos_token", "bos_token"), asked("add_eos_token", "eos_token"));
    if before.is_none() && after.is_none() {
        return Value::Null;
    }
    let mut specials = Map::new();
    let mut piece = |(text, id): &(String, u32)| {
        specials.insert(text.clone(), json!({"id": text, "ids": [id], "tokens": [text]}));
        json!({"SpecialToken": {"id": text, "type_id": 0}})
    };
    let (before, after) = (before.as_ref().map(&mut piece), after.as_ref().map(&mut piece));
    let whole = |sequences: &[Value]| -> Vec<Value> { before.iter().chain(sequences).chain(&after).cloned().collect() };
    let [first, second] = ["A", "B"].map(|id| json!({"Sequence": {"id": id, "type_id": u8::from(id == "B")}}));
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
