//! Converts a tokenizer to the vocabulary that GGUF stores. GGUF names a rule instead of stating it, so the rule is found by trying.

use std::collections::HashMap;

use serde_json::Value;

use super::parts::{BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED, USER_DEFINED};
use super::stated::special_text;
use super::{PartsModel, TOKENIZER_FILE, Tokenizer, TokenizerKind, TokenizerParts, bad};
use crate::error::{Error, Refusal, Result, word};

/// Rules of byte-level vocabularies that are tried, in this order.
const PRE: [&str; 4] = ["gpt-2", "smollm", "llama-bpe", "qwen2"];

/// Maximum number of end tokens: GGUF has keys for the ends of a text, of a turn and of a message.
const MAX_ENDS: usize = 3;

/// Text in which the rules differ: both cases, contractions, runs of digits, signs, white space, and several scripts, one of them with a
/// separate accent.
const PROBE: &str = "Hello HELLO hello, it's I'll WE'VE don'T you'd! 0 11 22 1122 345 6789 111222333 1234567 2024 10000 3.14 a1b2 \
    x_y-z (a+b)*c != d/e {\"k\": [1, 2]}\n  two  three   four\n\n\n\tTab \r\n  end \u{a0} #tag @name ...??? Größe naïve e\u{301}clair \
    Привет мир Ελληνικά 你好,世界 こんにちは العربية हिन्दी 한국어 ١٢٣ \u{1f642}\u{1f642}  ";

fn refuse(expected: &str) -> Refusal {
    Refusal::new(word!("export.gguf.tokenizer")).of(TOKENIZER_FILE).expected(expected)
}

#[doc(hidden)]
impl Tokenizer {
    /// Returns true if a token has this id.
    pub fn has(&self, id: u32) -> bool {
        self.inner.id_to_token(id).is_some()
    }

    /// Adds a special token that ends a text, given as its text or as an object with it.
    pub(crate) fn add_eos_token(&mut self, token: &Value) {
        let id = special_text(token).and_then(|text| self.inner.token_to_id(&text));
        self.add_eos(id.filter(|&id| self.is_special(id)).as_slice());
    }

    /// Returns true for the id of a special token.
    pub(crate) fn is_special(&self, id: u32) -> bool {
        self.inner.get_added_vocabulary().get_added_tokens_decoder().get(&id).is_some_and(|token| token.special)
    }

    /// Returns true for the id of a token that texts have whole, special or not.
    pub(super) fn is_added(&self, id: u32) -> bool {
        self.inner.get_added_vocabulary().get_added_tokens_decoder().contains_key(&id)
    }

    /// Returns the added tokens that take the spaces around them, or that are found as whole words only: GGUF has no place for this.
    pub(crate) fn bordered_tokens(&self) -> Vec<String> {
        let added = self.inner.get_added_vocabulary().get_added_tokens_decoder().values();
        let mut bordered: Vec<String> =
            added.filter(|token| token.lstrip || token.rstrip || token.single_word).map(|token| token.content.clone()).collect();
        bordered.sort_unstable();
        bordered
    }

    /// Converts the vocabulary to the form that GGUF stores, with a token for each of the `rows` of the embedding. Its rule gives the same
    /// ids as this tokenizer on a text in which the known rules differ.
    ///
    /// # Errors
    /// `export.gguf.tokenizer` for a tokenizer that GGUF cannot express; `tokenizer.invalid`.
    pub fn to_parts(&self, rows: usize) -> Result<TokenizerParts> {
        let document = self.assets.iter().find(|(name, _)| name == TOKENIZER_FILE).map(|(_, bytes)| bytes.as_slice()).unwrap_or_default();
        let document: Value = serde_json::from_slice(document).map_err(|error| bad(TOKENIZER_FILE, error))?;
        if self.eos.len() > MAX_ENDS {
            return Err(refuse("at most 3 ids that end a text or a turn").found(self.eos.len()).into());
        }
        let (tokens, types) = self.tokens(&document, rows)?;
        let unk = self.specials.iter().find(|(key, _)| key == "unk_token").and_then(|(_, text)| self.inner.token_to_id(text));
        let parts = |model: PartsModel| TokenizerParts {
            model,
            tokens: tokens.clone(),
            types: types.clone(),
            bos: self.bos.first().copied(),
            eos: self.eos.clone(),
            pad: self.pad,
            unk,
            add_bos: Some(!self.frame.before.is_empty()),
            add_eos: Some(!self.frame.after.is_empty()),
            chat_template: self.templates.main.clone(),
            named_templates: self.templates.named.clone(),
        };
        match self.kind {
            TokenizerKind::Characters => return Ok(parts(PartsModel::Characters)),
            TokenizerKind::BytePairEncoding => {}
            _ => return Err(refuse("byte pair encoding, or characters").into()),
        }
        let expected = self.encode_prompt(PROBE)?;
        for model in candidates(&document, &tokens)? {
            let parts = parts(model);
            let ids = Tokenizer::from_parts(parts.clone()).and_then(|built| built.encode_prompt(PROBE));
            if ids.is_ok_and(|ids| ids == expected) {
                return Ok(parts);
            }
        }
        Err(refuse("a rule that llama.cpp has: gpt-2, smollm, llama-bpe, qwen2 or SentencePiece").into())
    }

