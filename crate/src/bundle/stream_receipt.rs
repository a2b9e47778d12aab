//! Writes the receipt of a stream from the checksums of its bytes.

use super::checksums::Checksums;
use super::segment::Segment;
use super::stream::{FileInfo, FileStream};
use crate::error::{Error, Fault, Result, Warning, word};
use crate::formats::Digest;
use crate::state::receipt::{MAX_COUNT, Written};
use crate::state::{
    ArtifactDigests, Conversion, ModelIoArtifactReceipt, ReceiptWarning, changes_of,
    refuse_non_finite_as,
};

impl FileStream {
    /// Creates an empty stream that computes checksums of its bytes, for a receipt.
    #[doc(hidden)]
    pub fn summed() -> Self {
        let mut stream = Self::default();
        stream.checksums = Some(Checksums::default());
        stream
    }

    /// Adds the receipt as the last file: `draft` with the checksums of all files before it. Its size is that of the longest receipt that it
    /// may become. [`Self::know`] must be called before.
    pub(crate) fn push_receipt(
        &mut self,
        name: &str,
        mut draft: ModelIoArtifactReceipt,
    ) -> Result<()> {
        let planned: Vec<Conversion> = self.planned_conversions();
        let scaled = !draft.tensors.scaled.is_empty();
        if let Some(losses) = draft
            .training
            .as_mut()
            .map(|training| &mut training.losses)
            .filter(|losses| losses.evaluation.is_some())
        {
            losses.evaluation_before = changes_of(&planned, scaled);
        }
        let zeros = Digest::of(&[]);
        let written: Vec<Written<'_>> = self
            .files
            .iter()
            .map(|file| (file.name.as_str(), file.bytes, zeros))
            .collect();
        let checksums = self.checksums.as_ref().ok_or_else(unsummed)?;
        let mut longest = draft.clone();
        if self.finite == Some(false) {
            let name = checksums.longest_name();
            longest.warnings.push(non_finite_warning(
                &[(name.to_string(), u64::MAX)],
                usize::MAX,
            ));
        }
        let longest = longest.completed(&written, checksums.planned(), planned, &self.known)?;
        let bytes = longest.to_text()?.len() as u64;
        self.receipt = Some(draft);
        self.push(name, bytes, vec![Segment::Receipt(bytes)]);
        Ok(())
    }

    /// Returns the receipt after all files were returned; `None` before, and for a stream without one.
    pub fn receipt(&self) -> Option<&ModelIoArtifactReceipt> {
        self.receipt.as_ref().filter(|_| self.segments.is_empty())
    }

    /// Describes how the weights of the files so far may differ from those that the model has; `None` if they are the same.
    pub(crate) fn changes(&self) -> Option<String> {
        changes_of(&self.planned_conversions(), false)
    }

    /// Refuses weights with NaN or infinite values after all of them have passed, before the receipt, which is the last file; or if they are
    /// allowed, names them in the receipt. It must be called before the receipt is added.
    pub(crate) fn allow_non_finite(&mut self, allow: bool) {
        self.finite = Some(!allow);
    }

    /// Returns the weights so far that have NaN or infinite values, with their number.
    #[doc(hidden)]
    pub fn non_finite(&self) -> &[(String, u64)] {
        self.checksums
            .as_ref()
            .map_or(&[], |checksums| &checksums.non_finite)
    }

    /// Returns the conversions to be expected, each with the longest numbers.
    fn planned_conversions(&self) -> Vec<Conversion> {
        let encoded = self
            .segments
            .iter()
            .filter_map(|(_, segment)| match segment {
                Segment::Tensor(tensor) => tensor.reader()?.conversion(),
                _ => None,
            });
        encoded
            .map(|one| Conversion {
                max_abs_error: -f64::MIN_POSITIVE,
                non_finite: MAX_COUNT,
                survival: one.survival.map(|_| -f64::MIN_POSITIVE),
                ..one
            })
            .collect()
    }

