//! Encodes text to ids.

use super::{Tokenizer, unencodable};
use crate::error::Result;

impl Tokenizer {
    /// Encodes `text`. No special tokens are added, but their text is recognised where it occurs.
    ///
    /// # Errors
    /// `tokenizer.text` for a character without a token or an id beyond the embedding; `tokenizer.budget`.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        if let Some(table) = &self.characters {
            let id = |c: char| table.get(&c).copied().ok_or_else(|| unencodable(format!("the vocabulary lacks the character {c:?}")));
            return text.chars().map(id).collect();
        }
        self.patterns.check(text)?;
        self.in_use(self.split.encode(&self.inner, text)?)
    }

    /// Encodes the beginning of a text that is encoded piece by piece, and returns its ids and its length in bytes. If more of the text is
    /// needed and this is not the `last` part, returns no ids and 0. All pieces together have the ids of the whole text.
    ///
    /// # Errors
    /// As for [`Self::encode`].
    pub(crate) fn encode_part(&self, text: &str, last: bool) -> Result<(Vec<u32>, usize)> {
        if self.characters.is_some() || last {
            return Ok((self.encode(text)?, text.len()));
        }
        let Some((ids, length)) = self.split.next(&self.inner, text, false)? else { return Ok((Vec::new(), 0)) };
        self.patterns.check(text.get(..length).unwrap_or(text))?;
        Ok((self.in_use(ids)?, length))
    }

    /// Encodes `text` as the model expects a prompt, with [`Self::prompt_prefix`] and [`Self::prompt_suffix`] around it.
    ///
    /// # Errors
    /// As for [`Self::encode`].
    pub fn encode_prompt(&self, text: &str) -> Result<Vec<u32>> {
        Ok([self.prompt_prefix(), &self.encode(text)?, self.prompt_suffix()].concat())
    }

    /// Returns the ids before a text, often a beginning-of-text: those of the post-processor, or, for tokenizers like Llama's, of
    /// `add_bos_token` in `tokenizer_config.json`.
    #[doc(hidden)]
    pub fn prompt_prefix(&self) -> &[u32] {
        &self.frame.before
    }

    /// Returns the ids after a text: those of the post-processor, or, for tokenizers like Llama's, of `add_eos_token`.
    #[doc(hidden)]
    pub fn prompt_suffix(&self) -> &[u32] {
        &self.frame.after
    }

    /// Encodes a text that is to be continued: [`Self::prompt_prefix`], then `text`. If the text itself begins with this prefix, as chat
    /// templates may write it, it is not added again. Nothing is added at the end.
    ///
    /// # Errors
    /// As for [`Self::encode`].
    #[doc(hidden)]
    pub fn encode_beginning(&self, text: &str) -> Result<Vec<u32>> {
        let ids = self.encode(text)?;
        let prefix = self.prompt_prefix();
        Ok(if ids.starts_with(prefix) { ids } else { [prefix, &ids].concat() })
    }

    /// Encodes `text`, and returns the ids and the byte of `text` at which each begins.
    ///
    /// # Errors
    /// As for [`Self::encode`].
    #[doc(hidden)]
    pub fn encode_with_starts(&self, text: &str) -> Result<(Vec<u32>, Vec<usize>)> {
        if self.characters.is_some() {
            return Ok((self.encode(text)?, text.char_indices().map(|(start, _)| start).collect()));
        }
        self.patterns.check(text)?;
        let encoding = self.inner.encode(text, false).map_err(unencodable)?;
        Ok((self.in_use(encoding.get_ids().to_vec())?, encoding.get_offsets().iter().map(|(start, _)| *start).collect()))
    }
}
