//! The receipts of a state: of the operation that it comes from, and of its exports.

use super::source_word::SourceWord;
use super::state_dict::{PortableModelStateDict, StateTensorEntry};
use crate::bundle::PortableTokenizerBinding;
use crate::error::Result;
use crate::state::{ArtifactDigests, ModelIoArtifactReceipt, Operation, ReceiptTensors};

impl PortableModelStateDict {
    /// The receipt of the operation that this state comes from, with the digests of the state as it is; every tensor is read once for them.
    ///
    /// # Errors
    /// Those of reading.
    pub async fn receipt(&self) -> Result<ModelIoArtifactReceipt> {
        self.receipt_with(None).await
    }

    /// The same of a state that has this tokenizer beside it.
    pub(super) async fn receipt_with(&self, tokenizer: Option<&PortableTokenizerBinding>) -> Result<ModelIoArtifactReceipt> {
        let mut receipt = self.account.clone();
        let digests = self.digests().await?;
        let has_state = self.tensors().values().any(StateTensorEntry::is_state);
        let optimizer = has_state.then_some(digests.optimizer);
        let known = ArtifactDigests::of_manifest(&self.identity, self.groups())?.with(tokenizer);
        receipt.digests = known.digests(Some(digests.weights), optimizer)?;
        if self.source_format == SourceWord::Checkpoint && receipt.operation == Operation::Import {
            // A checkpoint's own document says the rest.
            (receipt.digests.assignment, receipt.digests.state, receipt.digests.bundle) = (None, None, None);
        }
        receipt.seal()
    }

    /// What the receipt of an export of this state says before anything is written.
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
