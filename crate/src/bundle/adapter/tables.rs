//! Embedding and head of an adapter: tied in the base, stored under two names, or of another number of rows.

use std::cmp::Ordering;

use super::pairs::{Parts, equal};
use crate::bundle::refusals::refused;
use crate::bundle::tensors::Bundle;
use crate::error::{Result, word};
use crate::families::names;
use crate::families::names::HEAD;
use crate::state::Tensor;

/// Hint about a table of more rows than the base's.
const GROWN: &str = "the vocabulary was resized: merge the adapter with --resize-vocabulary, in a browser mergeAdapter with resizeVocabulary, and \
                     its table takes the place of the base's";

impl<'a> Parts<'a> {
    /// Settles what an adapter of a tied base stores of its one table. A head that equals the embedding stays tied, unless a pair changes one
    /// of the two alone. A table that is stored with a pair is the base's, which PEFT loads into the tensor of both: the one of the two that
    /// the adapter does not store becomes this table too, without the pair.
    pub(super) fn settle_tables(&mut self, bundle: &Bundle) -> Result<()> {
        if !bundle.config.tie_word_embeddings {
            return Ok(());
        }
        let embedding = names::embedding(bundle.config.architecture);
        let [of_embedding, of_head] = [embedding, HEAD].map(|name| self.has_pair(name));
        let apart = of_head || of_embedding && !self.config.ensure_weight_tying;
        match (self.stored(embedding), self.stored(HEAD)) {
            (Some((_, table)), Some((own, copy))) if !apart && equal(copy, table)? => {
                let own = own.clone();
                self.saved.remove(&own);
                self.both = true;
            }
            (Some((_, table)), None) if of_embedding && apart => self.shared = Some((HEAD, table)),
            (None, Some((_, table))) if of_head => self.shared = Some((embedding, table)),
            _ => {}
        }
        Ok(())
    }

    /// Tells if a change of the input embedding also applies to a tied head, as the configuration, equal copies or added rows show.
    pub(super) fn ties(&self, bundle: &Bundle) -> bool {
        self.config.ensure_weight_tying || self.both || self.grown(bundle).next().is_some()
    }

    /// Lists name and rows of each table that has more rows than the base's.
    fn grown(&self, bundle: &Bundle) -> impl Iterator<Item = (&str, u64)> {
        let saved = self.saved.iter();
        let saved = saved
            .filter_map(|(own, saved)| Some((own.as_str(), saved.name.as_deref()?, saved.tensor)));
        saved
            .chain(self.shared.map(|(name, tensor)| (name, name, tensor)))
            .filter_map(|(own, name, tensor)| Some((own, more_rows(bundle, name, tensor)?)))
    }

    /// The rows of the vocabulary, if the adapter has more of them than the base.
    ///
    /// # Errors
    /// `adapter.shape` if embedding and head have different numbers of rows.
    pub(super) fn vocabulary(&self, bundle: &Bundle) -> Result<Option<usize>> {
        let rows: Vec<(&str, u64)> = self.grown(bundle).collect();
        let Some(&(own, first)) = rows.first() else {
            return Ok(None);
        };
        let tables = 2 - usize::from(bundle.config.tie_word_embeddings);
        if rows.len() < tables || rows.iter().any(|(_, other)| *other != first) {
            return Err(refused(word!("adapter.shape"), self.artifact, own)
                .expected(format!("embedding and head of {first} rows"))
                .found(format!("{rows:?}"))
                .into());
        }
        Ok(usize::try_from(first).ok())
    }

    /// Finds the table of the adapter that takes the place of the base's tensor `name`, which the adapter names `own`.
    pub(super) fn table(&self, own: &str, name: &str) -> Option<&'a Tensor> {
        let saved = self.saved.get(own).map(|saved| saved.tensor);
        let shared = self.shared.filter(|(shared, _)| *shared == name);
        saved.or(shared.map(|(_, tensor)| tensor))
    }
}

/// The rows of a stored embedding or head that differs from the base's `name` in nothing else, and their order to the base's.
fn rows_of(bundle: &Bundle, name: &str, tensor: &Tensor) -> Option<(u64, Ordering)> {
    if name != HEAD && name != names::embedding(bundle.config.architecture) {
        return None;
    }
    match (&bundle.tensor(name)?.shape[..], &tensor.shape[..]) {
        ([of_base, width], [rows, same]) if width == same => Some((*rows, rows.cmp(of_base))),
        _ => None,
    }
}

/// The rows of a stored embedding or head that has more of them than the base's.
pub(super) fn more_rows(bundle: &Bundle, name: &str, tensor: &Tensor) -> Option<u64> {
    let (rows, order) = rows_of(bundle, name, tensor)?;
    order.is_gt().then_some(rows)
}

/// Describes how to use an embedding or a head whose rows are not those of the base.
pub(super) fn hint_about(bundle: &Bundle, name: &str, tensor: &Tensor) -> Option<String> {
    match rows_of(bundle, name, tensor)? {
        (_, Ordering::Greater) => Some(GROWN.to_string()),
        (rows, Ordering::Less) => Some(format!(
            "the vocabulary was shortened before training: the adapter fits a base of {rows} rows, which transformers makes of this one \
             with resize_token_embeddings({rows})"
        )),
        _ => None,
    }
}
