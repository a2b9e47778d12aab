//! A text as one stream of tokens, or a JSONL file as a list of examples, split into training and validation.

use sha2::{Digest, Sha256};

use super::batch::Batches;
use super::chat::{Example, read_examples};
use crate::error::{Error, Fault, Result};
use crate::tokenizer::Tokenizer;

/// How a data file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataFormat {
    /// Plain text, one stream.
    Text,
    /// One JSON object per line: `{"messages": […]}` or `{"prompt": …, "completion": …}`.
    Jsonl,
    /// Token ids, u32 little endian, one stream. No tokenizer is needed.
    Tokens,
}

impl DataFormat {
    /// The format by the ending of a file name: `.jsonl` and `.ndjson` are JSONL, `.tokens` is token ids, everything else is text.
    pub fn of_name(name: &str) -> Self {
        match name.to_ascii_lowercase().rsplit_once('.').map(|(_, ending)| ending) {
            Some("jsonl" | "ndjson") => Self::Jsonl,
            Some("tokens") => Self::Tokens,
            _ => Self::Text,
        }
    }
}

#[derive(Debug, Clone)]
enum Content {
    Text(Vec<u32>),
    Examples(Vec<Example>),
}

/// One side of the split.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part<'a> {
    Text(&'a [u32]),
    Examples(&'a [Example]),
}

/// Tokenized training data. The validation part is the end of the file.
#[derive(Debug, Clone)]
pub struct Dataset {
    content: Content,
    /// Tokens or examples that are trained on.
    train_items: usize,
    pad: u32,
    digest: String,
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
    /// Tokenizes `bytes`. `validation_fraction` (0 ≤ f < 1) of the tokens or examples, from the end, are kept for evaluation.
    pub fn from_bytes(bytes: &[u8], format: DataFormat, tokenizer: &Tokenizer, validation_fraction: f64) -> Result<Self> {
        let text = || std::str::from_utf8(bytes).map_err(|e| Error::DataNotUtf8 { byte_offset: e.valid_up_to() });
        let pad = tokenizer.pad().or(tokenizer.eos().first().copied()).unwrap_or(0);
        let dataset = match format {
            DataFormat::Text => Self::new(Content::Text(tokenizer.encode(text()?)?), validation_fraction, pad),
            DataFormat::Jsonl => Self::new(Content::Examples(read_examples(text()?, tokenizer)?), validation_fraction, pad),
            DataFormat::Tokens => Self::from_token_bytes(bytes, validation_fraction),
        };
        Ok(dataset?.with_document_ends(tokenizer.eos()))
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
        Self::new(Content::Text(tokens), validation_fraction, 0)
    }

    fn new(content: Content, validation_fraction: f64, pad: u32) -> Result<Self> {
        let (items, tokens) = match &content {
            Content::Text(tokens) => (tokens.len(), tokens.len()),
            Content::Examples(examples) => (examples.len(), examples.iter().map(|e| e.ids.len()).sum()),
        };
        if tokens < 2 {
            return Err(Error::DataTooShort { need: 2, have: tokens });
        }
        let train_items = (items as f64 * (1.0 - validation_fraction.clamp(0.0, 1.0))) as usize;
        let digest = digest(&content);
        let (document_ends, document_mask) = (Vec::new(), false);
        Ok(Self { content, train_items: train_items.min(items), pad, digest, document_ends, document_mask })
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
        Ok(())
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

    fn validation(&self) -> Part<'_> {
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

    /// Whether they are examples, not one text.
    pub fn has_examples(&self) -> bool {
        matches!(self.content, Content::Examples(_))
    }

    /// Validation batches: every token but the first is predicted once, from windows of `seq_len` inputs that do not overlap. The last
    /// window is filled up with targets that do not count. Of examples, only those with a target within the first `seq_len` tokens are
    /// used.
    pub fn validation_batches(&self, batch_size: usize, seq_len: usize) -> Batches<'_> {
        Batches::new(self, self.validation(), batch_size, seq_len, seq_len)
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
