//! Formats of exports.

use std::pin::Pin;
use std::rc::Rc;

use super::choice::ExportChoice;
use super::options::ExportOptions;
use super::source::ExportSource;
use crate::bundle::FileStream;
use crate::error::Result;
use crate::formats::ByteSource;

/// Files of a base: a GGUF file that the model's tensors go into, or the base that a trained adapter is merged into.
pub(super) type BaseFiles = Vec<Rc<dyn ByteSource>>;

/// An export that is being prepared.
pub(super) type Exporting<'a> = Pin<Box<dyn Future<Output = Result<FileStream>> + 'a>>;

/// A format of exports. A new one is a file that states this, a variant of [`ExportFormat`](super::ExportFormat) and its row in
/// [`format_of`](super::format_of); the lists of the terminal and of the page follow from them.
pub(super) struct Format {
    /// Its word in options, which serde has for the variant.
    pub(super) word: &'static str,
    /// Description for a list, as a noun phrase without an article.
    pub(super) about: &'static str,
    /// Ending of its one file; empty for a folder.
    pub(super) ending: &'static str,
    /// True for the format of a trained adapter alone, false for that of a whole model.
    pub(super) is_of_adapter: bool,
    /// Keys of [`ExportOptions`] that are of use for this format and not for all; `base` for files of a base.
    pub(super) own_options: &'static [&'static str],
    /// Prepares the files, the receipt last.
    pub(super) export: for<'a> fn(&'a ExportSource, BaseFiles, &'a ExportOptions) -> Exporting<'a>,
    /// Plans every export of a source in this format. Nothing is read.
    pub(super) choices: fn(&ExportSource) -> Vec<ExportChoice>,
}
