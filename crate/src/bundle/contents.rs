//! A file of a stream whose parts come from wherever they are.

use std::ops::Range;
use std::pin::Pin;

use burn::tensor::Tensor;

use super::stream::{FileStream, Segment};
use crate::error::Result;

/// Gives the bytes of a range that is at most a piece long.
pub(crate) type ReadRange = Box<dyn Fn(Range<u64>) -> Pin<Box<dyn Future<Output = Result<Vec<u8>>>>>>;

/// A part of a file.
#[allow(clippy::large_enum_variant, reason = "a handle for each tensor of a model: few, and short-lived")]
pub(crate) enum Contents {
    /// In memory.
    Bytes(Vec<u8>),
    /// On the device, as it is stored there.
    Device(Tensor<1>),
    /// So many bytes, which are made when they are asked for.
    Computed(u64, ReadRange),
}

impl FileStream {
    /// Adds a file that consists of `contents`, one after another.
    pub(crate) fn push_contents(&mut self, name: &str, contents: Vec<Contents>) {
        let segment = |part: Contents| match part {
            Contents::Bytes(bytes) => Segment::Bytes(bytes),
            Contents::Device(tensor) => Segment::Device(tensor),
            Contents::Computed(bytes, read) => Segment::Computed(bytes, read),
        };
        let segments: Vec<Segment> = contents.into_iter().map(segment).collect();
        self.push(name, segments.iter().map(Segment::len).sum(), segments);
    }
}