    /// Returns the text and the type of each row.
    fn tokens(&self, document: &Value, rows: usize) -> Result<(Vec<String>, Vec<i32>)> {
        let mut tokens: Vec<String> = (0..rows).map(|id| format!("[PAD{id}]")).collect();
        let mut types = vec![UNUSED; rows];
        let byte_fallback = document.pointer("/model/byte_fallback").and_then(Value::as_bool) == Some(true);
        let unknown = document.pointer("/model/unk_token").and_then(Value::as_str);
        let beyond = |id: u32| Error::from(refuse("an id for each token").found(id));
        let absent = |id: u32| id as usize >= self.vocab_size && self.unusual.implied.contains_key(&id);
        for (text, id) in self.inner.get_vocab(true).into_iter().filter(|(_, id)| !absent(*id)) {
            let place = tokens.get_mut(id as usize).zip(types.get_mut(id as usize));
            let (token, kind) = place.ok_or_else(|| beyond(id))?;
            *kind = if unknown == Some(text.as_str()) {
                UNKNOWN
            } else if byte_fallback && is_byte(&text) {
                BYTE
            } else {
                NORMAL
            };
            *token = text;
        }
        for added in document["added_tokens"].as_array().into_iter().flatten() {
            // The vocabulary decides over the id that is stated here.
            let id = added["content"].as_str().and_then(|text| self.inner.token_to_id(text));
            let kind = id.and_then(|id| types.get_mut(id as usize));
            if let Some(kind) = kind.filter(|kind| **kind != UNKNOWN) {
                *kind = if added["special"] == Value::Bool(true) { CONTROL } else { USER_DEFINED };
            }
        }
        let mut sorted: Vec<&String> = tokens.iter().collect();
        sorted.sort_unstable();
        let twice = sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].clone());
        match twice {
            Some(twice) => Err(refuse("each token once").found(twice).into()),
            None => Ok((tokens, types)),
        }
    }
}

/// Returns true if a text represents one byte: `<0x0A>`.
fn is_byte(text: &str) -> bool {
    let digits = text.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
    digits.is_some_and(|digits| digits.len() == 2 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'A'..=b'F')))
}

/// Returns the models that the document may have.
fn candidates(document: &Value, tokens: &[String]) -> Result<Vec<PartsModel>> {
    let merges = merges(document).ok_or_else(|| bad(TOKENIZER_FILE, "merges that are no pairs"))?;
    let byte_level = ["pre_tokenizer", "decoder"].iter().any(|part| document[*part].to_string().contains("\"ByteLevel\""));
    if byte_level {
        let merges: Vec<String> = merges.iter().map(|(left, right)| format!("{left} {right}")).collect();
        return Ok(PRE.iter().map(|pre| PartsModel::ByteLevelBpe { merges: merges.clone(), pre: (*pre).to_string() }).collect());
    }
    // The earlier a merge, the better the score of its piece; a piece without a merge has the worst.
    let mut ranks = HashMap::new();
    for (rank, (left, right)) in merges.iter().enumerate() {
        ranks.entry(format!("{left}{right}")).or_insert(rank);
    }
    let scores: Vec<f32> = tokens.iter().map(|token| -(ranks.get(token).copied().unwrap_or(merges.len()) as f32)).collect();
    Ok([true, false].map(|add_space_prefix| PartsModel::SentencePiece { scores: scores.clone(), add_space_prefix }).into())
}

/// Returns the merges, best first, each of which is a pair or a text with a space between its parts.
fn merges(document: &Value) -> Option<Vec<(&str, &str)>> {
    document.pointer("/model/merges")?.as_array()?.iter().map(merge).collect()
}

fn merge(value: &Value) -> Option<(&str, &str)> {
    match value {
        Value::String(text) => text.split_once(' '),
        Value::Array(pair) => match pair.as_slice() {
            [left, right] => Some((left.as_str()?, right.as_str()?)),
            _ => None,
        },
        _ => None,
    }
}
