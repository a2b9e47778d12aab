//! What a model started from: the weight files that it was opened from, by their sums.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::counted::Counted;
use super::digest::weights_digest;
use super::receipt_parts::ReceiptFile;
use super::refusal::shown;
use super::sha256::{Digest, Hasher};
use super::source::{ByteSource, base_name, for_each_chunk};
use super::state::{SelectionReport, VerifyPolicy};
use super::sums::{Sums, TensorSpan};
use super::tensors::{Bundle, Entry, SourceFormat};
use crate::error::{Error, Fault, Refusal, Result, word};

/// Bytes of a piece, except for the last one of a file.
const PIECE_BYTES: u64 = 8 << 20;

/// What a model started from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Base {
    /// What its files call it, else the name of the first one, without its ending; empty in checkpoints that do not tell.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// `hf_folder` or `gguf`.
    pub format: String,
    /// The weight files.
    pub files: Vec<BaseFile>,
    /// Digest of its weights, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights_digest: Option<Digest>,
    /// How much of its files the last resume compared, where that was not all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<VerifyPolicy>,
}

/// A file of a [`Base`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaseFile {
    /// File name.
    pub name: String,
    /// Size.
    pub bytes: u64,
    /// SHA-256 of what lists its tensors: the length word and header of a safetensors file, everything before the data of a GGUF file.
    /// Absent in checkpoints that do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_sha256: Option<Digest>,
    /// SHA-256 of the whole file, where all of it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
    /// SHA-256 of each piece of 8 MiB, the last one shorter: of the base that an adapter is trained beside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pieces: Option<Vec<Digest>>,
}

impl BaseFile {
    /// The file `source`, whose header has this sum.
    pub(super) fn new(source: &dyn ByteSource, header_sha256: Digest) -> Self {
        Self {
            name: base_name(source.name()).to_string(),
            bytes: source.len(),
            header_sha256: Some(header_sha256),
            sha256: None,
            pieces: None,
        }
    }
}

impl Base {
    /// The base whose files call it `title`.
    pub(super) fn new(title: &str, format: SourceFormat, files: Vec<BaseFile>) -> Self {
        let stem = |file: &BaseFile| file.name.rsplit_once('.').map_or(file.name.clone(), |(stem, _)| stem.to_string());
        let name = if title.is_empty() { files.first().map(stem).unwrap_or_default() } else { title.to_string() };
        Self { name: shown(&name), format: format.to_string(), files, weights_digest: None, verified: None }
    }

    /// The weight files of `bundle`.
    pub fn of_bundle(bundle: &Bundle) -> Self {
        bundle.base.clone()
    }

    /// The same with the sum of each file that is among those of `bundle`, for which all of it is read, unless the sum is known. The digest
    /// of the weights is computed on the way, where one reading of all files is enough for it.
    pub fn hashed(mut self, bundle: &Bundle) -> Result<Self> {
        let whole = bundle.is_whole() && self.matches(&bundle.base);
        let mut sums = Sums::default();
        for file in self.files.iter_mut().filter(|file| file.sha256.is_none()) {
            let same = |source: &dyn ByteSource| base_name(source.name()) == file.name && source.len() == file.bytes;
            let Some(at) = bundle.files.iter().position(|source| same(source.as_ref())) else { continue };
            let home = sums.files.len();
            let mut spans: Vec<TensorSpan> =
                bundle.entries.values().filter(|entry| entry.source == at).filter_map(|entry| span(entry, home)).collect();
            spans.sort_by_key(|span| span.begin);
            spans.into_iter().for_each(|span| sums.expect(span));
            for_each_chunk(bundle.files[at].as_ref(), 0, file.bytes, 1, |piece| {
                sums.take(home, piece, file.bytes);
                Ok(())
            })?;
            file.sha256 = sums.files.get(home).copied();
        }
        if whole && sums.weights.len() == bundle.entries.len() {
            self.weights_digest = Some(weights_digest(&sums.weights));
        }
        Ok(self)
    }

    /// The same with the sums of the pieces of each file, unless the owner of the files knows them, and the digest of its weights: all of it is read.
    ///
    /// # Errors
    /// `config.invalid` for a model that is not what its files say, since another adapter was merged into it or only a part of it was taken:
    /// the files alone would not give it back.
    pub fn pieced(mut self, bundle: &Bundle) -> Result<Self> {
        let merged = bundle.adapter.is_some() && bundle.attached().is_none();
        if merged || bundle.selection != SelectionReport::default() {
            let found = if merged { "one that an adapter was merged into" } else { "one whose tensors were selected" };
            return Err(Error::InvalidConfig(vec![Fault::new("adapter", "a base as its files have it", found)]));
        }
        for (file, source) in self.files.iter_mut().zip(bundle.base_sources()) {
            file.pieces = Some(pieces_of(source)?);
        }
        self.weights_digest = Some(bundle.base_digest()?);
        Ok(self)
    }

