//! Compares a receipt with files: everything that it states about them is computed again.

mod present_files;

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::Serialize;
use serde_json::Value;

use self::present_files::PresentFiles;
use super::adapter::CONFIG as ADAPTER_CONFIG;
use super::file_digests::digests_of;
use super::files::{CONFIG, GENERATION, MAX_DOCUMENT_BYTES};
use super::folder_weights::INDEX;
use super::tokenizer_files::TOKENIZER_FILES;
use crate::error::{Refusal, Result, word};
use crate::formats::{ByteSource, Digest, base_name, read_document};
use crate::state::receipt::{
    CheckResult, Evaluation, EvaluationRecord, ModelIoArtifactReceipt, Operation, RECEIPT,
};
use crate::state::{CARRIED_FILES, Conversion, changes_of};

/// One comparison, and its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check {
    /// Name: `receipt_digest`, `weights`, `optimizer`, `input:<file>`, `output:<file>`, …
    pub name: String,
    /// Result of the comparison.
    pub result: CheckResult,
    /// Value that the receipt states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// Value that was found instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
}

/// Result of verifying a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verification {
    /// True if every output is present and nothing differs. Inputs may be elsewhere.
    pub ok: bool,
    /// All comparisons.
    pub checks: Vec<Check>,
}

impl Check {
    fn new(name: &str, result: CheckResult) -> Self {
        Self {
            name: name.to_string(),
            result,
            expected: None,
            found: None,
        }
    }

    fn differing(name: &str, expected: impl ToString, found: impl ToString) -> Self {
        Self {
            expected: Some(expected.to_string()),
            found: Some(found.to_string()),
            ..Self::new(name, CheckResult::Differs)
        }
    }

    /// Compares two values.
    fn compared<T: ToString + PartialEq>(name: &str, expected: T, found: T) -> Self {
        if expected == found {
            Self::new(name, CheckResult::Verified)
        } else {
            Self::differing(name, expected, found)
        }
    }
}

/// Verifies the files of a folder, or of an export, against `receipt`, the text of a receipt, or without it against the receipt among them.
/// Without any receipt the only check, `receipt`, is absent, and nothing is verified: the writing of such a folder was interrupted.
///
/// # Errors
/// `receipt.invalid`, and errors of reading.
pub fn verify_files(sources: &[Rc<dyn ByteSource>], receipt: Option<&str>) -> Result<Verification> {
    if let Some(text) = receipt {
        return verify(&ModelIoArtifactReceipt::read(text, RECEIPT)?, sources);
    }
    Ok(verify_with_inputs(sources, sources.len())?.0)
}

/// Verifies as [`verify_files`] does, against the receipt among the first `own` of the `sources`. The others can only be inputs: they never
/// take the place of a file that the receipt lists as written. Returns also, for each source, if the receipt lists it.
///
/// # Errors
/// `receipt.invalid`, and errors of reading.
pub fn verify_with_inputs(
    sources: &[Rc<dyn ByteSource>],
    own: usize,
) -> Result<(Verification, Vec<bool>)> {
    let mut own_files = sources.iter().take(own);
    let Some(file) = own_files.find(|source| is_receipt(base_name(source.name()))) else {
        let none = Verification {
            ok: false,
            checks: vec![Check::new("receipt", CheckResult::Absent)],
        };
        return Ok((none, vec![false; sources.len()]));
    };
    let bytes = read_document(file.as_ref(), MAX_DOCUMENT_BYTES)?;
    let not_utf8 = |_| {
        Refusal::new(word!("receipt.invalid"))
            .of(file.name())
            .expected("UTF-8")
    };
    let text = std::str::from_utf8(&bytes).map_err(not_utf8)?;
    let receipt = ModelIoArtifactReceipt::read(text, file.name())?;
    let (mut verification, taken) = compare(&receipt, sources, own)?;
    let of_folder = base_name(file.name()) == RECEIPT;
    for (source, taken) in sources.iter().zip(&taken).take(own) {
        let name = base_name(source.name());
        if of_folder && !taken && is_of_model(name) {
            verification.ok = false;
            verification.checks.push(Check::differing(
                &format!("unlisted:{name}"),
                "no such file",
                "a file that the receipt does not list",
            ));
        }
    }
    Ok((verification, taken))
}

/// Tells if a program that loads the folder of a model would read a file of this name.
fn is_of_model(name: &str) -> bool {
    let weights = [".safetensors", ".bin", ".pt", ".pth", ".gguf"];
    [CONFIG, GENERATION, INDEX, ADAPTER_CONFIG].contains(&name)
        || CARRIED_FILES.contains(&name)
        || TOKENIZER_FILES.contains(&name)
        || weights.iter().any(|end| name.ends_with(end))
}

/// Tells if a file of this name is a receipt: that of a folder, or that of a single file.
fn is_receipt(name: &str) -> bool {
    name == RECEIPT || name.ends_with(".receipt.json")
}

/// Computes again what `receipt` states: its own digest, size and SHA-256 of every file, and the digests of weights, optimizer, groups,
/// tokenizer and templates in the files that it lists as written. Files are found by their names; if an input and an output have the same name,
/// the checksums distinguish them.
///
/// # Errors
/// Errors of reading. A difference is a check and not an error.
pub fn verify(
    receipt: &ModelIoArtifactReceipt,
    sources: &[Rc<dyn ByteSource>],
) -> Result<Verification> {
    Ok(compare(receipt, sources, sources.len())?.0)
}

