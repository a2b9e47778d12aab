//! Characters for which a vocabulary has no token.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use tokenizers::models::bpe::BPE;
use tokenizers::{Model, ModelWrapper, OffsetReferential, OffsetType, PreTokenizer};

use super::{TOKENIZER_FILE, Tokenizer, unencodable, unread};
use crate::error::Result;

/// The token that represents unknown characters in a model whose type does not make it public.
#[derive(Deserialize)]
struct Document {
    model: UnknownId,
}

#[derive(Deserialize)]
struct UnknownId {
    unk_id: Option<u32>,
}

/// Treatment of characters without a token.
#[derive(Debug, Clone)]
pub(super) struct Coverage {
    /// The token that they become.
    pub unknown: Option<u32>,
    /// True if tokens are written in the alphabet of bytes.
    pub byte_level: bool,
    /// True if they would vanish: the model has neither an unknown token nor a token for each byte.
    lossy: bool,
}

impl Coverage {
    pub fn of(
        inner: &tokenizers::Tokenizer,
        document: &[u8],
        vocab: &HashMap<String, u32>,
    ) -> Result<Self> {
        let byte_level = has_step(inner.get_pre_tokenizer(), "ByteLevel")
            || has_step(inner.get_normalizer(), "ByteLevel");
        let id = |token: &str| vocab.get(token).copied();
        let unknown = match inner.get_model() {
            ModelWrapper::BPE(model) => model.get_unk_token().as_deref().and_then(id),
            ModelWrapper::WordPiece(model) => id(&model.unk_token),
            ModelWrapper::WordLevel(model) => id(&model.unk_token),
            ModelWrapper::Unigram(_) => {
                let Document { model } = serde_json::from_slice(document)
                    .map_err(|error| unread(TOKENIZER_FILE, document, error))?;
                model.unk_id
            }
        };
        let lossy = match inner.get_model() {
            ModelWrapper::BPE(model) => {
                let has_all = |token: fn(u8) -> String| {
                    (0..=u8::MAX).all(|byte| vocab.contains_key(&token(byte)))
                };
                let affixed =
                    model.continuing_subword_prefix.is_some() || model.end_of_word_suffix.is_some();
                let letters = byte_level && !affixed && has_all(|byte| letter(byte).into());
                let bytes = model.byte_fallback && has_all(byte_token);
                model.get_unk_token().is_none() && !letters && !bytes
            }
            _ => false,
        };
        Ok(Self {
            unknown,
            byte_level,
            lossy,
        })
    }
}

/// Returns true if a part of a tokenizer is, or has, a step of this type.
pub(super) fn has_step(part: Option<&impl Serialize>, name: &str) -> bool {
    serde_json::to_string(&part).is_ok_and(|json| json.contains(&format!("\"{name}\"")))
}

/// The character by which byte-level vocabularies write a byte: itself if it can be seen in Latin-1, or else one from U+0100 on.
pub(super) fn letter(byte: u8) -> char {
    let beyond = match byte {
        0..=0x20 => u32::from(byte),
        0x7f..=0xa0 => u32::from(byte) - 0x7f + 33,
        0xad => 67,
        _ => return char::from(byte),
    };
    char::from_u32(256 + beyond).unwrap_or_default()
}

/// Returns the token of a byte in vocabularies that fall back to bytes.
pub(super) fn byte_token(byte: u8) -> String {
    format!("<{byte:#04X}>")
}

/// Returns the byte of a token such as `<0x0A>`.
pub(super) fn byte_of(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>');
    u8::from_str_radix(digits.filter(|digits| digits.len() == 2)?, 16).ok()
}

impl Tokenizer {
    /// Returns true for a token that ends a text or a turn, and for a special one that neither represents unknown characters nor begins
    /// or pads a text.
    pub(crate) fn may_end(&self, id: u32) -> bool {
        let other =
            self.coverage.unknown == Some(id) || self.pad() == Some(id) || self.bos().contains(&id);
        self.eos().contains(&id) || self.turn_end() == Some(id) || self.is_special(id) && !other
    }

