//! Converts a tokenizer to the vocabulary that GGUF stores. GGUF names a rule instead of stating it.

use serde_json::Value;
use tokenizers::AddedToken;

use super::coverage::has_step;
use super::llama_cpp::MAX_ENDS;
use super::parts::{BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED, USER_DEFINED, is_byte};
use super::stated::special_text;
use super::structure::{Structure, refuse};
use super::{PartsModel, TOKENIZER_FILE, Tokenizer, TokenizerKind, TokenizerParts, bad};
use crate::error::Result;

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
        self.added_token(id).is_some_and(|token| token.special)
    }

    /// The tokens that texts have whole, special or not, with their ids, in any order.
    pub(super) fn added(&self) -> impl Iterator<Item = (u32, &AddedToken)> {
        let added = self.inner.get_added_vocabulary().get_added_tokens_decoder();
        added.iter().map(|(id, token)| (*id, token))
    }

    /// The token with this id, if texts have it whole.
    pub(super) fn added_token(&self, id: u32) -> Option<&AddedToken> {
        self.inner
            .get_added_vocabulary()
            .get_added_tokens_decoder()
            .get(&id)
    }

    /// Returns the added tokens that take the spaces around them, or that are found as whole words only: GGUF has no place for this.
    pub(crate) fn bordered_tokens(&self) -> Vec<String> {
        let is_bordered = |token: &&AddedToken| token.lstrip || token.rstrip || token.single_word;
        let bordered = self.added().map(|(_, token)| token).filter(is_bordered);
        let mut bordered: Vec<String> = bordered.map(|token| token.content.clone()).collect();
        bordered.sort_unstable();
        bordered
    }

    /// Returns true if a text is composed (NFC) before it is split, as llama.cpp never does.
    pub(crate) fn composes(&self) -> bool {
        has_step(self.inner.get_normalizer(), "NFC")
    }

    /// Converts the vocabulary to the form that GGUF stores, with a token for each of the `rows` of the embedding. Its rule is that of the
    /// document, part by part.
    ///
    /// # Errors
    /// `export.gguf.tokenizer` for a tokenizer that GGUF cannot express; `tokenizer.invalid`.
    pub fn to_parts(&self, rows: usize) -> Result<TokenizerParts> {
        let document = self.assets.iter().find(|(name, _)| name == TOKENIZER_FILE);
        let document = document.map_or(&[][..], |(_, bytes)| bytes);
        let document: Value =
            serde_json::from_slice(document).map_err(|error| bad(TOKENIZER_FILE, error))?;
        let (tokens, types) = self.tokens(&document, rows)?;
        let (prefix, suffix) = match (self.prompt_prefix(), self.prompt_suffix()) {
            (before, after) if before.len() <= 1 && after.len() <= 1 => {
                (before.first(), after.first())
            }
            around => {
                return Err(refuse("at most one token before and after a text")
                    .subject("post_processor")
                    .found(format!("{around:?}"))
                    .into());
            }
        };
        let first = self.eos.first();
        if let Some(other) = suffix.filter(|id| first.is_some_and(|first| first != *id)) {
            let found = tokens.get(*other as usize).map_or("", String::as_str);
            let refusal = refuse("the first of the tokens that end a text").found(found);
            return Err(refusal.subject("post_processor").into());
        }
        let unk = self.specials.iter().find(|(key, _)| key == "unk_token");
        let mut parts = TokenizerParts {
            model: PartsModel::Characters,
            tokens,
            types,
            bos: prefix.or(self.bos.first()).copied(),
            eos: match first {
                Some(_) => self.eos.clone(),
                None => Vec::from_iter(suffix.copied()),
            },
            pad: self.pad,
            unk: unk.and_then(|(_, text)| self.inner.token_to_id(text)),
            add_bos: Some(prefix.is_some()),
            add_eos: Some(suffix.is_some()),
            chat_template: self.chat_template().map(str::to_owned),
            named_templates: self.named_templates().to_vec(),
            lstrip: Vec::new(),
            rstrip: Vec::new(),
        };
        if parts.named_ends().len() > MAX_ENDS {
            return Err(refuse("at most 3 ids that end a text or a turn")
                .found(self.eos.len())
                .into());
        }
        parts.model = match self.kind {
            TokenizerKind::Characters => return Ok(parts),
            TokenizerKind::BytePairEncoding => {
                let normalizer = serde_json::to_value(self.inner.get_normalizer())
                    .map_err(|error| bad("normalizer", error))?;
                let pre_tokenizer = serde_json::to_value(self.inner.get_pre_tokenizer())
                    .map_err(|error| bad("pre_tokenizer", error))?;
                let added = self.added();
                let added = added.map(|(_, token)| (token.content.clone(), token.normalized));
                Structure {
                    document: &document,
                    applied: [normalizer, pre_tokenizer],
                    added: added.collect(),
                    splits_special: self.inner.get_encode_special_tokens(),
                }
                .model(&parts)?
            }
            _ => return Err(refuse("byte pair encoding, or characters").into()),
        };
        Ok(parts)
    }

    /// Returns the text and the type of each row.
    fn tokens(&self, document: &Value, rows: usize) -> Result<(Vec<String>, Vec<i32>)> {
        let mut tokens: Vec<String> = (0..rows).map(|id| format!("[PAD{id}]")).collect();
        let mut types = vec![UNUSED; rows];
        let model = &document["model"];
        let absent =
            |id: u32| id as usize >= self.vocab_size && self.unusual.implied.contains_key(&id);
        let vocab = self.inner.get_vocab(true).into_iter();
        for (text, id) in vocab.filter(|(_, id)| !absent(*id)) {
            let place = tokens.get_mut(id as usize).zip(types.get_mut(id as usize));
            let beyond = || refuse("an id for each token").found(id);
            let (token, kind) = place.ok_or_else(beyond)?;
            *kind = if model["unk_token"] == *text {
                UNKNOWN
            } else if model["byte_fallback"] == true && is_byte(&text) {
                BYTE
            } else {
                NORMAL
            };
            *token = text;
        }
        for (id, added) in self.added() {
            let kind = types.get_mut(id as usize).filter(|kind| **kind != UNKNOWN);
            if let Some(kind) = kind {
                *kind = if added.special { CONTROL } else { USER_DEFINED };
            }
        }
        let mut sorted: Vec<&String> = tokens.iter().collect();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(twice) => Err(refuse("each token once").found(twice[0]).into()),
            None => Ok((tokens, types)),
        }
    }
}
