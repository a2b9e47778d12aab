//! Trains the vocabulary of a new model: byte-level byte pair encoding.

use std::collections::{BTreeSet, HashSet};

use serde::Deserialize;
use tokenizers::decoders::byte_level::ByteLevel as Decoder;
use tokenizers::models::bpe::{BPE, BpeTrainer as Merger};
use tokenizers::parallelism::set_parallelism;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{AddedToken, Tokenizer as Inner};

use super::class::END;
use super::coverage::letter;
use super::words::Words;
use super::{TOKENIZER_FILE, Tokenizer, bad, unencodable};
use crate::error::{Error, Fault, Result};

/// Number of bytes that each have a token.
const BYTES: usize = 1 << 8;
/// Maximum number of bytes of all texts: the library counts pairs with 31 bits.
const MOST_BYTES: u64 = i32::MAX as u64;
/// Maximum number of tokens.
const MOST_TOKENS: usize = 1 << 20;

/// Settings of [`BpeTrainer`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BpeSettings {
    /// Number of tokens, with the special ones and those of the 256 bytes. A small text may yield fewer.
    pub vocab_size: usize,
    /// Minimum number of times that a pair must occur to become a token.
    pub min_frequency: u64,
    /// Tokens that texts have whole; they have the first ids. `<|endoftext|>` ends a text, if it is among them.
    pub special_tokens: Vec<String>,
}

impl Default for BpeSettings {
    fn default() -> Self {
        Self {
            vocab_size: 8192,
            min_frequency: 2,
            special_tokens: vec![END.to_owned()],
        }
    }
}

impl BpeSettings {
    fn faults(&self) -> Vec<Fault> {
        let (special, mut seen) = (&self.special_tokens, HashSet::new());
        let (least, mut faults) = (BYTES + special.len(), Vec::new());
        if !(least..=MOST_TOKENS).contains(&self.vocab_size) {
            let rule = format!("from {least}, the bytes and the special tokens, to {MOST_TOKENS}");
            faults.push(Fault::new("vocab_size", rule, self.vocab_size));
        }
        let letters = alphabet();
        let is_letter = |token: &str| token.parse().is_ok_and(|c| letters.contains(&c));
        for token in special {
            if token.is_empty() || is_letter(token) || !seen.insert(token) {
                let rule = "different texts of several characters";
                faults.push(Fault::new("special_tokens", rule, format!("{token:?}")));
            }
        }
        faults
    }
}

/// The letters by which the tokens of single bytes are written.
fn alphabet() -> BTreeSet<char> {
    (0..=u8::MAX).map(letter).collect()
}

/// Learns byte-level byte pair encoding from texts. Words are divided as GPT-2 does; the merges are those of the Python package `tokenizers`
/// with the same settings.
///
/// ```
/// use tabtune::tokenizer::{BpeSettings, BpeTrainer};
///
/// let settings = BpeSettings { vocab_size: 260, ..BpeSettings::default() };
/// let mut trainer = BpeTrainer::new(settings)?;
/// trainer.add("the cat sat on the mat");
/// let tokenizer = trainer.train()?;
/// assert_eq!(tokenizer.vocab_size(), 260);
/// // <|endoftext|> has the first id, and "the" became one token.
/// assert_eq!(tokenizer.eos(), [0]);
/// assert_eq!(tokenizer.encode("the")?.len(), 1);
/// # Ok::<(), tabtune::Error>(())
/// ```
#[derive(Debug)]
pub struct BpeTrainer {
    settings: BpeSettings,
    words: Words,
}

impl BpeTrainer {
    /// Creates a trainer that has seen no text.
    ///
    /// # Errors
    /// `config.invalid` with all settings that cannot be used.
    pub fn new(settings: BpeSettings) -> Result<Self> {
        let faults = settings.faults();
        if !faults.is_empty() {
            return Err(Error::InvalidConfig(faults));
        }
        Ok(Self {
            settings,
            words: Words::new()?,
        })
    }

    /// Counts the words of a text.
    pub fn add(&mut self, text: &str) {
        self.push(text);
        self.end();
    }

    /// Counts the words of a piece of a text, of which more may follow.
    #[doc(hidden)]
    pub fn push(&mut self, piece: &str) {
        self.words.push(piece);
    }

    /// Ends a text that was given in pieces.
    #[doc(hidden)]
    pub fn end(&mut self) {
        self.words.end();
    }

    /// Returns the number of bytes of the texts so far.
    #[doc(hidden)]
    pub fn bytes(&self) -> u64 {
        self.words.bytes
    }

    /// Merges the most frequent pairs until the vocabulary has its size.
    ///
    /// # Errors
    /// `data.too-short` without any text; `tokenizer.text` for more than 2^31 − 1 bytes of it.
    pub fn train(mut self) -> Result<Tokenizer> {
        self.end();
        let Self { settings, words } = self;
        if words.bytes == 0 {
            return Err(Error::DataTooShort { need: 1, have: 0 });
        }
        if words.bytes > MOST_BYTES {
            let found = words.bytes;
            let reason = format!(
                "a vocabulary is learned from at most {MOST_BYTES} bytes of text, found {found}: give a part of it"
            );
            return Err(unencodable(reason));
        }
        let special = settings.special_tokens.iter();
        let special: Vec<AddedToken> = special.map(|text| AddedToken::from(text, true)).collect();
        // The library reserves memory for all tokens, and each merge leaves the distinct words with fewer parts.
        let most = BYTES + special.len() + 2 * words.distinct_bytes();
        // One thread, as everywhere in this crate: browsers have no others, and the sums are the same.
        set_parallelism(false);
        let merger = Merger::builder()
            .vocab_size(settings.vocab_size.min(most))
            .min_frequency(settings.min_frequency)
            .special_tokens(special.clone())
            .initial_alphabet(alphabet().into_iter().collect())
            .show_progress(false)
            .build();
        let counts = words.counts();
        let counts = counts.map(|(word, count)| (word.into(), count)).collect();
        let mut model = BPE::default();
        merger
            .do_train(&counts, &mut model)
            .map_err(|error| bad("merges", error))?;
        let mut inner = Inner::new(model);
        inner
            .with_pre_tokenizer(Some(ByteLevel::new(false, true, true)))
            .with_decoder(Some(Decoder::default()))
            .add_special_tokens(special)
            .map_err(|error| bad(TOKENIZER_FILE, error))?;
        let document = inner.to_string(true);
        let document = document.map_err(|error| bad(TOKENIZER_FILE, error))?;
        Tokenizer::for_new_model(document.into_bytes())
    }
}
