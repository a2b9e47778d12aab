//! Converts the vocabulary of a GGUF file to the files of a Hugging Face tokenizer.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::document::{Document, Model};
use super::parts::{
    BYTE, CONTROL, LLAMA_BPE, NORMAL, PartsModel, QWEN2, TOKENIZER_JSON_SERVES, TokenizerParts, UNKNOWN, UNUSED, USER_DEFINED,
};
use super::pre::{Pre, Split};
use super::{TOKENIZER_FILE, bad};
use crate::error::{Refusal, Result, word};

impl TokenizerParts {
    /// Converts the vocabulary to a `tokenizer.json` document.
    pub(super) fn tokenizer_json(&self) -> Result<Vec<u8>> {
        let count = self.tokens.len();
        if count == 0 {
            return Err(bad("tokens", "the vocabulary is empty"));
        }
        if !self.types.is_empty() && self.types.len() != count {
            return Err(bad("token types", format!("expected {count}, found {}", self.types.len())));
        }
        let named = [("bos", self.bos), ("pad", self.pad), ("unk", self.unk)].into_iter().filter_map(|(key, id)| Some((key, id?)));
        for (key, id) in named.chain(self.eos.iter().map(|&id| ("eos", id))) {
            if id as usize >= count {
                return Err(bad(key, format!("expected an id less than {count}, found {id}")));
            }
        }
        let mut ids = HashMap::with_capacity(count);
        for (token, id) in self.listed() {
            if ids.insert(token, id).is_some() {
                return Err(bad("tokens", format!("{token:?} occurs twice")));
            }
        }
        let Rules { normalizer, pre_tokenizer, decoder, model } = match &self.model {
            PartsModel::ByteLevelBpe { merges, pre } => self.byte_level(merges, pre)?,
            PartsModel::SentencePiece { scores, add_space_prefix } => self.sentence_piece(scores, *add_space_prefix, &ids)?,
            PartsModel::Characters => {
                let decoder = json!({"type": "Fuse"});
                Rules { normalizer: Value::Null, pre_tokenizer: Value::Null, decoder, model: Model::new(self, Vec::new()) }
            }
        };
        let (added_tokens, post_processor) = (self.added_tokens(), self.post_processor());
        let version = "1.0";
        let document =
            Document { version, truncation: (), padding: (), added_tokens, normalizer, pre_tokenizer, post_processor, decoder, model };
        serde_json::to_vec(&document).map_err(|error| bad(TOKENIZER_FILE, error))
    }

    /// Converts the settings to a `tokenizer_config.json` document.
    pub(super) fn tokenizer_config(&self) -> Value {
        let mut config = Map::new();
        config.insert("add_bos_token".to_owned(), json!(self.adds_bos()));
        config.insert("add_eos_token".to_owned(), json!(self.adds_eos()));
        config.insert("clean_up_tokenization_spaces".to_owned(), json!(false));
        config.insert("tokenizer_class".to_owned(), json!("PreTrainedTokenizerFast"));
        let named = [("bos_token", self.bos), ("eos_token", self.eos.first().copied()), ("pad_token", self.pad), ("unk_token", self.unk)];
        for (key, id) in named {
            if let Some(token) = id.and_then(|id| self.tokens.get(id as usize)) {
                config.insert(key.to_owned(), json!(token));
            }
        }
        if !self.named_templates.is_empty() {
            let default = self.chat_template.iter().map(|text| ("default", text));
            let named = self.named_templates.iter().map(|(name, text)| (name.as_str(), text));
            let list = default.chain(named).map(|(name, template)| json!({"name": name, "template": template}));
            config.insert("chat_template".to_owned(), list.collect());
        }
        Value::Object(config)
    }

    fn adds_bos(&self) -> bool {
        let default = match &self.model {
            PartsModel::ByteLevelBpe { pre, .. } => Pre::of(pre).is_some_and(|rule| rule.whole),
            PartsModel::SentencePiece { .. } => true,
            PartsModel::Characters => false,
        };
        self.add_bos.unwrap_or(default) && self.bos.is_some()
    }

    fn adds_eos(&self) -> bool {
        self.add_eos.unwrap_or(false) && !self.eos.is_empty()
    }

