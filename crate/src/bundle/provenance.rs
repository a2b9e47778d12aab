//! Computes checksums of the files that a model was opened from, and compares them.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::checksums::{Checksums, TensorSpan};
use super::tensor_hasher::TensorHasher;
use super::tensors::{Bundle, home};
use crate::error::{Error, Fault, Refusal, Result, word};
use crate::formats::{ByteSource, Digest, base_name, for_each_chunk, sha256_of};
use crate::state::{
    Base, BaseFile, Bytes, ReceiptFile, SelectionReport, Tensor, VerifyPolicy, weights_digest,
};

/// Number of bytes in a piece, except for the last one of a file.
const PIECE_BYTES: u64 = 8 << 20;

impl Base {
    /// Returns the weight files of `bundle`.
    pub fn of_bundle(bundle: &Bundle) -> Self {
        let merged = bundle
            .adapter
            .iter()
            .filter(|_| bundle.factors.is_empty())
            .flat_map(|adapter| &adapter.inputs);
        let file = |file: &ReceiptFile| {
            let ReceiptFile {
                name,
                bytes,
                sha256,
                ..
            } = file.clone();
            BaseFile {
                name,
                bytes,
                header_sha256: None,
                sha256,
                pieces: None,
            }
        };
        Self {
            merged_adapter: merged.map(file).collect(),
            ..bundle.base.clone()
        }
    }

    /// Adds the checksum of each file that is among those of `bundle`; the whole file is read unless the checksum is known. The digest of the
    /// weights is computed at the same time, if one reading of all files is enough for it.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn hashed(mut self, bundle: &Bundle) -> Result<Self> {
        let whole = bundle.is_whole() && self.matches(&bundle.base);
        let mut checksums = Checksums::default();
        for file in self.files.iter_mut().filter(|file| file.sha256.is_none()) {
            let same = |source: &dyn ByteSource| {
                base_name(source.name()) == file.name && source.len() == file.bytes
            };
            let Some(source) = bundle.files.iter().find(|source| same(source)) else {
                continue;
            };
            let at = checksums.files.len();
            let mut spans: Vec<TensorSpan> = bundle
                .tensors
                .values()
                .filter(|tensor| home(tensor).is_some_and(|home| Rc::ptr_eq(home, source)))
                .filter_map(|tensor| span(tensor, at))
                .collect();
            spans.sort_by_key(|span| span.begin);
            spans.into_iter().for_each(|span| checksums.expect(span));
            for_each_chunk(source, 0, file.bytes, 1, |piece| {
                checksums.take(at, piece, file.bytes);
                Ok(())
            })?;
            file.sha256 = checksums.files.get(at).copied();
        }
        if whole && checksums.weights.len() == bundle.tensors.len() {
            self.weights_digest = Some(weights_digest(&checksums.weights));
        }
        Ok(self)
    }

    /// Adds the digests of the pieces of each file, and the digest of its weights. All of it is read, unless the owner of the files knows the
    /// pieces.
    ///
    /// # Errors
    /// `config.invalid` for a model that differs from its files, because another adapter was merged into it or only a part of it was taken: the
    /// files alone could not restore it.
    pub fn pieced(mut self, bundle: &Bundle) -> Result<Self> {
        let merged = bundle.adapter.is_some() && bundle.attached().is_none();
        if merged || bundle.selection != SelectionReport::default() {
            let found = if merged {
                "one that an adapter was merged into"
            } else {
                "one whose tensors were selected"
            };
            return Err(Error::InvalidConfig(vec![Fault::new(
                "adapter",
                "a base as its files have it",
                found,
            )]));
        }
        for (file, source) in self.files.iter_mut().zip(bundle.base_sources()) {
            file.pieces = Some(pieces_of(source)?);
        }
        self.weights_digest = Some(bundle.base_digest()?);
        Ok(self)
    }

    /// Refuses a model with other files: first sizes and headers are compared, and then, unless the policy is `Header`, every byte.
    ///
    /// # Errors
    /// `checkpoint.base.mismatch`, one for each file.
    pub fn check(&self, bundle: &Bundle, policy: VerifyPolicy) -> Result<()> {
        let sum =
            |digest: Option<Digest>| digest.map_or_else(String::new, |digest| digest.to_string());
        let told =
            |file: &BaseFile| format!("{} bytes, header {}", file.bytes, sum(file.header_sha256));
        let refuse = |subject: &str, want: String, got: String| {
            Refusal::new(word!("checkpoint.base.mismatch"))
                .stage("bind")
                .of(&self.name)
                .subject(subject)
                .expected(want)
                .found(got)
        };
        let all = |base: &Self| base.files.iter().map(told).collect::<Vec<_>>().join("; ");
        if !self.matches(&bundle.base) {
            return Err(refuse(&bundle.base.name, all(self), all(&bundle.base)).into());
        }
        let mut refusals = Vec::new();
        let read = self
            .files
            .iter()
            .zip(bundle.base_sources())
            .filter(|_| policy == VerifyPolicy::Full);
        for (file, source) in read {
            let Some(want) = &file.pieces else { continue };
            let got = pieces_of(source)?;
            if let Some(at) = (0..want.len().max(got.len())).find(|&at| want.get(at) != got.get(at))
            {
                let piece = |pieces: &[Digest]| sum(pieces.get(at).copied());
                refusals.push(refuse(
                    &format!("{}, piece {at}", file.name),
                    piece(want),
                    piece(&got),
                ));
            }
        }
        if refusals.is_empty() {
            Ok(())
        } else {
            Err(Error::Refused(refusals))
        }
    }
}

