//! The files that a receipt is compared with, and their assignment to the files that it lists.

use std::rc::Rc;

use super::Check;
use crate::error::Result;
use crate::formats::{ByteSource, Digest, base_name, sha256_of};
use crate::state::receipt::ReceiptFile;

/// The files that are present.
pub(super) struct PresentFiles<'a> {
    pub(super) sources: &'a [Rc<dyn ByteSource>],
    /// SHA-256 of the files that were read.
    pub(super) sums: Vec<Option<Digest>>,
    /// True for each file that was assigned to a file of the receipt.
    pub(super) taken: Vec<bool>,
}

impl PresentFiles<'_> {
    fn sum(&mut self, at: usize) -> Result<Digest> {
        if let Some(sum) = self.sums[at] {
            return Ok(sum);
        }
        let source = &self.sources[at];
        let sum = sha256_of(source, 0, source.len())?;
        self.sums[at] = Some(sum);
        Ok(sum)
    }

    /// Finds one of the first `among` files that equals this one, and assigns it to it.
    pub(super) fn equal(&mut self, file: &ReceiptFile, among: usize) -> Result<Option<usize>> {
        for at in 0..among {
            if self.taken[at] || !self.is_named(at, file) || self.sources[at].len() != file.bytes {
                continue;
            }
            // A file that cannot be read is an error, not a difference.
            self.taken[at] = match file.sha256 {
                Some(sum) => self.sum(at)? == sum,
                None => true,
            };
            if self.taken[at] {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    fn is_named(&self, at: usize, file: &ReceiptFile) -> bool {
        base_name(self.sources[at].name()) == file.name
    }

    /// Finds one of the first `among` files that has this name.
    pub(super) fn named(&self, file: &ReceiptFile, among: usize) -> Option<usize> {
        (0..among).find(|&at| self.is_named(at, file))
    }

    /// Finds one of the first `among` files that has this name and is not assigned to another file of the receipt.
    pub(super) fn left(&self, file: &ReceiptFile, among: usize) -> Option<usize> {
        (0..among).find(|&at| !self.taken[at] && self.is_named(at, file))
    }

    /// Checks the file at `at`, which has other bytes than the receipt states, and assigns it.
    pub(super) fn differing(&mut self, at: usize, name: &str, file: &ReceiptFile) -> Result<Check> {
        self.taken[at] = true;
        let told = |bytes: u64, sum: Option<Digest>| match sum {
            Some(sum) => format!("{bytes} bytes, SHA-256 {sum}"),
            None => format!("{bytes} bytes"),
        };
        let found = told(self.sources[at].len(), Some(self.sum(at)?));
        Ok(Check::differing(name, told(file.bytes, file.sha256), found))
    }
}
