//! The order in which a file of another format stores the elements of a matrix.

/// Relation between the rows of a stored tensor and the Hugging Face layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Stored as in Hugging Face's files.
    Same,
    /// The rows of each head (the field is the number of heads) alternate between the two halves; Hugging Face stores one half after the other.
    PairedRows(usize),
    /// Stored [out, in]; Hugging Face's Conv1D has [in, out].
    Transposed,
}

impl Layout {
    /// Returns the layout of a tensor of this shape: where the rows are no whole number of heads, or the tensor is no matrix, that of Hugging
    /// Face.
    pub(crate) fn fitting(self, shape: &[usize]) -> Self {
        let rows = shape.first().copied().unwrap_or(1);
        match self {
            Self::PairedRows(heads) if heads == 0 || !rows.is_multiple_of(2 * heads) => Self::Same,
            Self::Transposed if shape.len() != 2 => Self::Same,
            layout => layout,
        }
    }
}
