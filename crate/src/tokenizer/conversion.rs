//! Converts the vocabulary of a GGUF file to the files of a Hugging Face tokenizer.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::document::{Document, Model};
use super::parts::{
    PartsModel, Ranked, TOKENIZER_JSON_SERVES, TokenizerParts, USER_DEFINED, is_byte,
};
use super::pre::{Beginning, DIGIT, GPT2, NUMBER, Pre};
use super::stated::LITERAL;
use super::{TOKENIZER_FILE, bad, ties};
use crate::error::{Refusal, Result, word};

impl TokenizerParts {
    /// Converts the vocabulary to a `tokenizer.json` document.
    pub(super) fn tokenizer_json(&self) -> Result<Vec<u8>> {
        let count = self.tokens.len();
        if count == 0 {
            return Err(bad("tokens", "the vocabulary is empty"));
        }
        if !self.types.is_empty() && self.types.len() != count {
            return Err(bad(
                "token types",
                format!("expected {count}, found {}", self.types.len()),
            ));
        }
        let named = [("bos", self.bos), ("pad", self.pad), ("unk", self.unk)]
            .into_iter()
            .filter_map(|(key, id)| Some((key, id?)));
        for (key, id) in named.chain(self.eos.iter().map(|&id| ("eos", id))) {
            if id as usize >= count {
                return Err(bad(
                    key,
                    format!("expected an id less than {count}, found {id}"),
                ));
            }
        }
        let mut ids = HashMap::with_capacity(count);
        for (token, id) in self.listed() {
            if ids.insert(token, id).is_some() {
                return Err(bad("tokens", format!("{token:?} occurs twice")));
            }
        }
        let Rules {
            normalizer,
            pre_tokenizer,
            decoder,
            model,
        } = match &self.model {
            PartsModel::ByteLevelBpe { merges, pre } => self.byte_level(merges, pre)?,
            PartsModel::SentencePiece {
                scores,
                add_space_prefix,
            } => self.sentence_piece(scores, *add_space_prefix, &ids)?,
            PartsModel::Characters => {
                let decoder = json!({"type": "Fuse"});
                Rules {
                    normalizer: Value::Null,
                    pre_tokenizer: Value::Null,
                    decoder,
                    model: Model::new(self, Vec::new()),
                }
            }
        };
        let (added_tokens, post_processor) = (self.added_tokens(), self.post_processor());
        let version = "1.0";
        let document = Document {
            version,
            truncation: (),
            padding: (),
            added_tokens,
            normalizer,
            pre_tokenizer,
            post_processor,
            decoder,
            model,
        };
        serde_json::to_vec(&document).map_err(|error| bad(TOKENIZER_FILE, error))
    }

    /// Converts the settings to a `tokenizer_config.json` document.
    pub(super) fn tokenizer_config(&self) -> Value {
        let mut config = Map::new();
        config.insert("add_bos_token".to_owned(), json!(self.adds_bos()));
        config.insert("add_eos_token".to_owned(), json!(self.adds_eos()));
        config.insert("clean_up_tokenization_spaces".to_owned(), json!(false));
        config.insert(
            "tokenizer_class".to_owned(),
            json!("PreTrainedTokenizerFast"),
        );
        let named = [
            ("bos_token", self.bos),
            ("eos_token", self.eos.first().copied()),
            ("pad_token", self.pad),
            ("unk_token", self.unk),
        ];
        for (key, id) in named {
            if let Some(token) = id.and_then(|id| self.tokens.get(id as usize)) {
                config.insert(key.to_owned(), json!(token));
            }
        }
        let literal =
            |id: &u32| !self.is_marked(*id as usize) && self.model != PartsModel::Characters;
        let literal = named
            .into_iter()
            .filter_map(|(_, id)| id.filter(literal))
            .filter_map(|id| self.tokens.get(id as usize));
        let literal: BTreeSet<&String> = literal.collect();
        if !literal.is_empty() {
            config.insert(LITERAL.to_owned(), json!(literal));
        }
        if !self.named_templates.is_empty() {
            let default = self.chat_template.iter().map(|text| ("default", text));
            let named = self
                .named_templates
                .iter()
                .map(|(name, text)| (name.as_str(), text));
            let list = default
                .chain(named)
                .map(|(name, template)| json!({"name": name, "template": template}));
            config.insert("chat_template".to_owned(), list.collect());
        }
        Value::Object(config)
    }

