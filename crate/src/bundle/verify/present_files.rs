//! The files that a receipt is compared with, and their assignment to the files that it lists.

use std::rc::Rc;

use super::Check;
use crate::error::Result;
use crate::formats::{ByteSource, Digest, base_name, sha256_of};
use crate::state::receipt::{CheckResult, ReceiptFile};

/// Role of a file in a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    Output,
    Input,
}

impl Claim {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Output => "output",
            Self::Input => "input",
        }
    }
}

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
        let source = &self.sources[at];
        let sum = match self.sums[at] {
            Some(sum) => sum,
            None => sha256_of(source.as_ref(), 0, source.len())?,
        };
        self.sums[at] = Some(sum);
        Ok(sum)
    }

    /// Returns one of the first `among` files that equals this one, and assigns it to it.
    pub(super) fn equal(&mut self, file: &ReceiptFile, among: usize) -> Result<Option<usize>> {
        for at in 0..among {
            let source = &self.sources[at];
            if self.taken[at] || base_name(source.name()) != file.name || source.len() != file.bytes
            {
                continue;
            }
            if file
                .sha256
                .is_none_or(|sum| self.sum(at).is_ok_and(|found| found == sum))
            {
                self.taken[at] = true;
                return Ok(Some(at));
            }
            // A file that cannot be read is an error, not a difference.
            self.sum(at)?;
        }
        Ok(None)
    }

    /// Returns one of the first `among` files that has this name.
    pub(super) fn named(&self, file: &ReceiptFile, among: usize) -> Option<usize> {
        self.sources[..among]
            .iter()
            .position(|source| base_name(source.name()) == file.name)
    }

    /// Returns one of the first `among` files that has this name and is not assigned to another file of the receipt.
    pub(super) fn left(&self, file: &ReceiptFile, among: usize) -> Option<usize> {
        (0..among).find(|&at| !self.taken[at] && base_name(self.sources[at].name()) == file.name)
    }

    /// Returns the check of the file at `at`, which has other bytes than the receipt states, and assigns it.
    pub(super) fn differing(&mut self, at: usize, name: &str, file: &ReceiptFile) -> Result<Check> {
        self.taken[at] = true;
        let told = |bytes: u64, sum: Option<Digest>| match sum {
            Some(sum) => format!("{bytes} bytes, SHA-256 {sum}"),
            None => format!("{bytes} bytes"),
        };
        let found = told(self.sources[at].len(), Some(self.sum(at)?));
        Ok(Check {
            expected: Some(told(file.bytes, file.sha256)),
            found: Some(found),
            ..Check::new(name, CheckResult::Differs)
        })
    }
}
