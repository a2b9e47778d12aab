//! A text as one stream of tokens, or a JSONL file as a list of examples, split into training and validation.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::batch::Batches;
use super::example::Example;
use super::files::{self, DataFile};
use super::read::{self, Content};
use super::report::{Account, DataWarning, FileSummary};
use crate::config::{DataSettings, Form};
use crate::error::{Error, Fault, Result};
use crate::tokenizer::Tokenizer;

/// One side of the split.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part<'a> {
    Text(&'a [u32]),
    Examples(&'a [Example]),
}

/// Tokenized training data. The validation part is its end, or data of its own.
#[derive(Debug, Clone)]
pub struct Dataset {
    content: Content,
    /// Tokens or examples that are trained on.
    train_items: usize,
    /// Data that are evaluated in place of the end.
    validation: Option<Box<Dataset>>,
    pad: u32,
    digest: String,
    account: Arc<Account>,
    /// Ids that end a document of a text.
    document_ends: Vec<u32>,
    /// Whether a token sees only its own document.
    document_mask: bool,
}

/// The fault of a run with `document_mask` whose tokenizer has no end token.
pub fn no_document_ends() -> Fault {
    Fault::new("document_mask", "a tokenizer that names the token at the end of a document (eos)", "none")
}

impl Dataset {
    /// Reads files by the settings of a run. Token ids need no tokenizer; of other forms its refusal is given back.
    ///
    /// # Errors
    /// `data.*`, each with its file; of rows that cannot be used all are found, and the first hundred are listed with their lines.
    pub fn read<E: From<Error>>(
        files: &[DataFile<'_>],
        tokenizer: std::result::Result<&Tokenizer, E>,
        settings: &DataSettings,
    ) -> std::result::Result<Self, E> {
        if files::are_tokens(files, settings) {
            let bytes: Vec<u8> = files.iter().flat_map(|file| file.bytes).copied().collect();
            let mut account = Account::default();
            account.tokens(files);
            let ends = tokenizer.map_or(&[][..], Tokenizer::eos);
            let data = Self::from_token_bytes(&bytes, settings.validation_fraction)?;
            return Ok(Self { account: Arc::new(account), ..data }.with_document_ends(ends));
        }
        let tokenizer = tokenizer?;
        // A date that is none is told even if no template asks for it.
        Account::default().date(settings)?;
        let pad = tokenizer.pad().or(tokenizer.eos().first().copied()).unwrap_or(0);
        let mut account = Account::default();
        let content = read::read(files, tokenizer, settings, &mut account)?;
        account.ends(tokenizer);
        let data = Self::new(content, settings.validation_fraction, pad, account)?;
        Ok(data.with_document_ends(tokenizer.eos()))
    }

    /// Reads one file of a form. `validation_fraction` (0 ≤ f < 1) of its tokens or rows, from the end, are kept for evaluation.
    ///
    /// # Errors
    /// As [`Dataset::read`].
    pub fn from_bytes(bytes: &[u8], form: Form, tokenizer: &Tokenizer, validation_fraction: f64) -> Result<Self> {
        let settings = DataSettings { form: Some(form), validation_fraction, ..DataSettings::default() };
        Self::read(&[DataFile { name: form.name(), bytes }], Ok::<_, Error>(tokenizer), &settings)
    }

    /// The text that files have to learn from, for a vocabulary of its characters.
    ///
    /// # Errors
    /// `data.*` of files that cannot be read.
    pub fn texts(files: &[DataFile<'_>], settings: &DataSettings) -> Result<String> {
        files::texts(files, settings)
    }

    /// The files by themselves, without a tokenizer.
    ///
    /// # Errors
    /// `data.*` of files that cannot be read.
    pub fn summaries(files: &[DataFile<'_>], settings: &DataSettings) -> Result<Vec<FileSummary>> {
        files::summaries(files, settings)
    }

    /// Token ids as u32, little endian.
    pub fn from_token_bytes(bytes: &[u8], validation_fraction: f64) -> Result<Self> {
        let (words, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            let reason = format!("expected a multiple of 4 bytes, found {}", bytes.len());
            return Err(Error::DataTokens { reason });
        }
        let tokens: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        // Batches hold ids as i32, where a negative target does not count.
        if let Some(position) = tokens.iter().position(|&id| i32::try_from(id).is_err()) {
            let reason = format!("expected ids below 2^31, found {} at {position}", tokens[position]);
            return Err(Error::DataTokens { reason });
        }
        Self::from_tokens(tokens, validation_fraction)
    }

    /// A stream of token ids.
    pub fn from_tokens(tokens: Vec<u32>, validation_fraction: f64) -> Result<Self> {
        Self::new(Content::Text(tokens), validation_fraction, 0, Account::default())
    }

    fn new(content: Content, validation_fraction: f64, pad: u32, account: Account) -> Result<Self> {
        let share = 1.0 - validation_fraction.clamp(0.0, 1.0);
        let (train_items, tokens) = match &content {
            Content::Text(tokens) => ((tokens.len() as f64 * share) as usize, tokens.len()),
            Content::Examples(examples) => {
                // The examples of one row stay together.
                let rows = examples.last().map_or(0, |last| last.row as usize + 1);
                let train_rows = (rows as f64 * share) as usize;
                (examples.partition_point(|example| (example.row as usize) < train_rows), examples.iter().map(|e| e.ids.len()).sum())
            }
        };
        if tokens < 2 {
            return Err(Error::DataTooShort { need: 2, have: tokens });
        }
        let digest = digest(&content);
        let (document_ends, document_mask, validation) = (Vec::new(), false, None);
        Ok(Self { content, train_items, validation, pad, digest, account: Arc::new(account), document_ends, document_mask })
    }

    /// These data with others that are evaluated; all of these are trained on.
    pub fn with_validation(self, validation: Dataset) -> Self {
        Self { validation: Some(Box::new(Self { train_items: 0, ..validation })), ..self }
    }

    /// The data that are evaluated: others than these, or their end.
    fn evaluated(&self) -> &Self {
        self.validation.as_deref().unwrap_or(self)
    }

    /// The data with the ids that end a document of a text, for [`Dataset::mask_documents`]; [`Dataset::from_bytes`] takes the tokenizer's.
    pub fn with_document_ends(self, ids: &[u32]) -> Self {
        Self { document_ends: ids.to_vec(), ..self }
    }

    /// Sets whether a token of a text sees only its own document. Examples are documents already, one per row. Refuses a text if the ends
    /// of its documents are unknown.
    pub fn mask_documents(&mut self, mask: bool) -> Result<()> {
        if mask && matches!(self.content, Content::Text(_)) && self.document_ends.is_empty() {
            return Err(Error::InvalidConfig(vec![no_document_ends()]));
        }
        self.document_mask = mask;
        self.validation.as_mut().map_or(Ok(()), |validation| validation.mask_documents(mask))
    }

    /// The ids that end a document, if documents are masked from each other.
    pub(super) fn document_ends(&self) -> Option<&[u32]> {
        (self.document_mask && matches!(self.content, Content::Text(_))).then_some(&self.document_ends)
    }

    pub(super) fn train(&self) -> Part<'_> {
        match &self.content {
            Content::Text(tokens) => Part::Text(tokens.get(..self.train_items).unwrap_or(tokens)),
            Content::Examples(examples) => Part::Examples(examples.get(..self.train_items).unwrap_or(examples)),
        }
    }

    pub(super) fn validation(&self) -> Part<'_> {
        if let Some(validation) = &self.validation {
            return validation.whole();
        }
        match &self.content {
            Content::Text(tokens) => Part::Text(tokens.get(self.train_items..).unwrap_or(&[])),
            Content::Examples(examples) => Part::Examples(examples.get(self.train_items..).unwrap_or(&[])),
        }
    }

    fn whole(&self) -> Part<'_> {
        match &self.content {
            Content::Text(tokens) => Part::Text(tokens),
            Content::Examples(examples) => Part::Examples(examples),
        }
    }

    pub(super) fn pad(&self) -> u32 {
        self.pad
    }

    /// Tokens that are trained on.
    pub fn train_tokens(&self) -> usize {
        count(self.train())
    }

    /// Tokens that are kept for evaluation.
    pub fn validation_tokens(&self) -> usize {
        count(self.validation())
    }

    /// All ids of a stream; `None` of examples.
    pub fn stream(&self) -> Option<&[u32]> {
        match &self.content {
            Content::Text(tokens) => Some(tokens),
            Content::Examples(_) => None,
        }
    }

    /// Whether they are examples, not one text.
    pub fn has_examples(&self) -> bool {
        matches!(self.content, Content::Examples(_))
    }

    /// Validation batches: every token but the first is predicted once, from windows of `seq_len` inputs that do not overlap. The last
    /// window is filled up with targets that do not count. Of examples, only those with a target within the first `seq_len` tokens are
    /// used.
    pub fn validation_batches(&self, batch_size: usize, seq_len: usize) -> Batches<'_> {
        Batches::new(self.evaluated(), self.validation(), batch_size, seq_len, seq_len)
    }

    /// All data for `tabtune evaluate`: disjoint windows of `window` tokens in which every token but the first is predicted
    /// (so T = `window` − 1), from the start of the file up to `max_tokens`.
    pub fn evaluation_batches(&self, batch_size: usize, window: usize, max_tokens: Option<usize>) -> Batches<'_> {
        let part = match (self.whole(), max_tokens) {
            (Part::Text(tokens), Some(most)) => Part::Text(tokens.get(..most).unwrap_or(tokens)),
            (Part::Examples(examples), Some(most)) => {
                let mut seen = 0usize;
                let fitting = examples.iter().take_while(|example| {
                    seen = seen.saturating_add(example.ids.len());
                    seen <= most
                });
                Part::Examples(examples.get(..fitting.count()).unwrap_or(examples))
            }
            (part, None) => part,
        };
        let window = window.max(2);
        Batches::new(self, part, batch_size, window - 1, window)
    }

    /// SHA-256 over the ids (u32, little endian) of a text; of examples, over each one's length, ids and counted marks.
    pub fn digest(&self) -> String {
        self.digest.clone()
    }

    /// Ids that end a turn of the chats and no text by the tokenizer's files: a model that learns them stops at them.
    pub fn turn_ends(&self) -> &[u32] {
        self.account.ends_of_turns()
    }

    /// What a person should know of the files as they were read.
    pub fn reading_warnings(&self) -> Vec<DataWarning> {
        self.account.warnings()
    }

    /// The examples that are trained on, with the rows that they come from; none of a stream.
    pub(super) fn train_examples(&self) -> &[Example] {
        match self.train() {
            Part::Examples(examples) => examples,
            Part::Text(_) => &[],
        }
    }

    pub(super) fn account(&self) -> &Account {
        &self.account
    }
}

fn count(part: Part<'_>) -> usize {
    match part {
        Part::Text(tokens) => tokens.len(),
        Part::Examples(examples) => examples.iter().map(|example| example.ids.len()).sum(),
    }
}

fn digest(content: &Content) -> String {
    let mut hash = Sha256::new();
    match content {
        Content::Text(tokens) => tokens.iter().for_each(|id| hash.update(id.to_le_bytes())),
        Content::Examples(examples) => {
            for example in examples {
                hash.update((example.ids.len() as u64).to_le_bytes());
                example.ids.iter().for_each(|id| hash.update(id.to_le_bytes()));
                example.counted.iter().for_each(|&counts| hash.update([u8::from(counts)]));
            }
        }
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
