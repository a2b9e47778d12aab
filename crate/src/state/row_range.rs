//! Rows of a matrix as a tensor of their own.

use std::ops::Range;
use std::rc::Rc;

use super::tensor::{Bytes, Encoded, Merged, Moved, Pair, Span, Tensor};
use crate::formats::SourceSpan;

impl Tensor {
    /// Describes rows of a matrix in Hugging Face's order as the parameter `name`. Nothing is read.
    #[must_use]
    pub(crate) fn rows(&self, name: &str, rows: Range<u64>) -> Self {
        let row_bytes = self.len() / self.shape[0];
        let bytes = rows.start * row_bytes..rows.end * row_bytes;
        let own = |tensor: &Self| tensor.rows(&tensor.name, rows.clone());
        let bytes = match &self.bytes {
            Bytes::Span(Span { stored, order, .. }) => Bytes::Span(Span {
                stored: SourceSpan {
                    source: Rc::clone(&stored.source),
                    begin: stored.begin + bytes.start,
                    bytes: bytes.end - bytes.start,
                },
                order: *order,
                own_name: None,
            }),
            Bytes::Host(all) => Bytes::host(&all[bytes.start as usize..bytes.end as usize]),
            Bytes::Device(flat) => Bytes::Device(flat.slice(&bytes)),
            Bytes::Merged(merged) => Bytes::Merged(Rc::new(Merged {
                base: own(&merged.base),
                pair: Pair {
                    b: own(&merged.pair.b),
                    ..merged.pair.clone()
                },
            })),
            Bytes::Moved(moved) => Bytes::Moved(Rc::new(Moved {
                base: own(&moved.base),
                words: own(&moved.words),
                ..*moved.as_ref()
            })),
            Bytes::Encoded(encoded) => Bytes::Encoded(Rc::new(Encoded {
                values: own(&encoded.values),
                ..encoded.as_ref().clone()
            })),
        };
        let mut shape = self.shape.clone();
        shape[0] = rows.end - rows.start;
        Self::parameter(name, &self.dtype, &shape, bytes)
    }
}
