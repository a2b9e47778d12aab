//! Tokenized data: a stream of tokens, or examples, divided into training and validation.

use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;

use super::batches::Batches;
use super::hash::DataHash;
use super::side::Side;
use super::split::{split, trained_tokens};
use super::store::{ExampleStore, TokenStore, check_ids};
use crate::config::DataSettings;
use crate::data::chat::Account;
use crate::data::read::DataWarning;
use crate::error::{Error, Fault, Result};

/// Contents of the files.
#[derive(Debug, Clone)]
pub(super) enum Content {
    /// One stream of token ids.
    Text(TokenStore),
    /// Examples; those of the training part come first.
    Examples(ExampleStore),
}

/// Tokenized training data. The validation part is the end of a stream, separate rows, or other data ([example](crate)).
#[derive(Debug, Clone)]
pub struct Dataset {
    content: Content,
    /// Number of tokens or examples in the training part.
    train_items: usize,
    /// Other data for evaluation, instead of a part of this.
    pub(super) validation: Option<Box<Dataset>>,
    pub(super) pad: u32,
    digest: String,
    pub(super) account: Rc<Account>,
    /// Ids that end a document in a stream.
    document_ends: Vec<u32>,
    /// True if a token sees only its own document.
    document_mask: bool,
}

/// Returns the fault of a run with `document_mask` whose tokenizer has no end token.
pub fn no_document_ends() -> Fault {
    Fault::new(
        "document_mask",
        "a tokenizer that names the token at the end of a document (eos)",
        "none",
    )
}

impl Dataset {
    /// Creates a dataset from a stream of token ids.
    ///
    /// # Errors
    /// `data.tokens` for an id of 2^31 or more, `data.too-short` for fewer than 2 ids.
    pub fn from_tokens(tokens: Vec<u32>, validation_fraction: f64) -> Result<Self> {
        check_ids(&tokens, 0)?;
        let settings = DataSettings {
            validation_fraction,
            ..DataSettings::default()
        };
        let mut hash = DataHash::default();
        hash.ids(&tokens);
        let content = Content::Text(TokenStore::of(tokens));
        Self::new(content, hash.finish(), &settings, 0, Account::default())
    }

    pub(super) fn new(
        mut content: Content,
        digest: String,
        settings: &DataSettings,
        pad: u32,
        account: Account,
    ) -> Result<Self> {
        let (train_items, tokens) = match &mut content {
            Content::Text(tokens) => (trained_tokens(tokens.len(), settings), tokens.len()),
            Content::Examples(ExampleStore { examples, tokens }) => {
                (split(examples, settings), tokens.len())
            }
        };
        if tokens < 2 {
            return Err(Error::DataTooShort {
                need: 2,
                have: tokens,
            });
        }
        Ok(Self {
            content,
            train_items,
            validation: None,
            pad,
            digest,
            account: Rc::new(account),
            document_ends: Vec::new(),
            document_mask: false,
        })
    }

    /// Returns these data with others for evaluation; all of these are trained on.
    pub fn with_validation(self, validation: Dataset) -> Self {
        Self {
            validation: Some(Box::new(Self {
                train_items: 0,
                ..validation
            })),
            ..self
        }
    }

    /// Returns the data that contain the evaluated part: the separate ones, or these.
    fn evaluated(&self) -> &Self {
        self.validation.as_deref().unwrap_or(self)
    }

    /// Sets the ids that end a document in a stream, for [`Dataset::mask_documents`]; [`Dataset::from_bytes`] takes those of the tokenizer.
    pub fn with_document_ends(self, ids: &[u32]) -> Self {
        Self {
            document_ends: ids.to_vec(),
            ..self
        }
    }

    /// Sets whether a token of a stream sees only its own document. Examples are documents already, one per row.
    ///
    /// # Errors
    /// `config.invalid` for a stream whose document ends are unknown.
    #[doc(hidden)]
    pub fn mask_documents(&mut self, mask: bool) -> Result<()> {
        if mask && !self.has_examples() && self.document_ends.is_empty() {
            return Err(Error::InvalidConfig(vec![no_document_ends()]));
        }
        self.document_mask = mask;
        let mut validation = self.validation.iter_mut();
        validation.try_for_each(|validation| validation.mask_documents(mask))
    }

    /// Returns the ids that end a document, if documents are masked from each other.
    pub(super) fn document_ends(&self) -> Option<&[u32]> {
        (self.document_mask && !self.has_examples()).then_some(&self.document_ends)
    }

