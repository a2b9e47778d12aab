//! Converts the vocabulary of a GGUF file to the files of a Hugging Face tokenizer.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value, json};
use tokenizers::AddedToken;

use super::document::{Document, Model, added, byte_level, framed, isolated};
use super::faults::refused;
use super::parts::{
    PartsModel, Ranked, TOKENIZER_JSON_SERVES, TokenizerParts, USER_DEFINED, is_byte,
};
use super::pre::{Beginning, DIGIT, GPT2, NUMBER, Pre};
use super::stated::LITERAL;
use super::{bad, ties};
use crate::error::{Error, Result, word};

impl TokenizerParts {
    /// Converts the vocabulary to a `tokenizer.json` document.
    pub(super) fn tokenizer_json(&self) -> Result<Vec<u8>> {
        let count = self.tokens.len();
        if count == 0 {
            return Err(bad("tokens", "the vocabulary is empty"));
        }
        if !self.types.is_empty() && self.types.len() != count {
            let reason = format!("expected {count}, found {}", self.types.len());
            return Err(bad("token types", reason));
        }
        let named = [("bos", self.bos), ("pad", self.pad), ("unk", self.unk)].into_iter();
        let ends = self.eos.iter().map(|&id| ("eos", Some(id)));
        for (key, id) in named.chain(ends) {
            if let Some(id) = id.filter(|id| *id as usize >= count) {
                let reason = format!("expected an id less than {count}, found {id}");
                return Err(bad(key, reason));
            }
        }
        let mut ids = HashMap::with_capacity(count);
        for (token, id) in self.listed() {
            if ids.insert(token, id).is_some() {
                return Err(bad("tokens", format!("{token:?} occurs twice")));
            }
        }
        let document = match &self.model {
            PartsModel::ByteLevelBpe { merges, pre } => self.byte_level(merges, pre)?,
            PartsModel::SentencePiece {
                scores,
                add_space_prefix,
            } => self.sentence_piece(scores, *add_space_prefix, &ids)?,
            PartsModel::Characters => Document {
                decoder: json!({"type": "Fuse"}),
                ..Document::new(self.merging(Vec::new()))
            },
        };
        let token = |id: Option<u32>| Some((self.text(id?)?, id?));
        let before = token(self.bos).filter(|_| self.adds_bos());
        let after = token(self.eos.first().copied()).filter(|_| self.adds_eos());
        Document {
            added_tokens: self.added_tokens(),
            post_processor: framed(before, after, false),
            ..document
        }
        .bytes()
    }

