//! Compares a receipt with files: everything that it states about them is computed again.

mod present_files;

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::Serialize;
use serde_json::Value;

use self::present_files::{Claim, PresentFiles};
use super::adapter::CONFIG as ADAPTER_CONFIG;
use super::file_digests::digests_of;
use super::files::MAX_DOCUMENT_BYTES;
use super::hf_folder::INDEX;
use super::tokenizer_files::TOKENIZER_FILES;
use crate::error::{Refusal, Result, word};
use crate::formats::{ByteSource, Digest, base_name, read_document};
use crate::state::receipt::{
    CheckResult, Evaluation, EvaluationRecord, ModelIoArtifactReceipt, Operation, RECEIPT,
    ReceiptFile,
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

    /// Compares two values.
    fn compared(name: &str, expected: impl ToString, found: impl ToString) -> Self {
        let (expected, found) = (expected.to_string(), found.to_string());
        if expected == found {
            return Self::new(name, CheckResult::Verified);
        }
        Self {
            name: name.to_string(),
            result: CheckResult::Differs,
            expected: Some(expected),
            found: Some(found),
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
    let Some(file) = sources
        .iter()
        .take(own)
        .find(|source| is_receipt(base_name(source.name())))
    else {
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
    let receipt =
        ModelIoArtifactReceipt::read(std::str::from_utf8(&bytes).map_err(not_utf8)?, file.name())?;
    let (mut verification, taken) = compare(&receipt, sources, own)?;
    if base_name(file.name()) == RECEIPT {
        for (source, taken) in sources.iter().zip(&taken).take(own) {
            let name = base_name(source.name());
            if *taken || !is_of_model(name) {
                continue;
            }
            verification.ok = false;
            verification.checks.push(Check {
                expected: Some("no such file".into()),
                found: Some("a file that the receipt does not list".into()),
                ..Check::new(&format!("unlisted:{name}"), CheckResult::Differs)
            });
        }
    }
    Ok((verification, taken))
}

/// Returns whether a program that loads the folder of a model would read a file of this name.
fn is_of_model(name: &str) -> bool {
    let documents = [
        "config.json",
        "generation_config.json",
        INDEX,
        ADAPTER_CONFIG,
    ];
    let weights = [".safetensors", ".bin", ".pt", ".pth", ".gguf"];
    documents.contains(&name)
        || CARRIED_FILES.contains(&name)
        || TOKENIZER_FILES.contains(&name)
        || weights.iter().any(|end| name.ends_with(end))
}

/// Returns whether a file of this name is a receipt: that of a folder, or that of a single file.
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
    let stated = receipt
        .receipt_digest
        .map_or_else(String::new, |digest| digest.to_string());
    let mut checks = vec![Check::compared("receipt_digest", stated, receipt.digest()?)];
    let mut files = PresentFiles {
        sources,
        sums: vec![None; sources.len()],
        taken: vec![false; sources.len()],
    };
    let (outputs, inputs) = (
        receipt.outputs.iter().map(|file| (Claim::Output, file)),
        receipt.inputs.iter(),
    );
    let claims: Vec<(Claim, &ReceiptFile)> = outputs
        .chain(inputs.map(|file| (Claim::Input, file)))
        .collect();
    let among = |claim: Claim| {
        if claim == Claim::Output {
            own
        } else {
            sources.len()
        }
    };
    // Equal files are assigned first, so that each remaining file is compared with one that nothing equals.
    let mut found = Vec::new();
    for (claim, file) in &claims {
        found.push(files.equal(file, among(*claim))?);
    }
    for ((claim, file), equal) in claims.iter().zip(&found) {
        let name = format!("{}:{}", claim.word(), file.name);
        checks.push(match (equal, files.left(file, among(*claim))) {
            (Some(_), _) if file.sha256.is_none() => Check::new(&name, CheckResult::Skipped),
            (Some(_), _) => Check::new(&name, CheckResult::Verified),
            (None, Some(at)) => files.differing(at, &name, file)?,
            (None, None) if *claim == Claim::Output => Check::new(&name, CheckResult::Absent),
            (None, None) => Check::new(&name, CheckResult::Skipped),
        });
    }
    checks.extend(digest_checks(receipt, &files, &found, own));
    checks.extend(evaluation_check(receipt));
    checks.extend(
        receipt
            .contract_digest
            .map(|_| Check::new("contract", CheckResult::Skipped)),
    );
    let failed = |check: &Check| matches!(check.result, CheckResult::Differs | CheckResult::Absent);
    Ok((
        Verification {
            ok: !checks.iter().any(failed),
            checks,
        },
        files.taken,
    ))
}

/// Checks that the evaluation of a receipt belongs to its weights and data; the evaluation itself cannot be repeated. If the receipt lists
/// values that differ from those that were evaluated, it must say that they were changed afterwards.
fn evaluation_check(receipt: &ModelIoArtifactReceipt) -> Option<Check> {
    let training = receipt.training.as_ref()?;
    Some(match training.losses.evaluation? {
        EvaluationRecord::Loss(_) => Check::new("evaluation", CheckResult::Skipped),
        EvaluationRecord::Of(Evaluation {
            step, data_digest, ..
        }) => {
            let of = |step: u64, digest: Digest| format!("step {step} on data {digest}");
            let changed = |one: &&Conversion| one.max_abs_error > 0.0 || one.survival.is_some();
            let changed: Vec<Conversion> = receipt
                .conversions
                .iter()
                .filter(changed)
                .cloned()
                .collect();
            let changes = changes_of(&changed, !receipt.tensors.scaled.is_empty());
            if let Some(changes) = changes.filter(|_| training.losses.evaluation_before.is_none()) {
                return Some(Check::compared(
                    "evaluation",
                    format!("measured before {changes}"),
                    "of these weights",
                ));
            }
            // If none of the data is kept back, other data were evaluated.
            let others = training
                .settings
                .get("validation_fraction")
                .and_then(Value::as_f64)
                == Some(0.0);
            let data = if others {
                data_digest
            } else {
                training.data.digest
            };
            Check::compared(
                "evaluation",
                of(training.completed_steps, data),
                of(step, data_digest),
            )
        }
    })
}

/// Returns the checks of the stated digests: those of the output, or of the input if nothing was written. The result of an operation that
/// stayed in memory cannot be computed again, and of a selection only a part is present.
fn digest_checks(
    receipt: &ModelIoArtifactReceipt,
    files: &PresentFiles<'_>,
    found: &[Option<usize>],
    own: usize,
) -> Vec<Check> {
    let wrote = !receipt.outputs.is_empty();
    let among = if wrote { own } else { files.sources.len() };
    let claims = if wrote {
        &receipt.outputs
    } else {
        &receipt.inputs
    };
    // The positions of outputs come first.
    let part = |(file, at): (&'_ ReceiptFile, &Option<usize>)| {
        let at = at.or_else(|| files.named(file, among))?;
        Some((file.role.clone(), at))
    };
    let parts: Option<Vec<(String, usize)>> = claims.iter().zip(found).map(part).collect();
    let each = |result: &dyn Fn(&str, Digest) -> Check| -> Vec<Check> {
        let stated = receipt.digests.each().into_iter();
        stated
            .filter_map(|(name, digest)| Some(result(name, digest?)))
            .collect()
    };
    let whole = receipt.tensors.dropped.is_empty() && receipt.tensors.renamed.is_empty();
    let parts = match parts {
        _ if !wrote && receipt.operation != Operation::Import => {
            return each(&|name, _| Check::new(name, CheckResult::Skipped));
        }
        _ if !wrote && !whole => return each(&|name, _| Check::new(name, CheckResult::Subset)),
        // Nothing here reads these files: another version wrote them, or the format is only for other programs.
        Some(parts) if wrote && parts.iter().all(|(role, _)| role == "other") => {
            return each(&|name, _| Check::new(name, CheckResult::Skipped));
        }
        Some(parts) => parts,
        None if wrote => return each(&|name, _| Check::new(name, CheckResult::Absent)),
        None => return each(&|name, _| Check::new(name, CheckResult::Skipped)),
    };
    let parts: Vec<(&str, &Rc<dyn ByteSource>)> = parts
        .iter()
        .map(|(role, at)| (role.as_str(), &files.sources[*at]))
        .collect();
    match digests_of(&parts, receipt.digests.weights) {
        Ok(digests) => {
            let found: BTreeMap<&str, Option<Digest>> = digests.each().into();
            each(&|name, stated| match found.get(name).copied().flatten() {
                Some(found) => Check::compared(name, stated, found),
                None => Check::compared(name, stated, "none"),
            })
        }
        // A file that differs may not even open.
        Err(error) => each(&|name, stated| Check {
            found: Some(error.to_string()),
            ..Check::compared(name, stated, "")
        }),
    }
}
