//! A tensor of an opened model that is written into another file without a device.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

use super::entry::Entry;
use super::pieces::Pieces;
use super::tensors::Bundle;
use crate::config::ModelConfig;
use crate::error::{Refusal, Result, word};
use crate::formats::{ByteSource, Encoding, FileTensor, GgmlType, SourceSpan};
use crate::state::{ModelStateTensorManifest, Reordering, SourceFormat};

/// A tensor of an opened model; it keeps the model's files open. Nothing is read before it is written.
#[derive(Debug, Clone)]
pub struct StoredTensor {
    bundle: Rc<Bundle>,
    entry: Entry,
    summed: Cell<Summed>,
}

/// Sums of a base's values and an adapter's product that were read; a sum that is read twice counts twice.
#[derive(Debug, Clone, Copy, Default)]
struct Summed {
    values: u64,
    /// Sums of the squares of the rounding errors of adding them in f32, and of the products that were added.
    squares: [f64; 2],
}

/// One of the files of a model.
struct BundleFile {
    bundle: Rc<Bundle>,
    at: usize,
}

impl ByteSource for BundleFile {
    fn name(&self) -> &str {
        self.bundle.files[self.at].name()
    }
    fn len(&self) -> u64 {
        self.bundle.files[self.at].len()
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.bundle.files[self.at].read_at(offset, buf)
    }
}

impl Bundle {
    /// Creates the model of these tensors, each with its bytes in Hugging Face's order, wherever they are.
    pub(crate) fn of_tensors(
        config: ModelConfig,
        tensors: Vec<(ModelStateTensorManifest, SourceSpan)>,
    ) -> Result<Self> {
        let (mut files, mut entries): (Vec<Box<dyn ByteSource>>, Vec<Entry>) =
            (Vec::new(), Vec::new());
        for (tensor, span) in tensors {
            let stored = FileTensor {
                begin: span.begin,
                bytes: Some(span.bytes),
                ..FileTensor::new(&tensor.state_key, &tensor.dtype, &tensor.shape)
            };
            entries.push(Entry::new(
                tensor.state_key,
                stored,
                Reordering::Same,
                files.len(),
                "",
            )?);
            files.push(Box::new(span.source));
        }
        Self::of_entries(config, SourceFormat::HfFolder, files, entries)
    }
}

impl Bundle {
    /// Returns whether its files store tensors in blocks, whatever was merged into them.
    pub(crate) fn stores_blocks(&self) -> bool {
        self.entries
            .values()
            .any(|entry| matches!(entry.encoding, Some(Encoding::Blocks(_))))
    }

    /// Returns its own files, without that of an adapter.
    pub(crate) fn own_files(self: &Rc<Self>) -> Vec<Box<dyn ByteSource>> {
        let count = self.files.len() - usize::from(self.adapter.is_some());
        (0..count)
            .map(|at| {
                Box::new(BundleFile {
                    bundle: Rc::clone(self),
                    at,
                }) as Box<dyn ByteSource>
            })
            .collect()
    }
}

impl StoredTensor {
    /// Returns the tensor `name` of `bundle`: one of its model or of the adapter attached to it.
    ///
    /// # Errors
    /// `model.tensor.missing` if there is none with this name.
    pub fn new(bundle: &Rc<Bundle>, name: &str) -> Result<Self> {
        let absent = || {
            Refusal::new(word!("model.tensor.missing"))
                .stage("read")
                .subject(name)
        };
        let entry = bundle.entry(name).ok_or_else(absent)?.clone();
        Ok(Self {
            bundle: Rc::clone(bundle),
            entry,
            summed: Cell::default(),
        })
    }

    /// Returns the stored dtype: a safetensors word, or `GGML:<type>` for blocks.
    pub fn dtype(&self) -> &str {
        &self.entry.dtype
    }

    /// Returns the shape in Hugging Face's layout.
    pub fn shape(&self) -> &[usize] {
        &self.entry.shape
    }

    /// Returns whether its values are stored in blocks.
    pub fn is_blocks(&self) -> bool {
        self.entry.dtype.starts_with("GGML:")
    }

    /// Returns the model that it belongs to, if its values are sums of a base and an adapter's product.
    pub(crate) fn merged_in(&self) -> Option<&Rc<Bundle>> {
        self.entry.merge.as_ref().map(|_| &self.bundle)
    }

    /// Returns a tensor whose sums stay as they are in f32: for writers that round by themselves.
    #[must_use]
    pub(crate) fn exactly(mut self) -> Self {
        if let Some(merge) = &self.entry.merge {
            self.entry.merge = Some(Rc::new(merge.exactly()));
            self.entry.dtype = "F32".to_string();
        }
        self
    }

