//! Receipts: the inputs, the outputs and the losses of an import or export (crate/FORMATS.md, "Receipt").

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::conversion::Conversion;
use super::digest::{DocumentKind, document_digest, optimizer_digest, weights_digest};
pub use super::receipt_parts::*;
use super::{ArtifactDigests, Base, StatedDigests};
use crate::error::{Refusal, Result, Warning, word};
use crate::formats::json::MAX_DEPTH;
use crate::formats::{Digest, Json, JsonFault, json, refuse_if};

/// Name of the file of a folder that is its receipt.
pub const RECEIPT: &str = "tabtune.receipt.json";

/// Version that is read and written.
const VERSION: u64 = 1;
/// Minimum share of the change that has to be left in a tensor that an adapter was merged into.
const MIN_SURVIVAL: f64 = 0.5;
/// Largest step, and largest integer in a document: JavaScript's numbers are exact up to it.
pub(crate) const MAX_COUNT: u64 = (1 << 53) - 1;

impl Base {
    /// Its weight files as a receipt lists them.
    pub(crate) fn receipt_files(&self) -> Vec<ReceiptFile> {
        let files = self.files.iter();
        files
            .map(|file| ReceiptFile::of_name(&file.name, file.bytes, file.sha256))
            .collect()
    }
}

/// Name, size and SHA-256 of a file that was written.
pub(crate) type Written<'a> = (&'a str, u64, Digest);

/// The receipt of an import or export: equal inputs, settings and version give an equal `receipt_digest`.
///
/// ```
/// use tabtune::state::{ModelIoArtifactReceipt, Operation};
///
/// let receipt = ModelIoArtifactReceipt::new(Operation::Convert).seal()?;
/// let text = receipt.to_text()?;
/// assert_eq!(ModelIoArtifactReceipt::read(&text, "tabtune.receipt.json")?, receipt);
/// # Ok::<(), tabtune::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ModelIoArtifactReceipt {
    /// Version of the format, always 1.
    pub version: u64,
    /// Operation that was performed.
    pub operation: Operation,
    /// Program that performed it.
    pub tool: Tool,
    /// Model that the result started from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<Base>,
    /// Record of the training.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub training: Option<TrainingRecord>,
    /// Files that were read.
    pub inputs: Vec<ReceiptFile>,
    /// Files that were written, without the receipt itself.
    pub outputs: Vec<ReceiptFile>,
    /// Digests of the output.
    pub digests: StatedDigests,
    /// Lists of the tensors by their treatment.
    pub tensors: ReceiptTensors,
    /// Lists of the groups by their treatment.
    pub groups: ReceiptGroups,
    /// Tensors that were written in another type, with the errors of the conversion.
    pub conversions: Vec<Conversion>,
    /// Comparisons that were made during the operation.
    pub checks: Vec<ReceiptCheck>,
    /// Warnings of the operation.
    pub warnings: Vec<ReceiptWarning>,
    /// Digest of the compatibility contract.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract_digest: Option<Digest>,
    /// Digest of all fields except this one and the two below; absent until the receipt is sealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt_digest: Option<Digest>,
    /// Time of the operation, if the caller states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Device of the operation, if the caller states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

impl ModelIoArtifactReceipt {
    /// Creates a receipt of this version that states nothing but the operation.
    pub fn new(operation: Operation) -> Self {
        Self {
            version: VERSION,
            operation,
            tool: Tool {
                name: "tabtune".into(),
                version: env!("CARGO_PKG_VERSION").into(),
            },
            base: None,
            training: None,
            inputs: Vec::new(),
            outputs: Vec::new(),
            digests: StatedDigests::default(),
            tensors: ReceiptTensors::default(),
            groups: ReceiptGroups::default(),
            conversions: Vec::new(),
            checks: Vec::new(),
            warnings: Vec::new(),
            contract_digest: None,
            receipt_digest: None,
            time: None,
            device: None,
        }
    }

    /// Computes the digest of its contents, without time and device.
    ///
    /// # Errors
    /// `receipt.invalid` or `config.invalid` if its contents are no JSON.
    pub fn digest(&self) -> Result<Digest> {
        let plain = Self {
            receipt_digest: None,
            time: None,
            device: None,
            ..self.clone()
        };
        let document = serde_json::to_value(plain).map_err(|error| invalid("").found(error))?;
        document_digest(DocumentKind::Receipt, &document)
    }