/// Compares `receipt` with the `sources`, of which the first `own` can be files that were written. Returns also which of them it lists.
fn compare(
    receipt: &ModelIoArtifactReceipt,
    sources: &[Rc<dyn ByteSource>],
    own: usize,
) -> Result<(Verification, Vec<bool>)> {
    let stated = receipt.receipt_digest.map(|digest| digest.to_string());
    let digest = receipt.digest()?.to_string();
    let mut checks = vec![Check::compared(
        "receipt_digest",
        stated.unwrap_or_default(),
        digest,
    )];
    let mut files = PresentFiles {
        sources,
        sums: vec![None; sources.len()],
        taken: vec![false; sources.len()],
    };
    let outputs = receipt.outputs.iter().map(|file| ("output", file, own));
    let inputs = receipt.inputs.iter();
    let inputs = inputs.map(|file| ("input", file, sources.len()));
    // Equal files are assigned first, so that each remaining file is compared with one that nothing equals.
    let mut claims = Vec::new();
    for (claim, file, among) in outputs.chain(inputs) {
        claims.push((claim, file, among, files.equal(file, among)?));
    }
    for &(claim, file, among, equal) in &claims {
        let name = format!("{claim}:{}", file.name);
        checks.push(match (equal, files.left(file, among)) {
            (Some(_), _) if file.sha256.is_none() => Check::new(&name, CheckResult::Skipped),
            (Some(_), _) => Check::new(&name, CheckResult::Verified),
            (None, Some(at)) => files.differing(at, &name, file)?,
            (None, None) if claim == "output" => Check::new(&name, CheckResult::Absent),
            (None, None) => Check::new(&name, CheckResult::Skipped),
        });
    }
    let found: Vec<Option<usize>> = claims.iter().map(|(.., equal)| *equal).collect();
    checks.extend(digest_checks(receipt, &files, &found, own));
    checks.extend(evaluation_check(receipt));
    let contract = receipt.contract_digest.iter();
    checks.extend(contract.map(|_| Check::new("contract", CheckResult::Skipped)));
    let failed = |check: &Check| matches!(check.result, CheckResult::Differs | CheckResult::Absent);
    let ok = !checks.iter().any(failed);
    Ok((Verification { ok, checks }, files.taken))
}

/// Checks that the evaluation of a receipt belongs to its weights and data; the evaluation itself cannot be repeated. If the receipt lists
/// values that differ from those that were evaluated, it must say that they were changed afterwards.
fn evaluation_check(receipt: &ModelIoArtifactReceipt) -> Option<Check> {
    let training = receipt.training.as_ref()?;
    let (step, data_digest) = match training.losses.evaluation? {
        EvaluationRecord::Loss(_) => return Some(Check::new("evaluation", CheckResult::Skipped)),
        EvaluationRecord::Of(Evaluation {
            step, data_digest, ..
        }) => (step, data_digest),
    };
    let changed = |one: &&Conversion| one.max_abs_error > 0.0 || one.survival.is_some();
    let changed = receipt.conversions.iter().filter(changed);
    let changed: Vec<Conversion> = changed.cloned().collect();
    let changes = changes_of(&changed, !receipt.tensors.scaled.is_empty());
    if let (Some(changes), None) = (changes, &training.losses.evaluation_before) {
        let expected = format!("measured before {changes}");
        return Some(Check::differing("evaluation", expected, "of these weights"));
    }
    // If none of the data is kept back, other data were evaluated.
    let fraction = training.settings.get("validation_fraction");
    let data = match fraction.and_then(Value::as_f64) {
        Some(0.0) => data_digest,
        _ => training.data.digest,
    };
    let of = |step: u64, digest: Digest| format!("step {step} on data {digest}");
    Some(Check::compared(
        "evaluation",
        of(training.completed_steps, data),
        of(step, data_digest),
    ))
}

/// Checks the stated digests: those of the output, or of the input if nothing was written. The result of an operation that
/// stayed in memory cannot be computed again, and of a selection only a part is present.
fn digest_checks(
    receipt: &ModelIoArtifactReceipt,
    files: &PresentFiles<'_>,
    found: &[Option<usize>],
    own: usize,
) -> Vec<Check> {
    let wrote = !receipt.outputs.is_empty();
    let (claims, among) = if wrote {
        (&receipt.outputs, own)
    } else {
        (&receipt.inputs, files.sources.len())
    };
    // The positions of outputs come first.
    let claims = claims.iter().zip(found);
    let parts: Option<Vec<_>> = claims
        .map(|(file, at)| {
            let at = at.or_else(|| files.named(file, among))?;
            Some((file.role.as_str(), &files.sources[at]))
        })
        .collect();
    let stated = receipt.digests.each().into_iter();
    let stated = stated.filter_map(|(name, digest)| Some((name, digest?)));
    let whole = receipt.tensors.dropped.is_empty() && receipt.tensors.renamed.is_empty();
    let unread = match &parts {
        _ if !wrote && receipt.operation != Operation::Import => CheckResult::Skipped,
        _ if !wrote && !whole => CheckResult::Subset,
        // Nothing here reads these files: another version wrote them, or the format is only for other programs.
        Some(parts) if wrote && parts.iter().all(|(role, _)| *role == "other") => {
            CheckResult::Skipped
        }
        Some(parts) => {
            return match digests_of(parts, receipt.digests.weights) {
                Ok(digests) => {
                    let found: BTreeMap<&str, Option<Digest>> = digests.each().into();
                    stated
                        .map(|(name, stated)| match found[name] {
                            Some(found) => Check::compared(name, stated, found),
                            None => Check::differing(name, stated, "none"),
                        })
                        .collect()
                }
                // A file that differs may not even open.
                Err(error) => stated
                    .map(|(name, stated)| Check::differing(name, stated, &error))
                    .collect(),
            };
        }
        None if wrote => CheckResult::Absent,
        None => CheckResult::Skipped,
    };
    stated.map(|(name, _)| Check::new(name, unread)).collect()
}