    /// Refuses a text with a character for which the vocabulary has no token at all: the model would learn or read the text without it, and
    /// nothing would stand in its place.
    pub(super) fn check_characters(&self, text: &str) -> Result<()> {
        let ModelWrapper::BPE(model) = self.inner.get_model() else {
            return Ok(());
        };
        if !self.coverage.lossy {
            return Ok(());
        }
        let (added, normalizer) = (
            self.inner.get_added_vocabulary(),
            self.inner.get_normalizer(),
        );
        let mut pieces = added.extract_and_normalize(normalizer, text);
        if let Some(rule) = self.inner.get_pre_tokenizer() {
            rule.pre_tokenize(&mut pieces).map_err(unencodable)?;
        }
        let has = |token: &str| model.token_to_id(token).is_some();
        for (piece, (start, end), tokens) in
            pieces.get_splits(OffsetReferential::Original, OffsetType::Byte)
        {
            if tokens.is_some() || model.ignore_merges && has(piece) {
                continue;
            }
            if let Some(lost) = lost(model, piece) {
                let lacks_byte = |c: &char| {
                    let mut bytes = c.to_string().into_bytes().into_iter();
                    bytes.any(|byte| !has(&letter(byte).to_string()))
                };
                let written = text.get(start..end).filter(|_| self.coverage.byte_level);
                let lost = written
                    .and_then(|text| text.chars().find(lacks_byte))
                    .unwrap_or(lost);
                return Err(unencodable(format!(
                    "the vocabulary has no token for the character {lost:?} and none for unknown characters: it would be lost"
                )));
            }
        }
        Ok(())
    }

    /// Calls `found` with each character or word of a text that becomes the token `unknown`, or with `None` where the text has this token
    /// itself.
    pub(super) fn each_unknown(
        &self,
        text: &str,
        unknown: u32,
        mut found: impl FnMut(Option<&str>),
    ) -> Result<()> {
        let encoding = self.inner.encode(text, false).map_err(unencodable)?;
        let token = self.inner.id_to_token(unknown).unwrap_or_default();
        let mut before = None;
        for (id, range) in encoding.get_ids().iter().zip(encoding.get_offsets()) {
            // The bytes of one character, each of which may be unknown, have the offsets of the character.
            if *id != unknown || before.replace(range) == Some(range) {
                continue;
            }
            let piece = text.get(range.0..range.1).unwrap_or_default();
            let lacks = |c: &char| self.lacks(*c);
            let is_visible = |c: &char| !c.is_whitespace();
            let mut each = |which: &dyn Fn(&char) -> bool| {
                let chars = piece.chars().filter(which);
                chars.for_each(|c| found(Some(c.encode_utf8(&mut [0; 4]))));
            };
            match self.inner.get_model() {
                _ if piece.trim() == token => found(None),
                ModelWrapper::WordPiece(_) if piece.chars().any(|c| lacks(&c)) => each(&lacks),
                ModelWrapper::WordPiece(_) | ModelWrapper::WordLevel(_) => found(Some(piece)),
                _ if piece.is_empty() => found(Some(" ")),
                _ if piece.trim().is_empty() => found(Some(piece)),
                _ => each(&is_visible),
            }
        }
        Ok(())
    }

    /// Returns true if a vocabulary of parts of words has no token of this character alone.
    fn lacks(&self, character: char) -> bool {
        let absent = |token: &str| self.inner.token_to_id(token).is_none();
        let forms = [character.to_string(), character.to_lowercase().to_string()];
        forms
            .iter()
            .all(|form| absent(form) && absent(&format!("##{form}")))
    }
}

/// The first character of a piece that has no token.
fn lost(model: &BPE, piece: &str) -> Option<char> {
    let has = |token: &str| model.token_to_id(token).is_some();
    let last = piece.char_indices().next_back().map_or(0, |(at, _)| at);
    let is_lost = |&(at, c): &(usize, char)| {
        let prefix = model
            .continuing_subword_prefix
            .as_deref()
            .filter(|_| at > 0);
        let suffix = model.end_of_word_suffix.as_deref().filter(|_| at == last);
        let token = format!(
            "{}{c}{}",
            prefix.unwrap_or_default(),
            suffix.unwrap_or_default()
        );
        let has_bytes = || token.bytes().all(|byte| has(&byte_token(byte)));
        !(has(&token) || model.byte_fallback && has_bytes())
    };
    piece.char_indices().find(is_lost).map(|(_, c)| c)
}
