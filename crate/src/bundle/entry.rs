//! A tensor of an opened model: its position in a file, and its layout.

use std::rc::Rc;

use super::adapter::Merge;
use crate::error::{Refusal, Result, word};
use crate::families::Layout;
use crate::formats::Encoding;

/// Position of a stored tensor, and its encoding and layout.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) stored_name: String,
    pub(super) dtype: String,
    pub(super) encoding: Option<Encoding>,
    /// Shape in Hugging Face's layout.
    pub(super) shape: Vec<usize>,
    pub(super) source: usize,
    pub(super) begin: u64,
    /// Position one past the last byte; `None` for types of unknown size.
    pub(super) end: Option<u64>,
    pub(super) layout: Layout,
    /// Pair of an adapter that is added to the values.
    pub(super) merge: Option<Rc<Merge>>,
    /// The base's own tensor, if an adapter replaced it.
    pub(super) replaced: Option<Rc<Entry>>,
}

impl Entry {
    /// Returns whether the values are exactly those of the stored bytes.
    pub(super) fn is_verbatim(&self) -> bool {
        self.end.is_some() && self.merge.is_none()
    }
}

/// Converts the shape to `usize`; it is refused if this machine cannot address it.
pub(super) fn narrow(shape: &[u64], name: &str, artifact: &str) -> Result<Vec<usize>> {
    let too_large = || Refusal::new(word!("source.too-large")).of(artifact).subject(name).found(format!("{shape:?}"));
    shape.iter().map(|&dim| usize::try_from(dim).map_err(|_| too_large().into())).collect()
}