    /// Returns a tensor whose sums are read exactly but keep their previous dtype: the writer rounds them to it.
    #[must_use]
    pub(crate) fn exactly_summed(mut self) -> Self {
        if let Some(merge) = &self.entry.merge {
            self.entry.merge = Some(Rc::new(merge.exactly()));
        }
        self
    }

    /// Returns whether its values are the exact sums of a base and an adapter's product.
    pub(super) fn is_merged(&self) -> bool {
        self.entry.merge.as_ref().is_some_and(|merge| merge.exact)
    }

    /// Returns whether an adapter's product changes its values; `None` if none was merged into it.
    pub(crate) fn is_changed(&self) -> Result<Option<bool>> {
        let Some(merge) = &self.entry.merge else {
            return Ok(None);
        };
        Ok(Some(!merge.load(&self.bundle.files, None)?.is_zero()))
    }

    /// Returns the 2-norm of the change by an adapter, if the values are exact sums, and the mean square of what products and additions in f32
    /// lose of it, among the values that were read.
    pub(super) fn change(&self) -> Result<Option<(f64, f64)>> {
        let Some(merge) = self.entry.merge.as_ref().filter(|merge| merge.exact) else {
            return Ok(None);
        };
        /// Share of the squared change by which products in f32 may differ from it; more is missing where they are below the smallest number.
        const ROUNDED: f64 = 1e-3;
        let norm = merge.load(&self.bundle.files, None)?.norm();
        let Summed { values, squares } = self.summed.get();
        let [errors, changes] = squares.map(|sum| sum / values.max(1) as f64);
        let change = norm.powi(2) / self.entry.shape.iter().product::<usize>().max(1) as f64;
        let absent = Some(change - changes).filter(|absent| *absent > ROUNDED * change);
        Ok(Some((norm, errors + absent.unwrap_or(0.0))))
    }

    /// Returns its dtype as a type of GGUF files.
    pub(crate) fn ggml_type(&self) -> Option<GgmlType> {
        GgmlType::of_word(&self.entry.dtype)
    }

    /// Returns whether its stored bytes are its values in this order.
    pub(crate) fn lies_as(&self, order: Reordering) -> bool {
        let shape = &self.entry.shape;
        self.entry.is_verbatim() && self.entry.order.fitting(shape) == order.fitting(shape)
    }

    /// Returns the order of its stored bytes, if those are its values and whole rows of them.
    pub(crate) fn row_order(&self) -> Option<Reordering> {
        Some(self.entry.order.fitting(&self.entry.shape))
            .filter(|order| self.entry.is_verbatim() && *order != Reordering::Transposed)
    }

    /// Returns its stored bytes; `None` for a type of unknown size.
    pub(crate) fn span(&self) -> Option<SourceSpan> {
        let source = Rc::new(BundleFile {
            bundle: Rc::clone(&self.bundle),
            at: self.entry.source,
        });
        Some(SourceSpan {
            source,
            begin: self.entry.stored.begin,
            bytes: self.entry.stored.bytes?,
        })
    }

    /// Returns the tensor with its values in the order in which they are stored.
    pub(super) fn in_stored_order(mut self) -> Self {
        self.entry.order = Reordering::Same;
        self
    }

    /// Returns its values in pieces of at most `max_elements`.
    pub(crate) fn pieces(&self, max_elements: usize) -> Result<Pieces<'_>> {
        self.bundle.pieces_of(&self.entry, max_elements)
    }

    /// Returns at most `max_elements` values from the value `first` on.
    pub(super) fn values_from(&self, first: u64, max_elements: usize) -> Result<Vec<f32>> {
        let mut pieces = self.pieces(max_elements)?.starting_at(first);
        let values = pieces
            .next_piece()?
            .map(|(_, values)| values.to_vec())
            .unwrap_or_default();
        let before = self.summed.get();
        let more = pieces.sum_squares();
        let squares = [before.squares[0] + more[0], before.squares[1] + more[1]];
        self.summed.set(Summed {
            values: before.values + values.len() as u64,
            squares,
        });
        Ok(values)
    }

    /// Returns the values of `spans`, one after another.
    pub(super) fn spans(&self, spans: &[Range<u64>]) -> Result<Vec<f32>> {
        let too_large = || {
            Refusal::new(word!("source.too-large"))
                .stage("read")
                .subject(&self.entry.name)
        };
        let mut values = Vec::new();
        for span in spans {
            let mut at = span.start;
            while at < span.end {
                let count = usize::try_from(span.end - at).map_err(|_| too_large())?;
                let next = self.values_from(at, count)?;
                if next.is_empty() {
                    return Err(too_large().into());
                }
                at += next.len() as u64;
                values.extend(next);
            }
        }
        Ok(values)
    }
}
