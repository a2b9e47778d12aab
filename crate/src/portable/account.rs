//! Contents of the receipts of operations on states: the files that they come from, and the treatment of tensors and groups.

use std::rc::Rc;

use super::payload::Payload;
use super::source_word::SourceWord;
use super::state_dict::PortableModelStateDict;
use crate::bundle::PortableTokenizerBinding;
use crate::error::Result;
use crate::formats::{ByteSource, Digest, SourceSpan, Warning};
use crate::state::{
    ArtifactDigests, CheckResult, ModelIoArtifactReceipt, Operation, ReceiptCheck, ReceiptFile, ReceiptGroups, ReceiptTensors,
    ReceiptWarning, SelectionReport,
};

/// A file that an artifact was read from.
#[derive(Debug, Clone)]
pub(super) struct Input {
    file: ReceiptFile,
    /// The whole file, unless its checksum is known.
    all: Option<SourceSpan>,
}

impl Input {
    pub(super) fn of(source: &Rc<dyn ByteSource>) -> Self {
        let all = SourceSpan { source: Rc::clone(source), begin: 0, bytes: source.len() };
        Self { file: ReceiptFile::of_name(source.name(), source.len(), None), all: Some(all) }
    }

    pub(super) fn summed(source: &dyn ByteSource, role: &str, sum: Digest) -> Self {
        let file = ReceiptFile { role: role.to_string(), ..ReceiptFile::of_name(source.name(), source.len(), Some(sum)) };
        Self { file, all: None }
    }

    /// Returns its entry in a receipt. With `read`, all of it is read, unless its checksum is known.
    async fn told(&self, read: bool) -> Result<ReceiptFile> {
        let sum = match &self.all {
            Some(SourceSpan { source, begin, bytes }) if read => {
                Some(Payload::of_source(Rc::clone(source), *begin, *bytes).digest().await?)
            }
            _ => self.file.sha256,
        };
        Ok(ReceiptFile { sha256: sum, ..self.file.clone() })
    }
}

/// Creates the receipt of an operation with its tensors and groups.
pub(super) fn account(operation: Operation, report: &SelectionReport, warnings: &[Warning]) -> ModelIoArtifactReceipt {
    ModelIoArtifactReceipt {
        tensors: ReceiptTensors {
            admitted: report.admitted.clone(),
            dropped: report.dropped.clone(),
            renamed: report.renamed.clone(),
            ..ReceiptTensors::default()
        },
        groups: ReceiptGroups { admitted: report.groups_admitted.clone(), dropped: report.groups_dropped.clone() },
        warnings: warnings.iter().map(ReceiptWarning::from).collect(),
        ..ModelIoArtifactReceipt::new(operation)
    }
}

/// Creates the receipt of an import of these files; with `read`, all of them are read for their checksums.
pub(super) async fn imported(
    inputs: &[Input],
    report: &SelectionReport,
    warnings: &[Warning],
    read: bool,
) -> Result<ModelIoArtifactReceipt> {
    let mut account = account(Operation::Import, report, warnings);
    for input in inputs {
        account.inputs.push(input.told(read).await?);
    }
    if !read {
        account.checks.push(ReceiptCheck { name: "inputs".into(), result: CheckResult::Skipped });
    }
    Ok(account)
}

impl PortableModelStateDict {
    /// Returns the receipt of the operation that this state comes from, with the digests of the present state; every tensor is read once for
    /// them.
    ///
    /// # Errors
    /// Errors of reading.
    pub async fn receipt(&self) -> Result<ModelIoArtifactReceipt> {
        self.receipt_with(None).await
    }

    /// Returns the same for a state with this tokenizer.
    pub(super) async fn receipt_with(&self, tokenizer: Option<&PortableTokenizerBinding>) -> Result<ModelIoArtifactReceipt> {
        let mut receipt = self.account.clone();
        let digests = self.digests().await?;
        let has_state = self.tensors().values().any(super::state_dict::StateTensorEntry::is_state);
        let optimizer = has_state.then_some(digests.optimizer);
        let known = ArtifactDigests::of_manifest(&self.identity, self.groups())?.with(tokenizer);
        receipt.digests = known.digests(Some(digests.weights), optimizer)?;
        if self.source_format == SourceWord::Checkpoint && receipt.operation == Operation::Import {
            // A checkpoint's own document states the other digests.
            (receipt.digests.assignment, receipt.digests.state, receipt.digests.bundle) = (None, None, None);
        }
        receipt.seal()
    }

    /// Returns the receipt of an export of this state as it is before anything is written.
    pub(super) fn draft(&self) -> ModelIoArtifactReceipt {
        let mut draft = self.account.clone();
        if draft.operation == Operation::Import {
            draft.operation = Operation::Convert;
        }
        if draft.tensors == ReceiptTensors::default() {
            draft.tensors.admitted = self.tensors().keys().cloned().collect();
            draft.groups.admitted = self.groups().iter().map(|group| group.group_id.clone()).collect();
        }
        draft
    }
}
