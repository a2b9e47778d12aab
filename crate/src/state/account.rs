//! Contents of the receipts of operations on states: the files that they come from, and the treatment of tensors and groups.

use std::rc::Rc;

use super::{
    CheckResult, ModelIoArtifactReceipt, Operation, ReceiptCheck, ReceiptFile, ReceiptGroups,
    ReceiptTensors, ReceiptWarning, SelectionReport,
};
use crate::error::{Result, Warning};
use crate::formats::{ByteSource, Digest, sha256_of};

/// A file that an artifact was read from.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    file: ReceiptFile,
    /// The whole file, unless its checksum is known.
    all: Option<Rc<dyn ByteSource>>,
}

impl Input {
    pub(crate) fn of(source: &Rc<dyn ByteSource>) -> Self {
        Self {
            file: ReceiptFile::of_name(source.name(), source.len(), None),
            all: Some(Rc::clone(source)),
        }
    }

    pub(crate) fn summed(source: &dyn ByteSource, role: &str, sum: Digest) -> Self {
        let file = ReceiptFile {
            role: role.to_string(),
            ..ReceiptFile::of_name(source.name(), source.len(), Some(sum))
        };
        Self { file, all: None }
    }

    /// Describes it in a receipt. With `read`, all of it is read, unless its checksum is known.
    fn receipt_file(&self, read: bool) -> Result<ReceiptFile> {
        let sum = match &self.all {
            Some(source) if read => Some(sha256_of(source, 0, source.len())?),
            _ => self.file.sha256,
        };
        Ok(ReceiptFile {
            sha256: sum,
            ..self.file.clone()
        })
    }
}

/// Creates the receipt of an operation with its tensors and groups.
pub(crate) fn account(
    operation: Operation,
    report: &SelectionReport,
    warnings: &[Warning],
) -> ModelIoArtifactReceipt {
    ModelIoArtifactReceipt {
        tensors: ReceiptTensors {
            admitted: report.admitted.clone(),
            dropped: report.dropped.clone(),
            renamed: report.renamed.clone(),
            ..ReceiptTensors::default()
        },
        groups: ReceiptGroups {
            admitted: report.groups_admitted.clone(),
            dropped: report.groups_dropped.clone(),
        },
        warnings: warnings.iter().map(ReceiptWarning::from).collect(),
        ..ModelIoArtifactReceipt::new(operation)
    }
}

/// Creates the receipt of an import of these files; with `read`, all of them are read for their checksums.
pub(crate) fn imported(
    inputs: &[Input],
    report: &SelectionReport,
    warnings: &[Warning],
    read: bool,
) -> Result<ModelIoArtifactReceipt> {
    let mut account = account(Operation::Import, report, warnings);
    for input in inputs {
        account.inputs.push(input.receipt_file(read)?);
    }
    if !read {
        account.checks.push(ReceiptCheck {
            name: "inputs".into(),
            result: CheckResult::Skipped,
        });
    }
    Ok(account)
}
