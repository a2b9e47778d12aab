//! Encodes text to ids.

use super::places::starts;
use super::{Conversation, Findings, Tokenizer, unencodable};
use crate::error::Result;

impl Tokenizer {
    /// Encodes `text`. No special tokens are added, but their text is recognised where it occurs.
    ///
    /// # Errors
    /// `tokenizer.text` for a character without a token or an id beyond the embedding; `tokenizer.budget`.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        if let Some(table) = &self.characters {
            let id = |c: char| {
                let absent = || unencodable(format!("the vocabulary lacks the character {c:?}"));
                table.get(&c).copied().ok_or_else(absent)
            };
            return text.chars().map(id).collect();
        }
        self.check_characters(text)?;
        self.plain_ids(text)
    }

    /// Encodes `text`, and leaves out characters that have no token of any kind.
    fn plain_ids(&self, text: &str) -> Result<Vec<u32>> {
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
        let Some((ids, length)) = self.split.next(&self.inner, text, false)? else {
            return Ok((Vec::new(), 0));
        };
        let part = text.get(..length).unwrap_or(text);
        self.patterns.check(part)?;
        self.check_characters(part)?;
        Ok((self.in_use(ids)?, length))
    }

    /// Encodes `text` as the model expects a prompt, with [`Self::prompt_prefix`] and [`Self::prompt_suffix`] around it.
    ///
    /// # Errors
    /// As for [`Self::encode`].
    pub fn encode_prompt(&self, text: &str) -> Result<Vec<u32>> {
        let ids = match self.characters {
            Some(_) => self.encode(text)?,
            None => self.plain_ids(text)?,
        };
        Ok([self.prompt_prefix(), &ids, self.prompt_suffix()].concat())
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
        self.encode_text(text).map(|(ids, _)| ids)
    }

    /// Encodes a text as [`Self::encode_beginning`] does, and returns the findings about it.
    ///
    /// # Errors
    /// As for [`Self::encode`].
    #[doc(hidden)]
    pub fn encode_text(&self, text: &str) -> Result<(Vec<u32>, Findings)> {
        let (ids, prefix) = (self.encode(text)?, self.prompt_prefix());
        let Some(rest) = ids.strip_prefix(prefix).filter(|_| !prefix.is_empty()) else {
            let found = self.findings(text, &ids)?;
            return Ok(([prefix, &ids].concat(), found));
        };
        let found = self.findings(text, rest)?;
        Ok((ids, found))
    }

    /// Encodes a conversation as the chat template writes it, with nothing around it, and returns the findings about it.
    /// `add_generation_prompt` opens the assistant's turn at the end.
    ///
    /// # Errors
    /// As for [`Self::encode`] and [`Self::render_chat`].
    #[doc(hidden)]
    pub fn encode_chat(
        &self,
        conversation: &Conversation,
        add_generation_prompt: bool,
    ) -> Result<(Vec<u32>, Findings)> {
        self.check_chat_template()?;
        let conversation = self.as_read(conversation);
        let text = self.render_chat(&conversation, add_generation_prompt)?.text;
        let ids = self.encode(&text)?;
        let found = self.chat_findings(&conversation, &text, &ids)?;
        Ok((ids, found))
    }

    /// Encodes `text`, and returns the ids and the byte of `text` at which each begins by the bytes of its own text.
    ///
    /// # Errors
    /// As for [`Self::encode`].
    #[doc(hidden)]
    pub fn encode_with_starts(&self, text: &str) -> Result<(Vec<u32>, Vec<usize>)> {
        if self.characters.is_some() {
            let starts = text.char_indices().map(|(start, _)| start);
            return Ok((self.encode(text)?, starts.collect()));
        }
        self.patterns.check(text)?;
        self.check_characters(text)?;
        let encoding = self.inner.encode(text, false).map_err(unencodable)?;
        let ids = self.in_use(encoding.get_ids().to_vec())?;
        Ok((ids, starts(&encoding, self.coverage.byte_level)))
    }
}
