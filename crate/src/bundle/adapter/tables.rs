//! Embedding and head of an adapter: tied in the base, stored under two names, or of another number of rows.

use std::cmp::Ordering;

use super::pairs::{Parts, equal, weight};
use crate::bundle::tensors::Bundle;
use crate::error::{Refusal, Result, word};
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
        let [of_embedding, of_head] = [embedding, HEAD].map(|name| self.has_pair(bundle, name));
        let apart = of_head || of_embedding && !self.config.ensure_weight_tying;
        match (self.stored(bundle, embedding), self.stored(bundle, HEAD)) {
            (Some((_, table)), Some((own, copy))) if !apart && equal(copy, table)? => {
                self.saved.remove(&own);
                self.both = true;
            }
            (Some((_, table)), None) if of_embedding && apart => self.shared = Some((HEAD, table)),
            (None, Some((_, table))) if of_head => self.shared = Some((embedding, table)),
            _ => {}
        }
        Ok(())
    }

    /// Returns whether a pair changes the tensor `name` of the base.
    fn has_pair(&self, bundle: &Bundle, name: &str) -> bool {
        self.pairs
            .keys()
            .any(|module| names::from_hf(&weight(module), &bundle.config).as_deref() == Some(name))
    }

    /// Returns the replacement of the base's tensor `name`, with its name in the adapter.
    fn stored(&self, bundle: &Bundle, name: &str) -> Option<(String, &'a Tensor)> {
        let named = self
            .saved
            .iter()
            .find(|(own, _)| names::from_hf(own, &bundle.config).as_deref() == Some(name));
        named.map(|(own, tensor)| (own.clone(), *tensor))
    }

    /// Returns whether a change of the input embedding also applies to a tied head, as the configuration, equal copies or added rows show.
    pub(super) fn ties(&self, bundle: &Bundle) -> bool {
        self.config.ensure_weight_tying || self.both || !self.grown(bundle).is_empty()
    }

    /// Returns name and rows of each table that has more rows than the base's.
    fn grown(&self, bundle: &Bundle) -> Vec<(&str, u64)> {
        let saved = self
            .saved
            .iter()
            .map(|(own, tensor)| (own.as_str(), *tensor));
        saved
            .chain(self.shared)
            .filter_map(|(own, tensor)| Some((own, more_rows(bundle, own, tensor)?)))
            .collect()
    }

    /// Returns the rows of the vocabulary, if the adapter has more of them than the base.
    ///
    /// # Errors
    /// `adapter.shape` if embedding and head have different numbers of rows.
    pub(super) fn vocabulary(&self, bundle: &Bundle) -> Result<Option<usize>> {
        let rows = self.grown(bundle);
        let Some(&(own, first)) = rows.first() else {
            return Ok(None);
        };
        let tables = if bundle.config.tie_word_embeddings {
            1
        } else {
            2
        };
        if rows.len() < tables || rows.iter().any(|(_, other)| *other != first) {
            let refusal = Refusal::new(word!("adapter.shape"))
                .of(self.artifact)
                .subject(own);
            return Err(refusal
                .expected(format!("embedding and head of {first} rows"))
                .found(format!("{rows:?}"))
                .into());
        }
        Ok(usize::try_from(first).ok())
    }

    /// Returns the shape of the tensor that the pair of a resized table is added to, if the adapter has that table.
    pub(super) fn shape_of_table(&self, bundle: &Bundle, own: &str) -> Option<Vec<u64>> {
        let named = |(name, _): &(&str, &Tensor)| {
            names::from_hf(own, &bundle.config).as_deref() == Some(*name)
        };
        let shared = || self.shared.filter(named).map(|(_, tensor)| tensor);
        let table = self.saved.get(own).copied().or_else(shared)?;
        Some(table.shape.clone())
    }
}

/// Returns the rows of a stored embedding or head that differs from the base's in nothing else, and their order to the base's.
fn rows_of(bundle: &Bundle, own: &str, tensor: &Tensor) -> Option<(u64, Ordering)> {
    let is_table =
        |name: &String| name == HEAD || name == names::embedding(bundle.config.architecture);
    let base = bundle.shape(&names::from_hf(own, &bundle.config).filter(is_table)?)?;
    match (base.as_slice(), tensor.shape.as_slice()) {
        ([of_base, width], [rows, same]) if *width as u64 == *same => {
            Some((*rows, rows.cmp(&(*of_base as u64))))
        }
        _ => None,
    }
}

/// Returns the rows of a stored embedding or head that has more of them than the base's.
pub(super) fn more_rows(bundle: &Bundle, own: &str, tensor: &Tensor) -> Option<u64> {
    rows_of(bundle, own, tensor)
        .filter(|(_, order)| order.is_gt())
        .map(|(rows, _)| rows)
}

/// Returns the way to use an embedding or a head whose rows are not those of the base.
pub(super) fn hint_about(bundle: &Bundle, own: &str, tensor: &Tensor) -> Option<String> {
    match rows_of(bundle, own, tensor)? {
        (_, Ordering::Greater) => Some(GROWN.to_string()),
        (rows, Ordering::Less) => Some(format!(
            "the vocabulary was shortened before training: the adapter fits a base of {rows} rows, which transformers makes of this one \
             with resize_token_embeddings({rows})"
        )),
        _ => None,
    }
}
