//! Characters for which a vocabulary has no token.

use std::collections::HashMap;

use serde::Deserialize;
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
        let named = |part: serde_json::Result<String>| {
            part.is_ok_and(|json| json.contains("\"ByteLevel\""))
        };
        let byte_level = named(serde_json::to_string(&inner.get_pre_tokenizer()))
            || named(serde_json::to_string(&inner.get_normalizer()));
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
                let letters = byte_level
                    && !is_affixed(model)
                    && (0..=u8::MAX).all(|byte| id(&letter(byte).to_string()).is_some());
                let bytes = model.byte_fallback
                    && (0..=u8::MAX).all(|byte| id(&byte_token(byte)).is_some());
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

fn is_affixed(model: &BPE) -> bool {
    model.continuing_subword_prefix.is_some() || model.end_of_word_suffix.is_some()
}

/// Returns the character by which byte-level vocabularies write a byte: itself if it can be seen in Latin-1, or else one from U+0100 on.
fn letter(byte: u8) -> char {
    let beyond = match byte {
        0..=0x20 => u32::from(byte),
        0x7f..=0xa0 => u32::from(byte) - 0x7f + 33,
        0xad => 67,
        _ => return char::from(byte),
    };
    char::from_u32(256 + beyond).unwrap_or_default()
}

/// Returns the token of a byte in vocabularies that fall back to bytes.
fn byte_token(byte: u8) -> String {
    format!("<{byte:#04X}>")
}

/// Returns the byte of a token such as `<0x0A>`.
pub(super) fn byte_of(token: &str) -> Option<u8> {
    let digits = token
        .strip_prefix("<0x")?
        .strip_suffix('>')
        .filter(|digits| digits.len() == 2)?;
    u8::from_str_radix(digits, 16).ok()
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
        let mut pieces = self
            .inner
            .get_added_vocabulary()
            .extract_and_normalize(self.inner.get_normalizer(), text);
        if let Some(rule) = self.inner.get_pre_tokenizer() {
            rule.pre_tokenize(&mut pieces).map_err(unencodable)?;
        }
        for (piece, (start, end), tokens) in
            pieces.get_splits(OffsetReferential::Original, OffsetType::Byte)
        {
            if tokens.is_some() || model.ignore_merges && model.token_to_id(piece).is_some() {
                continue;
            }
            if let Some(lost) = self.lost(model, piece) {
                let whole = |c: &char| {
                    c.to_string()
                        .bytes()
                        .any(|byte| model.token_to_id(&letter(byte).to_string()).is_none())
                };
                let written = text
                    .get(start..end)
                    .and_then(|original| original.chars().find(whole));
                let lost = written.filter(|_| self.coverage.byte_level).unwrap_or(lost);
                return Err(unencodable(format!(
                    "the vocabulary has no token for the character {lost:?} and none for unknown characters: it would be lost"
                )));
            }
        }
        Ok(())
    }

    /// Returns the first character of a piece that has no token.
    fn lost(&self, model: &BPE, piece: &str) -> Option<char> {
        let has = |token: &str| model.token_to_id(token).is_some();
        let last = piece.char_indices().next_back().map_or(0, |(at, _)| at);
        let is_lost = |&(at, c): &(usize, char)| {
            let prefix = model
                .continuing_subword_prefix
                .as_deref()
                .filter(|_| at > 0)
                .unwrap_or_default();
            let suffix = model
                .end_of_word_suffix
                .as_deref()
                .filter(|_| at == last)
                .unwrap_or_default();
            let token = format!("{prefix}{c}{suffix}");
            !(has(&token)
                || model.byte_fallback && token.bytes().all(|byte| has(&byte_token(byte))))
        };
        piece.char_indices().find(is_lost).map(|(_, c)| c)
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
            match self.inner.get_model() {
                _ if piece.trim() == token => found(None),
                ModelWrapper::WordPiece(_) if piece.chars().any(|c| lacks(&c)) => {
                    piece
                        .chars()
                        .filter(lacks)
                        .for_each(|c| found(Some(c.encode_utf8(&mut [0; 4]))));
                }
                ModelWrapper::WordPiece(_) | ModelWrapper::WordLevel(_) => found(Some(piece)),
                _ if piece.trim().is_empty() => {
                    found(Some(if piece.is_empty() { " " } else { piece }))
                }
                _ => piece
                    .chars()
                    .filter(|c| !c.is_whitespace())
                    .for_each(|c| found(Some(c.encode_utf8(&mut [0; 4])))),
            }
        }
        Ok(())
    }

    /// Returns true if a vocabulary of parts of words has no token of this character alone.
    fn lacks(&self, character: char) -> bool {
        let forms = [character.to_string(), character.to_lowercase().to_string()];
        forms.iter().all(|form| {
            [form.clone(), format!("##{form}")]
                .iter()
                .all(|token| self.inner.token_to_id(token).is_none())
        })
    }
}