    /// Refuses a model whose files are not these: their sizes and headers, and then, unless the policy is `Header`, every byte.
    ///
    /// # Errors
    /// `checkpoint.base.mismatch`, one for each file.
    pub fn check(&self, bundle: &Bundle, policy: VerifyPolicy) -> Result<()> {
        let sum = |digest: Option<Digest>| digest.map_or_else(String::new, |digest| digest.to_string());
        let told = |file: &BaseFile| format!("{} bytes, header {}", file.bytes, sum(file.header_sha256));
        let refuse = |subject: &str, want: String, got: String| {
            Refusal::new(word!("checkpoint.base.mismatch")).stage("bind").of(&self.name).subject(subject).expected(want).found(got)
        };
        let all = |base: &Self| base.files.iter().map(told).collect::<Vec<_>>().join("; ");
        if !self.matches(&bundle.base) {
            return Err(refuse(&bundle.base.name, all(self), all(&bundle.base)).into());
        }
        let mut refusals = Vec::new();
        let read = self.files.iter().zip(bundle.base_sources()).filter(|_| policy == VerifyPolicy::Full);
        for (file, source) in read {
            let Some(want) = &file.pieces else { continue };
            let got = pieces_of(source)?;
            if let Some(at) = (0..want.len().max(got.len())).find(|&at| want.get(at) != got.get(at)) {
                let piece = |pieces: &[Digest]| sum(pieces.get(at).copied());
                refusals.push(refuse(&format!("{}, piece {at}", file.name), piece(want), piece(&got)));
            }
        }
        if refusals.is_empty() { Ok(()) } else { Err(Error::Refused(refusals)) }
    }

    /// Takes the sums of whole files that `other` has of the same files.
    pub(crate) fn take_sums(&mut self, other: &Self) {
        for file in self.files.iter_mut().filter(|file| file.sha256.is_none()) {
            let same = other.files.iter().find(|one| (one.bytes, one.header_sha256) == (file.bytes, file.header_sha256));
            file.sha256 = same.and_then(|one| one.sha256);
        }
    }

    /// Whether these are the same files, whatever they are called: sizes, and the sums of headers where both tell them.
    pub fn matches(&self, other: &Self) -> bool {
        let sorted = |base: &Self| {
            // Older checkpoints also list what lies beside a GGUF file.
            let weights =
                base.files.iter().filter(|file| file.header_sha256.is_some() || file.name.to_ascii_lowercase().ends_with(".gguf"));
            let mut files: Vec<(u64, Option<Digest>)> = weights.map(|file| (file.bytes, file.header_sha256)).collect();
            files.sort_unstable();
            files
        };
        let (own, others) = (sorted(self), sorted(other));
        let told = own.iter().chain(&others).all(|(_, header)| header.is_some());
        let sizes = |files: &[(u64, Option<Digest>)]| files.iter().map(|(bytes, _)| *bytes).collect::<Vec<_>>();
        if told { own == others } else { sizes(&own) == sizes(&others) }
    }
}

/// The SHA-256 of each piece of a file.
fn pieces_of(source: &dyn ByteSource) -> Result<Vec<Digest>> {
    if let Some(known) = source.pieces() {
        return Ok(known);
    }
    let starts = (0..source.len().div_ceil(PIECE_BYTES)).map(|index| index * PIECE_BYTES);
    starts.map(|begin| sha256_of(source, begin, source.len().min(begin + PIECE_BYTES))).collect()
}

impl Bundle {
    /// The weight files, in the order of [`Bundle::base`].
    fn base_sources(&self) -> impl Iterator<Item = &dyn ByteSource> {
        let of = |file: &BaseFile| self.files.iter().find(|source| base_name(source.name()) == file.name && source.len() == file.bytes);
        self.base.files.iter().filter_map(move |file| of(file).map(AsRef::as_ref))
    }

    /// Digest of the weights that it was opened from, for which all of them are read unless it is known. Their bytes count in Hugging Face's
    /// layout, as every container of the same weights has them.
    pub(crate) fn base_digest(&self) -> Result<Digest> {
        if let Some(known) = self.base.weights_digest {
            return Ok(known);
        }
        let mut leaves = BTreeMap::new();
        for entry in self.entries.values() {
            let own = entry.replaced.as_deref().unwrap_or(entry);
            let counted = Counted::of_entry(own);
            let payload = counted.payload_in(self.files[own.source].as_ref(), own.begin, own.end.unwrap_or(own.begin))?;
            leaves.insert(counted.key.clone(), counted.leaf(payload));
        }
        Ok(weights_digest(&leaves))
    }

    /// Whether one reading of its weight files sees every tensor of the model, and nothing that is not theirs.
    pub(crate) fn is_whole(&self) -> bool {
        let in_passing = |entry: &Entry| entry.end.is_some_and(|end| Counted::of_entry(entry).sum(end - entry.begin).is_some());
        let plain = self.adapter.is_none() && self.selection == SelectionReport::default();
        plain && !self.entries.is_empty() && self.entries.values().all(in_passing)
    }

    /// The files of the adapter that was merged. With `summed`, all of its weights are read for their sum.
    pub(crate) fn adapter_files(&self, summed: bool) -> Result<Vec<ReceiptFile>> {
        let Some(adapter) = &self.adapter else { return Ok(Vec::new()) };
        let mut files = adapter.inputs.clone();
        if let Some(weights) = self.files.last().filter(|_| summed) {
            for file in files.iter_mut().filter(|file| file.sha256.is_none()) {
                file.sha256 = Some(sha256_of(weights.as_ref(), 0, weights.len())?);
            }
        }
        Ok(files)
    }
}

/// The place of a tensor of the file at `home`, to be summed.
fn span(entry: &Entry, home: usize) -> Option<TensorSpan> {
    Some(TensorSpan { counted: Counted::of_entry(entry), file: home, begin: entry.begin, end: entry.end?, state: false, again: None })
}

/// The SHA-256 of the bytes `begin..end` of a file, read piece by piece.
pub(crate) fn sha256_of(source: &dyn ByteSource, begin: u64, end: u64) -> Result<Digest> {
    let mut sum = Hasher::new();
    for_each_chunk(source, begin, end, 1, |piece| {
        sum.update(piece);
        Ok(())
    })?;
    Ok(sum.finish())
}
