//! Added tokens beyond the rows of the embedding.

use super::{Tokenizer, unencodable};
use crate::error::Result;

impl Tokenizer {
    /// Disables the added tokens with ids of `rows` or more: a text that contains one is refused from then on, and none of them begins,
    /// ends or pads a text. Returns the texts of those that a file has, in the order of their ids. If a token of the vocabulary itself is beyond the rows, changes
    /// nothing and returns `None`.
    pub(crate) fn limit(&mut self, rows: usize) -> Option<Vec<String>> {
        let beyond = |id: u32| id as usize >= rows;
        let vocab = self.inner.get_vocab(true).into_iter();
        let listed = vocab.filter(|(_, id)| beyond(*id));
        let mut tokens: Vec<(u32, String)> = listed.map(|(text, id)| (id, text)).collect();
        if !tokens.iter().all(|(id, _)| self.added_token(*id).is_some()) {
            return None;
        }
        tokens.sort_unstable();
        self.vocab_size = self.vocab_size.min(rows);
        for ids in [
            &mut self.bos,
            &mut self.frame.before,
            &mut self.frame.after,
            &mut self.eos,
        ] {
            ids.retain(|&id| !beyond(id));
        }
        self.pad = self.pad.filter(|&id| !beyond(id));
        tokens.retain(|(id, _)| !self.unusual.implied.contains_key(id));
        Some(tokens.into_iter().map(|(_, text)| text).collect())
    }

    /// Returns the ids of a text; refuses them if one is that of a disabled token.
    pub(super) fn in_use(&self, ids: Vec<u32>) -> Result<Vec<u32>> {
        let rows = self.vocab_size;
        let Some(id) = ids.iter().copied().find(|&id| id as usize >= rows) else {
            return Ok(ids);
        };
        let token = self.inner.id_to_token(id).unwrap_or_default();
        Err(unencodable(format!(
            "the embedding has {rows} rows, and none for the token {token:?} with the id {id}: take it out of the text"
        )))
    }
}