    fn adds_bos(&self) -> bool {
        let default = match &self.model {
            PartsModel::ByteLevelBpe { pre, .. } => {
                Pre::of(pre).is_some_and(|rule| rule.beginning == Beginning::Written)
            }
            PartsModel::SentencePiece { .. } => true,
            PartsModel::Characters => false,
        };
        self.add_bos.unwrap_or(default) && self.bos.is_some()
    }

    fn adds_eos(&self) -> bool {
        self.add_eos.unwrap_or(false) && !self.eos.is_empty()
    }

    fn added_tokens(&self) -> Vec<Value> {
        let entry = |id: usize, content: &String| {
            let strips = |ids: &[u32]| ids.iter().any(|found| *found as usize == id);
            json!({"id": id, "content": content, "single_word": false, "lstrip": strips(&self.lstrip), "rstrip": strips(&self.rstrip),
                "normalized": false, "special": self.kind(id) != USER_DEFINED})
        };
        // An empty text would match everywhere.
        let marked = self
            .tokens
            .iter()
            .enumerate()
            .filter(|(id, text)| self.is_marked(*id) && !text.is_empty());
        marked.map(|(id, text)| entry(id, text)).collect()
    }

    fn post_processor(&self) -> Value {
        let text = |id: Option<u32>| {
            id.and_then(|id| {
                self.tokens
                    .get(id as usize)
                    .map(|token| (id, token.clone()))
            })
        };
        let before = text(self.bos).filter(|_| self.adds_bos());
        let after = text(self.eos.first().copied()).filter(|_| self.adds_eos());
        if before.is_none() && after.is_none() {
            return Value::Null;
        }
        let mut single = Vec::new();
        let mut specials = Map::new();
        let mut special = |list: &mut Vec<Value>, (id, token): (u32, String)| {
            list.push(json!({"SpecialToken": {"id": token, "type_id": 0}}));
            specials.insert(
                token.clone(),
                json!({"id": token, "ids": [id], "tokens": [token]}),
            );
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
    fn sentence_piece(
        &self,
        scores: &[f32],
        add_space_prefix: bool,
        ids: &HashMap<&str, usize>,
    ) -> Result<Rules<'_>> {
        let none = vec![0.0; self.tokens.len()];
        let scores = if scores.is_empty() { &none } else { scores };
        if scores.len() != self.tokens.len() {
            return Err(bad(
                "scores",
                format!("expected {}, found {}", self.tokens.len(), scores.len()),
            ));
        }
        let unsupported = |expected: &str, found: String| {
            let refusal = Refusal::new(word!("tokenizer.model.unsupported"))
                .stage("bind")
                .subject("tokenizer.ggml.tokens");
            Err(refusal
                .expected(expected)
                .found(found)
                .hint(TOKENIZER_JSON_SERVES)
                .into())
        };
        if let Some((_, token)) = self
            .tokens
            .iter()
            .enumerate()
            .find(|(id, token)| self.is_piece(*id, token) && joins_unknown(token, ids))
        {
            return unsupported("a token for each character of a piece", token.clone());
        }
        let ranked = self.ranked(scores, ids);
        if let Some((one, other)) = ties::meeting(&ranked) {
            let text = |id: usize| self.tokens.get(id).map(String::as_str).unwrap_or_default();
            return unsupported(
                "scores that differ where pieces overlap",
                format!("equal scores of {} and {}", text(one), text(other)),
            );
        }
        let merges = ranked.into_iter().map(|entry| entry.4).collect();
        let byte_fallback = self.tokens.iter().any(|token| is_byte(token));
        let unknown = self
            .unk
            .and_then(|id| self.tokens.get(id as usize))
            .map(String::as_str);
        let mut normalizers =
            vec![json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"})];
        let mut decoders =
            vec![json!({"type": "Replace", "pattern": {"String": "▁"}, "content": " "})];
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

    /// Returns every division of a token into two others, the best score first.
    pub(super) fn ranked(&self, scores: &[f32], ids: &HashMap<&str, usize>) -> Vec<Ranked<'_>> {
        let mut ranked: Vec<Ranked<'_>> = Vec::new();
        for ((id, token), &score) in self
            .tokens
            .iter()
            .enumerate()
            .zip(scores)
            .filter(|((id, token), _)| self.is_piece(*id, token))
        {
            for (cut, _) in token.char_indices().skip(1) {
                let (left, right) = token.split_at(cut);
                if let (Some(&l), Some(&r)) = (ids.get(left), ids.get(right)) {
                    ranked.push((score, id, l, r, (left, right)));
                }
            }
        }
        ranked.sort_by(|a, b| {
            b.0.total_cmp(&a.0)
                .then(a.1.cmp(&b.1))
                .then(a.2.cmp(&b.2))
                .then(a.3.cmp(&b.3))
        });
        ranked
    }

    fn byte_level<'a>(&'a self, merges: &'a [String], pre: &str) -> Result<Rules<'a>> {
        let bytes = |use_regex: bool| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex});
        let Some(rule) = Pre::of(pre) else {
            let refusal = Refusal::new(word!("tokenizer.model.unsupported"))
                .stage("bind")
                .subject("tokenizer.ggml.pre")
                .found(pre);
            return Err(refusal
                .expected("a word of llama.cpp for a rule that is known here")
                .hint(TOKENIZER_JSON_SERVES)
                .into());
        };
        let mut parts: Vec<Value> = rule
            .splits
            .iter()
            .map(|split| pre_tokenizer(split))
            .collect();
        match parts.last_mut() {
            Some(last) if rule.splits.last() == Some(&GPT2) => *last = bytes(true),
            _ => parts.push(bytes(false)),
        }
        let pre_tokenizer = match <[Value; 1]>::try_from(parts) {
            Ok([only]) => only,
            Err(parts) => json!({"type": "Sequence", "pretokenizers": parts}),
        };
        let (mut pairs, mut known) = (
            Vec::with_capacity(merges.len()),
            HashSet::with_capacity(merges.len()),
        );
        for merge in merges {
            let (left, right) = merge
                .split_once(' ')
                .ok_or_else(|| bad("merges", format!("{merge:?} has no space")))?;
            // The first rank of a pair counts.
            if known.insert((left, right)) {
                pairs.push((left, right));
            }
        }
        let model = Model::new(self, pairs).ignoring_merges(rule.whole);
        Ok(Rules {
            normalizer: Value::Null,
            pre_tokenizer,
            decoder: bytes(true),
            model,
        })
    }
}

/// The parts of a document that turn text into tokens and back.
struct Rules<'a> {
    normalizer: Value,
    pre_tokenizer: Value,
    decoder: Value,
    model: Model<'a>,
}

/// Returns the part of a pre-tokenizer that isolates the matches of an expression.
fn pre_tokenizer(expression: &str) -> Value {
    match expression {
        DIGIT | NUMBER => json!({"type": "Digits", "individual_digits": expression == DIGIT}),
        regex => {
            json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": false})
        }
    }
}

/// Returns true if llama.cpp joins a character to a piece although it has no token of its own, which a list of merges cannot say.
fn joins_unknown(token: &str, ids: &HashMap<&str, usize>) -> bool {
    let single = |text: &str| text.chars().nth(1).is_none();
    let symbol = |text: &str| single(text) || ids.contains_key(text);
    let cuts = token
        .char_indices()
        .skip(1)
        .map(|(cut, _)| token.split_at(cut));
    let joined = cuts
        .into_iter()
        .filter(|(left, right)| symbol(left) && symbol(right));
    joined
        .into_iter()
        .any(|(left, right)| [left, right].iter().any(|part| !ids.contains_key(part)))
}