    /// The model that joins pieces by these merges.
    fn merging<'a>(&'a self, merges: Vec<(&'a str, &'a str)>) -> Model<'a> {
        Model::new(self.listed().collect(), merges)
    }

    /// Converts the settings to a `tokenizer_config.json` document.
    pub(super) fn tokenizer_config(&self) -> Value {
        let mut config = Map::new();
        let mut set = |key: &str, value: Value| config.insert(key.to_owned(), value);
        set("add_bos_token", self.adds_bos().into());
        set("add_eos_token", self.adds_eos().into());
        set("clean_up_tokenization_spaces", false.into());
        set("tokenizer_class", "PreTrainedTokenizerFast".into());
        let named = [
            ("bos_token", self.bos),
            ("eos_token", self.eos.first().copied()),
            ("pad_token", self.pad),
            ("unk_token", self.unk),
        ];
        for (key, id) in named {
            if let Some(token) = id.and_then(|id| self.text(id)) {
                set(key, token.into());
            }
        }
        let is_literal =
            |id: &u32| !self.is_marked(*id as usize) && self.model != PartsModel::Characters;
        let ids = named
            .into_iter()
            .filter_map(|(_, id)| id.filter(is_literal));
        let literal: BTreeSet<&str> = ids.filter_map(|id| self.text(id)).collect();
        if !literal.is_empty() {
            set(LITERAL, json!(literal));
        }
        if !self.named_templates.is_empty() {
            let default = self.chat_template.iter().map(|text| ("default", text));
            let named = self
                .named_templates
                .iter()
                .map(|(name, text)| (name.as_str(), text));
            let entry =
                |(name, template): (&str, &String)| json!({"name": name, "template": template});
            set("chat_template", default.chain(named).map(entry).collect());
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
        // An empty text would match everywhere.
        let ids = (0..).zip(&self.tokens);
        let marked = ids.filter(|(id, text)| self.is_marked(*id as usize) && !text.is_empty());
        let entry = |(id, text): (u32, &String)| {
            let token = AddedToken::from(text, self.kind(id as usize) != USER_DEFINED)
                .normalized(false)
                .lstrip(self.lstrip.contains(&id))
                .rstrip(self.rstrip.contains(&id));
            added(id, &token)
        };
        marked.map(entry).collect()
    }

    /// Converts llama.cpp's rule, which joins the neighbours whose joint piece has the best score, to BPE: every division of a piece into
    /// two pieces is a merge, ranked by the score of the whole.
    fn sentence_piece(
        &self,
        scores: &[f32],
        add_space_prefix: bool,
        ids: &HashMap<&str, usize>,
    ) -> Result<Document<'_>> {
        let none = vec![0.0; self.tokens.len()];
        let scores = if scores.is_empty() { &none } else { scores };
        if scores.len() != self.tokens.len() {
            let reason = format!("expected {}, found {}", self.tokens.len(), scores.len());
            return Err(bad("scores", reason));
        }
        let mut tokens = self.tokens.iter().enumerate();
        if let Some((_, token)) =
            tokens.find(|(id, token)| self.is_piece(*id, token) && joins_unknown(token, ids))
        {
            let expected = "a token for each character of a piece";
            return Err(unsupported("tokens", expected, token));
        }
        let ranked = self.ranked(scores, ids);
        if let Some((one, other)) = ties::meeting(&ranked) {
            let found = format!(
                "equal scores of {} and {}",
                self.tokens[one], self.tokens[other]
            );
            return Err(unsupported(
                "tokens",
                "scores that differ where pieces overlap",
                &found,
            ));
        }
        let merges = ranked.into_iter().map(|entry| entry.4).collect();
        let byte_fallback = self.tokens.iter().any(|token| is_byte(token));
        let unknown = self.unk.and_then(|id| self.text(id));
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
        Ok(Document {
            normalizer: json!({"type": "Sequence", "normalizers": normalizers}),
            decoder: json!({"type": "Sequence", "decoders": decoders}),
            ..Document::new(self.merging(merges).falling_back(byte_fallback, unknown))
        })
    }

    /// Returns every division of a token into two others, the best score first.
    pub(super) fn ranked(&self, scores: &[f32], ids: &HashMap<&str, usize>) -> Vec<Ranked<'_>> {
        let mut ranked: Vec<Ranked<'_>> = Vec::new();
        let tokens = self.tokens.iter().enumerate().zip(scores);
        for ((id, token), &score) in tokens.filter(|((id, token), _)| self.is_piece(*id, token)) {
            for (cut, _) in token.char_indices().skip(1) {
                let (left, right) = token.split_at(cut);
                if let (Some(&l), Some(&r)) = (ids.get(left), ids.get(right)) {
                    ranked.push((score, id, l, r, (left, right)));
                }
            }
        }
        ranked.sort_by(|a, b| {
            b.0.total_cmp(&a.0)
                .then((a.1, a.2, a.3).cmp(&(b.1, b.2, b.3)))
        });
        ranked
    }

    fn byte_level<'a>(&'a self, merges: &'a [String], pre: &str) -> Result<Document<'a>> {
        let known = "a word of llama.cpp for a rule that is known here";
        let rule = Pre::of(pre).ok_or_else(|| unsupported("pre", known, pre))?;
        let mut parts: Vec<Value> = rule
            .splits
            .iter()
            .map(|split| pre_tokenizer(split))
            .collect();
        match parts.last_mut() {
            Some(last) if rule.splits.last() == Some(&GPT2) => *last = byte_level(false, true),
            _ => parts.push(byte_level(false, false)),
        }
        let pre_tokenizer = match <[Value; 1]>::try_from(parts) {
            Ok([only]) => only,
            Err(parts) => json!({"type": "Sequence", "pretokenizers": parts}),
        };
        let pair = |merge: &'a String| {
            let no_space = || bad("merges", format!("{merge:?} has no space"));
            merge.split_once(' ').ok_or_else(no_space)
        };
        let mut pairs = merges.iter().map(pair).collect::<Result<Vec<_>>>()?;
        // The first rank of a pair counts.
        let mut known = HashSet::with_capacity(pairs.len());
        pairs.retain(|pair| known.insert(*pair));
        Ok(Document {
            pre_tokenizer,
            decoder: byte_level(false, true),
            ..Document::new(self.merging(pairs).ignoring_merges(rule.whole))
        })
    }
}

/// The refusal of a key `tokenizer.ggml.*` of a GGUF file.
fn unsupported(key: &str, expected: &str, found: &str) -> Error {
    refused(word!("tokenizer.model.unsupported"), "", expected)
        .subject(&format!("tokenizer.ggml.{key}"))
        .found(found)
        .hint(TOKENIZER_JSON_SERVES)
        .into()
}

/// Returns the part of a pre-tokenizer that isolates the matches of an expression.
fn pre_tokenizer(expression: &str) -> Value {
    match expression {
        DIGIT | NUMBER => json!({"type": "Digits", "individual_digits": expression == DIGIT}),
        regex => isolated(regex),
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
    let mut joined = cuts.filter(|(left, right)| symbol(left) && symbol(right));
    joined.any(|(left, right)| !ids.contains_key(left) || !ids.contains_key(right))
}
