//! Computes checksums of the files that a model was opened from, and compares them.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::checksums::{Checksums, TensorSpan};
use super::tensor_hasher::TensorHasher;
use super::tensors::{Bundle, is_home};
use crate::error::{Error, Refusal, Result, refuse_all, word};
use crate::formats::{ByteSource, Digest, base_name, for_each_chunk, sha256_of};
use crate::state::{
    Base, BaseFile, ReceiptFile, SelectionReport, Tensor, VerifyPolicy, weights_digest,
};

/// Number of bytes in a piece, except for the last one of a file.
const PIECE_BYTES: u64 = 8 << 20;

impl Base {
    /// Describes the weight files of `bundle`.
    pub fn of_bundle(bundle: &Bundle) -> Self {
        let merged = bundle.merged().into_iter();
        let file = |file: &ReceiptFile| BaseFile {
            name: file.name.clone(),
            bytes: file.bytes,
            header_sha256: None,
            sha256: file.sha256,
            pieces: None,
        };
        Self {
            merged_adapter: merged
                .flat_map(|adapter| &adapter.inputs)
                .map(file)
                .collect(),
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
            let Some(source) = bundle.source_of(file) else {
                continue;
            };
            let at = checksums.files.len();
            let tensors = bundle.tensors.values();
            let own = tensors.filter(|tensor| is_home(source, tensor));
            let mut spans: Vec<TensorSpan> = own.filter_map(|one| span(one, at)).collect();
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
        let refuse = |found: &str| {
            Err(Error::invalid(
                "adapter",
                "a base as its files have it",
                found,
            ))
        };
        if bundle.merged().is_some() {
            return refuse("one that an adapter was merged into");
        }
        if bundle.selection != SelectionReport::default() {
            return refuse("one whose tensors were selected");
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
        let sum = |digest: Option<Digest>| digest.map_or(String::new(), |sum| sum.to_string());
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
        if policy != VerifyPolicy::Full {
            return Ok(());
        }
        let mut refusals = Vec::new();
        for (file, source) in self.files.iter().zip(bundle.base_sources()) {
            let Some(want) = &file.pieces else { continue };
            let got = pieces_of(source)?;
            let mut pieces = 0..want.len().max(got.len());
            if let Some(at) = pieces.find(|&at| want.get(at) != got.get(at)) {
                let piece = |pieces: &[Digest]| sum(pieces.get(at).copied());
                let subject = format!("{}, piece {at}", file.name);
                refusals.push(refuse(&subject, piece(want), piece(&got)));
            }
        }
        refuse_all(refusals)
    }
}

/// Computes the SHA-256 of each piece of a file, unless its owner knows them.
fn pieces_of(source: &dyn ByteSource) -> Result<Vec<Digest>> {
    if let Some(known) = source.pieces() {
        return Ok(known);
    }
    let len = source.len();
    let piece = |at: u64| {
        let begin = at * PIECE_BYTES;
        sha256_of(source, begin, len.min(begin + PIECE_BYTES))
    };
    (0..len.div_ceil(PIECE_BYTES)).map(piece).collect()
}

impl Bundle {
    /// Iterates over the weight files, in the order of [`Bundle::base`].
    fn base_sources(&self) -> impl Iterator<Item = &dyn ByteSource> {
        let files = self.base.files.iter();
        files.filter_map(|file| Some(self.source_of(file)?.as_ref()))
    }

    /// Finds the file that `file` describes.
    fn source_of(&self, file: &BaseFile) -> Option<&Rc<dyn ByteSource>> {
        let is = |source: &&Rc<dyn ByteSource>| {
            base_name(source.name()) == file.name && source.len() == file.bytes
        };
        self.files.iter().find(is)
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
            if let Some(span) = stored.stored() {
                let hasher = TensorHasher::of_tensor(stored);
                let leaf = hasher.leaf_in(span)?;
                leaves.insert(hasher.key, leaf);
            }
        }
        Ok(weights_digest(&leaves))
    }

    /// Tells if one reading of its weight files covers every tensor of the model, and nothing else.
    pub(crate) fn is_whole(&self) -> bool {
        let in_passing = |tensor: &Tensor| {
            let span = tensor.span();
            span.is_some_and(|span| TensorHasher::of_tensor(tensor).sum(span.bytes).is_some())
        };
        let plain = self.adapter.is_none() && self.selection == SelectionReport::default();
        plain && !self.tensors.is_empty() && self.tensors.values().all(in_passing)
    }

    /// Lists the files of the adapter. With `summed`, all of its weights are read for their checksum.
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

/// The position of a tensor of the file at `at`, for its checksum.
fn span(tensor: &Tensor, at: usize) -> Option<TensorSpan> {
    let span = tensor.span()?;
    let (hasher, end) = (TensorHasher::of_tensor(tensor), span.begin + span.bytes);
    Some(TensorSpan::new(hasher, at, span.begin, end))
}
