//! Writes the receipt of a stream, and a manifest, from the checksums of the bytes before them.

use super::checksums::{Checksums, Leaves};
use super::stream::{FileStream, Segment};
use crate::error::{Error, Result, Warning, word};
use crate::formats::Digest;
use crate::state::receipt::{MAX_COUNT, Written};
use crate::state::{
    ArtifactDigests, Conversion, ModelIoArtifactReceipt, ReceiptWarning, StateManifest,
    StatedDigests, changes_of, refuse_non_finite_as, weights_digest,
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
        let planned = self.planned_conversions();
        if let Some(training) = &mut draft.training
            && training.losses.evaluation.is_some()
        {
            let scaled = !draft.tensors.scaled.is_empty();
            training.losses.evaluation_before = changes_of(&planned, scaled);
        }
        let checksums = self.checksums()?;
        let mut longest = draft.clone();
        if self.finite == Some(false) {
            let weights = [(checksums.longest_name().to_string(), u64::MAX)];
            let warning = non_finite_warning(&weights, usize::MAX);
            longest.warnings.extend(warning);
        }
        let files = self.files.len();
        let sums = vec![Digest::of(&[]); files];
        let longest = self.completed(&longest, &sums, checksums.planned(), planned)?;
        let len = longest.to_text()?.len();
        self.push_late(name, len, move |stream| {
            let receipt = stream.finished(&draft, files)?;
            let text = receipt.to_text()?;
            stream.receipt = Some(receipt);
            padded(text, len)
        });
        Ok(())
    }

    /// Adds `manifest` with the digest of the weights in the files before it. The stream must compute checksums of its bytes
    /// ([`Self::summed`]).
    pub(crate) fn push_manifest(&mut self, name: &str, manifest: StateManifest) -> Result<()> {
        let write = move |weights: &Leaves| {
            let digests = StatedDigests {
                weights: Some(weights_digest(weights)),
                ..StatedDigests::default()
            };
            let manifest = StateManifest {
                digests: Some(digests),
                ..manifest.clone()
            };
            Ok(manifest.to_text()?.into_bytes())
        };
        let len = write(&Leaves::new())?.len();
        self.push_late(name, len, move |stream| write(&stream.checksums()?.weights));
        Ok(())
    }

    /// Completes `draft` with the SHA-256 of each file, the digests of weights and state, and the conversions.
    fn completed(
        &self,
        draft: &ModelIoArtifactReceipt,
        sums: &[Digest],
        leaves: [Leaves; 2],
        conversions: Vec<Conversion>,
    ) -> Result<ModelIoArtifactReceipt> {
        let files = self.files.iter().zip(sums);
        let written: Vec<Written<'_>> = files
            .map(|(file, sum)| (file.name.as_str(), file.bytes, *sum))
            .collect();
        draft.completed(&written, leaves, conversions, &self.known)
    }

    /// The checksums of the bytes so far.
    pub(super) fn checksums(&self) -> Result<&Checksums> {
        let unsummed = || Error::invalid("stream", "one that checksums what it gives", "none");
        self.checksums.as_ref().ok_or_else(unsummed)
    }

    /// The receipt after all files were returned; `None` before, and for a stream without one.
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

    /// Lists the weights so far that have NaN or infinite values, with their number.
    #[doc(hidden)]
    pub fn non_finite(&self) -> &[(String, u64)] {
        let checksums = self.checksums.as_ref();
        checksums.map_or(&[], |checksums| &checksums.non_finite)
    }

    /// Lists the conversions to be expected, each with the longest numbers.
    fn planned_conversions(&self) -> Vec<Conversion> {
        let encoded = self
            .segments
            .iter()
            .filter_map(|(_, segment)| match segment {
                Segment::Tensor(tensor) => tensor.reader()?.conversion(),
                _ => None,
            });
        let planned = encoded.map(|one| Conversion {
            max_abs_error: -f64::MIN_POSITIVE,
            non_finite: MAX_COUNT,
            survival: one.survival.map(|_| -f64::MIN_POSITIVE),
            ..one
        });
        planned.collect()
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

    /// Completes `draft` with the checksums of the `files` files before the receipt.
    fn finished(
        &self,
        draft: &ModelIoArtifactReceipt,
        files: usize,
    ) -> Result<ModelIoArtifactReceipt> {
        if self.finite == Some(true) {
            refuse_non_finite_as(word!("tensor.non-finite"), self.non_finite())?;
        }
        let checksums = self.checksums()?;
        let mut sums = checksums.files.clone();
        // Files without bytes that no others follow are not counted yet.
        sums.resize(files, Digest::of(&[]));
        let mut draft = draft.clone();
        if self.finite == Some(false) {
            let others = checksums.non_finite.len().saturating_sub(1);
            let warning = non_finite_warning(&checksums.non_finite, others);
            draft.warnings.extend(warning);
        }
        let leaves = [&checksums.weights, &checksums.state].map(Clone::clone);
        self.completed(&draft, &sums, leaves, self.conversions.clone())
    }
}

/// Warns about weights with NaN or infinite values, if there are any: names the first of them with the number of such values, and says how
/// many `more` there are.
fn non_finite_warning(weights: &[(String, u64)], more: usize) -> Option<ReceiptWarning> {
    let (name, count) = weights.first()?;
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let subject = format!("{name} ({count}){more}");
    Some((&Warning::new(word!("tensor.non-finite"), &subject)).into())
}

/// Pads the text to `len` bytes with spaces before its last line feed.
fn padded(text: String, len: usize) -> Result<Vec<u8>> {
    let mut bytes = text.into_bytes();
    if bytes.len() > len {
        return Err(Error::invalid(
            "receipt",
            format!("at most {len} bytes"),
            bytes.len(),
        ));
    }
    bytes.pop();
    bytes.resize(len - 1, b' ');
    bytes.push(b'\n');
    Ok(bytes)
}