    /// Writes the contents that depend on the checksums of the bytes before them, if they come next.
    pub(super) fn fill_in(&mut self) -> Result<()> {
        let bytes = match self.segments.front() {
            Some((_, Segment::Late(len, write))) => {
                let bytes = write(&self.checksums.as_ref().ok_or_else(unsummed)?.weights)?;
                if bytes.len() as u64 != *len {
                    return Err(Error::InvalidConfig(vec![Fault::new(
                        "stream",
                        format!("{len} bytes"),
                        bytes.len(),
                    )]));
                }
                bytes
            }
            Some((_, Segment::Receipt(len))) => {
                if self.finite == Some(true) {
                    refuse_non_finite_as(word!("tensor.non-finite"), self.non_finite())?;
                }
                let receipt = self.complete_receipt()?.ok_or_else(unsummed)?;
                let text = receipt.to_text()?;
                self.receipt = Some(receipt);
                padded(text, *len)?
            }
            _ => return Ok(()),
        };
        if let Some((_, segment)) = self.segments.front_mut() {
            *segment = Segment::Known(bytes);
        }
        Ok(())
    }

    /// Adds returned bytes to the checksums.
    pub(super) fn count(&mut self, file: usize, bytes: &[u8]) {
        let len = self.files.get(file).map_or(0, |file| file.bytes);
        if let Some(checksums) = &mut self.checksums {
            checksums.take(file, bytes, len);
        }
    }

    /// Sets the facts about the artifact that are known before its tensors are written.
    pub(crate) fn know(&mut self, known: ArtifactDigests) {
        self.known = known;
    }

    /// Reads again the tensors whose bytes enter the digest in another order than they passed.
    pub(super) async fn settle(&mut self) -> Result<()> {
        let Some(checksums) = &mut self.checksums else {
            return Ok(());
        };
        for span in std::mem::take(&mut checksums.owed) {
            if let Some(again) = &span.again {
                let payload = again.digest().await?;
                checksums.add(&span, payload);
            }
        }
        Ok(())
    }

    /// Returns the receipt with the checksums of all complete files.
    fn complete_receipt(&self) -> Result<Option<ModelIoArtifactReceipt>> {
        let (Some(draft), Some(checksums)) = (&self.receipt, &self.checksums) else {
            return Ok(None);
        };
        let sum = |at: usize, file: &FileInfo| match (checksums.files.get(at), file.bytes) {
            (None, 0) => Some(Digest::of(&[])),
            (sum, _) => sum.copied(),
        };
        // This excludes the receipt itself.
        let complete = self
            .files
            .iter()
            .enumerate()
            .filter_map(|(at, file)| Some((file.name.as_str(), file.bytes, sum(at, file)?)));
        let written: Vec<Written<'_>> = complete.collect();
        let mut draft = draft.clone();
        if self.finite == Some(false) && !checksums.non_finite.is_empty() {
            draft.warnings.push(non_finite_warning(
                &checksums.non_finite,
                checksums.non_finite.len() - 1,
            ));
        }
        draft
            .completed(
                &written,
                [&checksums.weights, &checksums.state].map(Clone::clone),
                self.conversions.clone(),
                &self.known,
            )
            .map(Some)
    }
}

/// Returns the warning about weights with NaN or infinite values: the first of them with the number of such values, and how many `more` there are.
fn non_finite_warning(weights: &[(String, u64)], more: usize) -> ReceiptWarning {
    let (name, count) = weights
        .first()
        .map_or(("", 0), |(name, count)| (name.as_str(), *count));
    let more = if more == 0 {
        String::new()
    } else {
        format!(" and {more} more")
    };
    ReceiptWarning::from(&Warning::new(
        word!("tensor.non-finite"),
        &format!("{name} ({count}){more}"),
    ))
}

/// Pads the text to `len` bytes with spaces before its last line feed.
fn padded(text: String, len: u64) -> Result<Vec<u8>> {
    let mut bytes = text.into_bytes();
    let missing = usize::try_from(len)
        .ok()
        .and_then(|len| len.checked_sub(bytes.len()));
    let too_long = || {
        Error::InvalidConfig(vec![Fault::new(
            "receipt",
            format!("at most {len} bytes"),
            bytes.len(),
        )])
    };
    let missing = missing.ok_or_else(too_long)?;
    bytes.pop();
    bytes.resize(bytes.len() + missing, b' ');
    bytes.push(b'\n');
    Ok(bytes)
}

fn unsummed() -> Error {
    Error::InvalidConfig(vec![Fault::new(
        "stream",
        "one that checksums what it gives",
        "none",
    )])
}