    pub(super) fn train(&self) -> Side<'_> {
        self.side(0, self.train_items)
    }

    pub(super) fn validation(&self) -> Side<'_> {
        match &self.validation {
            Some(validation) => validation.whole(),
            None => self.side(self.train_items, usize::MAX),
        }
    }

    pub(super) fn whole(&self) -> Side<'_> {
        self.side(0, usize::MAX)
    }

    /// Returns the tokens of a stream, or the examples, from `start` to `end`.
    fn side(&self, start: usize, end: usize) -> Side<'_> {
        match &self.content {
            Content::Text(tokens) => {
                let end = end.min(tokens.len());
                Side::Text {
                    tokens,
                    start: start.min(end),
                    end,
                }
            }
            Content::Examples(ExampleStore { examples, tokens }) => Side::Examples {
                examples: examples.slice(start..end),
                tokens,
            },
        }
    }

    /// Returns the number of tokens in the training part.
    pub fn train_tokens(&self) -> usize {
        self.train().tokens()
    }

    /// Returns the names of the files of separate data for evaluation, if there are any.
    pub(crate) fn evaluated_apart(&self) -> Option<String> {
        let files = self.validation.as_ref()?.files().iter();
        let names: Vec<&str> = files.map(|file| file.name.as_str()).collect();
        Some(names.join(", "))
    }

    /// Returns true if the evaluated data are examples.
    #[doc(hidden)]
    pub fn evaluates_examples(&self) -> bool {
        self.evaluated().has_examples()
    }

    /// Returns the number of tokens kept for evaluation.
    pub fn validation_tokens(&self) -> usize {
        self.validation().tokens()
    }

    /// Returns the number of ids in a stream; `None` for examples.
    #[doc(hidden)]
    pub fn stream_len(&self) -> Option<usize> {
        match &self.content {
            Content::Text(tokens) => Some(tokens.len()),
            Content::Examples(_) => None,
        }
    }

    /// Returns ids of a stream, cut at its end; an empty list for examples.
    ///
    /// # Errors
    /// Errors of the token storage.
    #[doc(hidden)]
    pub fn ids(&self, range: Range<usize>) -> Result<Cow<'_, [u32]>> {
        match &self.content {
            Content::Text(tokens) => tokens.read(range),
            Content::Examples(_) => Ok(Cow::Borrowed(&[])),
        }
    }

    /// Checks that a vocabulary of `size` tokens has every id.
    ///
    /// # Errors
    /// `model.token-range`, and those of the token storage.
    #[doc(hidden)]
    pub fn check_vocabulary(&self, size: usize) -> Result<()> {
        let (Content::Text(tokens) | Content::Examples(ExampleStore { tokens, .. })) =
            &self.content;
        tokens.check(size)?;
        let mut validation = self.validation.iter();
        validation.try_for_each(|validation| validation.check_vocabulary(size))
    }

    /// Returns true for examples, false for a stream.
    #[doc(hidden)]
    pub fn has_examples(&self) -> bool {
        matches!(self.content, Content::Examples(_))
    }

    /// Returns validation batches `[B, T]`: every token except the first is predicted once, from windows of `seq_len` inputs that do not
    /// overlap. The last window is filled with targets that do not count. Examples are used only if they have a target within the first
    /// `seq_len` tokens.
    #[doc(hidden)]
    pub fn validation_batches(&self, batch_size: usize, seq_len: usize) -> Batches<'_> {
        self.evaluated()
            .batches(self.validation(), [batch_size, seq_len, seq_len])
    }

    /// Returns batches of all data for `tabtune evaluate`: disjoint windows of `window` tokens in which every token except the first is
    /// predicted (so T = `window` − 1), from the start of the file up to `max_tokens`.
    #[doc(hidden)]
    pub fn evaluation_batches(
        &self,
        batch_size: usize,
        window: usize,
        max_tokens: Option<usize>,
    ) -> Batches<'_> {
        let side = match (self.whole(), max_tokens) {
            (Side::Text { .. }, Some(most)) => self.side(0, most),
            (Side::Examples { examples, .. }, Some(most)) => {
                let mut seen = 0usize;
                let fitting = examples.iter().take_while(|example| {
                    seen = seen.saturating_add(example.len());
                    seen <= most
                });
                self.side(0, fitting.count())
            }
            (side, None) => side,
        };
        let window = window.max(2);
        self.batches(side, [batch_size, window - 1, window])
    }

    /// Returns the batches of a part of these data, by their number of rows, their length, and the distance of their windows.
    fn batches<'a>(&'a self, side: Side<'a>, sizes: [usize; 3]) -> Batches<'a> {
        Batches::new(side, sizes, self.pad, self.document_ends())
    }

    /// Returns SHA-256 over the ids (u32, little endian) of a stream; for examples, over the length, ids and counted marks of each.
    #[doc(hidden)]
    pub fn digest(&self) -> String {
        self.digest.clone()
    }

    /// Returns [`Dataset::digest`] of the data that contain the evaluated part: these, or the separate ones.
    #[doc(hidden)]
    pub fn evaluated_digest(&self) -> String {
        self.evaluated().digest()
    }

    /// Returns the ids that end a turn in the chats but, by the tokenizer's files, no text: a model that learns them stops there.
    #[doc(hidden)]
    pub fn turn_ends(&self) -> &[u32] {
        &self.account.turn_ends
    }

    /// Returns the warnings about the files as they were read.
    #[doc(hidden)]
    pub fn reading_warnings(&self) -> Vec<DataWarning> {
        self.account.warnings()
    }
}