    /// Adds the digest of the receipt.
    ///
    /// # Errors
    /// The errors of [`Self::digest`].
    pub fn seal(mut self) -> Result<Self> {
        self.receipt_digest = Some(self.digest()?);
        Ok(self)
    }

    /// Adds the facts that are known after all files are written: `leaves` are those of the weights and of the state
    /// tensors.
    pub(crate) fn completed(
        &self,
        written: &[Written<'_>],
        [weights, state]: [BTreeMap<String, Digest>; 2],
        conversions: Vec<Conversion>,
        known: &ArtifactDigests,
    ) -> Result<Self> {
        let mut receipt = self.clone();
        receipt.outputs = written
            .iter()
            .map(|(name, bytes, sum)| ReceiptFile::of_name(name, *bytes, Some(*sum)))
            .collect();
        let weights = (!weights.is_empty())
            .then(|| weights_digest(&weights))
            .or(known.weights);
        let optimizer = (!state.is_empty())
            .then(|| optimizer_digest(&state))
            .or(known.optimizer);
        receipt.digests = known.digests(weights, optimizer)?;
        receipt.tensors.converted = conversions
            .iter()
            .filter(|one| one.from != one.to)
            .map(|one| one.tensor.clone())
            .collect();
        receipt.tensors.converted.sort_unstable();
        let lost = conversions
            .iter()
            .filter(|one| one.survival.is_some_and(|survival| survival < MIN_SURVIVAL));
        receipt.warnings.extend(lost.map(|one| {
            ReceiptWarning::from(&Warning::new(word!("export.lora.lost"), &one.tensor))
        }));
        receipt.conversions = conversions;
        receipt.seal()
    }

    /// Writes the document: indented, with one line feed at its end.
    ///
    /// # Errors
    /// `receipt.invalid` if its contents are no JSON.
    pub fn to_text(&self) -> Result<String> {
        let text = serde_json::to_string_pretty(self).map_err(|error| invalid("").found(error))?;
        Ok(text + "\n")
    }

    /// Reads a receipt from a document. Its digest is not compared: [`crate::bundle::verify`] does that.
    ///
    /// # Errors
    /// `receipt.invalid` for unknown fields, keys given twice, integers beyond 2^53 − 1, another version and a missing digest.
    pub fn read(text: &str, artifact: &str) -> Result<Self> {
        read(text).map_err(|error| error.in_file(artifact))
    }
}

fn read(text: &str) -> Result<ModelIoArtifactReceipt> {
    let document = json::parse(text, MAX_DEPTH).map_err(|fault| match fault {
        JsonFault::Syntax { at } | JsonFault::Depth { at } => {
            invalid("").expected("JSON").at(at as u64)
        }
        JsonFault::Duplicate { at, path } => invalid(&path).expected("each key once").at(at as u64),
    })?;
    check_counts(document)?;
    let receipt: ModelIoArtifactReceipt =
        json::typed(document, "").map_err(|wrong| invalid("").found(wrong.found))?;
    refuse_if(receipt.version != VERSION, || {
        invalid("version").expected(VERSION).found(receipt.version)
    })?;
    refuse_if(receipt.receipt_digest.is_none(), || {
        invalid("receipt_digest")
            .expected("a SHA-256")
            .found("none")
    })?;
    Ok(receipt)
}

fn invalid(subject: &str) -> Refusal {
    let refusal = Refusal::new(word!("receipt.invalid"));
    match subject {
        "" => refusal,
        _ => refusal.subject(subject),
    }
}

/// Refuses integers that some readers of JSON do not read exactly.
fn check_counts(value: Json<'_>) -> Result<()> {
    if let Json::Number(digits) = value {
        let integer = digits.parse::<i128>();
        let beyond = integer.is_ok_and(|number| number.unsigned_abs() > u128::from(MAX_COUNT));
        return refuse_if(beyond, || {
            invalid("")
                .expected("integers up to 2^53 - 1")
                .found(digits)
        });
    }
    value.items().try_for_each(check_counts)?;
    let mut entries = value.entries();
    entries.try_for_each(|(_, value)| check_counts(value))
}