/// Returns the SHA-256 of each piece of a file.
fn pieces_of(source: &dyn ByteSource) -> Result<Vec<Digest>> {
    if let Some(known) = source.pieces() {
        return Ok(known);
    }
    let starts = (0..source.len().div_ceil(PIECE_BYTES)).map(|index| index * PIECE_BYTES);
    starts
        .map(|begin| sha256_of(source, begin, source.len().min(begin + PIECE_BYTES)))
        .collect()
}

impl Bundle {
    /// Iterates over the weight files, in the order of [`Bundle::base`].
    fn base_sources(&self) -> impl Iterator<Item = &dyn ByteSource> {
        let of = |file: &BaseFile| {
            self.files
                .iter()
                .find(|source| base_name(source.name()) == file.name && source.len() == file.bytes)
        };
        self.base
            .files
            .iter()
            .filter_map(move |file| of(file).map(AsRef::as_ref))
    }

    /// Computes the digest of the weights that it was opened from, for which all of them are read unless it is known. Their bytes enter in
    /// Hugging Face's layout, so that every container of the same weights has the same digest.
    pub(crate) fn base_digest(&self) -> Result<Digest> {
        if let Some(known) = self.base.weights_digest {
            return Ok(known);
        }
        let mut leaves = BTreeMap::new();
        for name in self.tensors.keys() {
            let stored = self.stored(name);
            let hasher = TensorHasher::of_tensor(stored);
            if let Bytes::Span(span) = stored.bytes() {
                let payload = hasher.payload_in(&span.stored)?;
                leaves.insert(hasher.key.clone(), hasher.leaf(payload));
            }
        }
        Ok(weights_digest(&leaves))
    }

    /// Returns whether one reading of its weight files covers every tensor of the model, and nothing else.
    pub(crate) fn is_whole(&self) -> bool {
        let in_passing = |tensor: &Tensor| {
            let span = tensor.span();
            span.is_some_and(|span| TensorHasher::of_tensor(tensor).sum(span.bytes).is_some())
        };
        let plain = self.adapter.is_none() && self.selection == SelectionReport::default();
        plain && !self.tensors.is_empty() && self.tensors.values().all(in_passing)
    }

    /// Returns the files of the merged adapter. With `summed`, all of its weights are read for their checksum.
    pub(crate) fn adapter_files(&self, summed: bool) -> Result<Vec<ReceiptFile>> {
        let Some(adapter) = &self.adapter else {
            return Ok(Vec::new());
        };
        let mut files = adapter.inputs.clone();
        if let Some(weights) = self.files.last().filter(|_| summed) {
            for file in files.iter_mut().filter(|file| file.sha256.is_none()) {
                file.sha256 = Some(sha256_of(weights.as_ref(), 0, weights.len())?);
            }
        }
        Ok(files)
    }
}

/// Returns the position of a tensor of the file at `at`, for its checksum.
fn span(tensor: &Tensor, at: usize) -> Option<TensorSpan> {
    let span = tensor.span()?;
    Some(TensorSpan {
        hasher: TensorHasher::of_tensor(tensor),
        file: at,
        begin: span.begin,
        end: span.begin + span.bytes,
        state: false,
        again: None,
    })
}