    fn added_tokens(&self) -> Vec<Value> {
        let marked = |id: &usize| matches!(self.kind(*id), UNKNOWN | CONTROL | USER_DEFINED);
        let entry = |id: usize, content: &String| {
            json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
                "special": self.kind(id) != USER_DEFINED})
        };
        // An empty text would match everywhere.
        self.tokens.iter().enumerate().filter(|(id, text)| marked(id) && !text.is_empty()).map(|(id, text)| entry(id, text)).collect()
    }

    fn post_processor(&self) -> Value {
        let text = |id: Option<u32>| id.and_then(|id| self.tokens.get(id as usize).map(|token| (id, token.clone())));
        let before = text(self.bos).filter(|_| self.adds_bos());
        let after = text(self.eos.first().copied()).filter(|_| self.adds_eos());
        if before.is_none() && after.is_none() {
            return Value::Null;
        }
        let mut single = Vec::new();
        let mut specials = Map::new();
        let mut special = |list: &mut Vec<Value>, (id, token): (u32, String)| {
            list.push(json!({"SpecialToken": {"id": token, "type_id": 0}}));
            specials.insert(token.clone(), json!({"id": token, "ids": [id], "tokens": [token]}));
        };
        if let Some(token) = before {
            special(&mut single, token);
        }
        single.push(json!({"Sequence": {"id": "A", "type_id": 0}}));
        if let Some(token) = after {
            special(&mut single, token);
        }
        let mut pair = single.clone();
        pair.push(json!({"Sequence": {"id": "B", "type_id": 1}}));
        json!({"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": specials})
    }

    /// Converts llama.cpp's rule, which joins the neighbours whose joint piece has the best score, to BPE: every division of a piece into
    /// two pieces is a merge, ranked by the score of the whole.
    fn sentence_piece(&self, scores: &[f32], add_space_prefix: bool, ids: &HashMap<&str, usize>) -> Result<Rules<'_>> {
        if scores.len() != self.tokens.len() {
            return Err(bad("scores", format!("expected {}, found {}", self.tokens.len(), scores.len())));
        }
        let joinable = |id: usize| matches!(self.kind(id), NORMAL | USER_DEFINED | UNUSED);
        let id_of = |text: &str| ids.get(text).copied().filter(|&id| joinable(id));
        let mut ranked: Vec<Ranked<'_>> = Vec::new();
        for ((id, token), &score) in self.tokens.iter().enumerate().zip(scores).filter(|((id, _), _)| joinable(*id)) {
            for (cut, _) in token.char_indices().skip(1) {
                let (left, right) = token.split_at(cut);
                if let (Some(l), Some(r)) = (id_of(left), id_of(right)) {
                    ranked.push((score, id, l, r, (left, right)));
                }
            }
        }
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)).then(a.3.cmp(&b.3)));
        let merges = ranked.into_iter().map(|entry| entry.4).collect();
        let byte_fallback = (0..self.tokens.len()).any(|id| self.kind(id) == BYTE);
        let unknown = self.unk.and_then(|id| self.tokens.get(id as usize)).map(String::as_str);
        let mut normalizers = vec![json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"})];
        let mut decoders = vec![json!({"type": "Replace", "pattern": {"String": "▁"}, "content": " "})];
        if byte_fallback {
            decoders.push(json!({"type": "ByteFallback"}));
        }
        decoders.push(json!({"type": "Fuse"}));
        if add_space_prefix {
            normalizers.insert(0, json!({"type": "Prepend", "prepend": "▁"}));
            decoders.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
        }
        Ok(Rules {
            normalizer: json!({"type": "Sequence", "normalizers": normalizers}),
            pre_tokenizer: Value::Null,
            decoder: json!({"type": "Sequence", "decoders": decoders}),
            model: Model::new(self, merges).falling_back(byte_fallback, unknown),
        })
    }

    fn byte_level<'a>(&'a self, merges: &'a [String], pre: &str) -> Result<Rules<'a>> {
        let bytes = |use_regex: bool| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex});
        let sequence = |first: Value, use_regex: bool| json!({"type": "Sequence", "pretokenizers": [first, bytes(use_regex)]});
        let pattern = |regex: &str| json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": false});
        let Some(rule) = Pre::of(pre) else {
            let refusal = Refusal::new(word!("tokenizer.model.unsupported")).stage("bind").subject("tokenizer.ggml.pre").found(pre);
            return Err(refusal
                .expected("gpt-2, smollm, llama-bpe, qwen2, or another word for their rules")
                .hint(TOKENIZER_JSON_SERVES)
                .into());
        };
        let (normalizer, pre_tokenizer) = match rule.split {
            Split::Gpt2 => (Value::Null, bytes(true)),
            Split::Digits => (Value::Null, sequence(json!({"type": "Digits", "individual_digits": true}), true)),
            Split::Qwen2 => (json!({"type": "NFC"}), sequence(pattern(QWEN2), false)),
            Split::Llama3 => (Value::Null, sequence(pattern(LLAMA_BPE), false)),
        };
        let mut pairs = Vec::with_capacity(merges.len());
        for merge in merges {
            let (left, right) = merge.split_once(' ').ok_or_else(|| bad("merges", format!("{merge:?} has no space")))?;
            pairs.push((left, right));
        }
        let model = Model::new(self, pairs).ignoring_merges(rule.whole);
        Ok(Rules { normalizer, pre_tokenizer, decoder: bytes(true), model })
    }
}

/// The parts of a document that turn text into tokens and back.
struct Rules<'a> {
    normalizer: Value,
    pre_tokenizer: Value,
    decoder: Value,
    model: Model<'a>,
}

/// A merge and the values that determine its rank: score, id of the result, ids of its parts.
type Ranked<'a> = (f32, usize, usize, usize, (&'a str, &'a str));
