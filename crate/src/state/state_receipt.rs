//! Receipts of the operations that make states.

use super::group::group_ids;
use super::manifest::StatedDigests;
use super::origin::SourceWord;
use super::receipt::{ModelIoArtifactReceipt, Operation, ReceiptTensors};
use super::state_dict::PortableModelStateDict;
use super::state_digests::ArtifactDigests;
use super::tensor::Tensor;
use crate::error::Result;
use crate::formats::Digest;

impl PortableModelStateDict {
    /// Completes the receipt of the operation that this state comes from, with the digests of the present state; every tensor is read once for
    /// them.
    ///
    /// # Errors
    /// Errors of reading.
    pub async fn receipt(&self) -> Result<ModelIoArtifactReceipt> {
        self.receipt_with([None, None]).await
    }

    /// The same for a state with a tokenizer and chat templates of these digests.
    pub(crate) async fn receipt_with(
        &self,
        documents: [Option<Digest>; 2],
    ) -> Result<ModelIoArtifactReceipt> {
        let mut receipt = self.account.clone();
        receipt.digests = self.stated_digests(documents).await?;
        if self.source_format == SourceWord::Checkpoint && receipt.operation == Operation::Import {
            // A checkpoint's own document states the other digests.
            (
                receipt.digests.assignment,
                receipt.digests.state,
                receipt.digests.bundle,
            ) = (None, None, None);
        }
        receipt.seal()
    }

    /// The digests of this state with a tokenizer and chat templates of these digests; every tensor is read once for them.
    pub(crate) async fn stated_digests(
        &self,
        documents: [Option<Digest>; 2],
    ) -> Result<StatedDigests> {
        let digests = self.digests().await?;
        let has_state = self.tensors().values().any(Tensor::is_state);
        let optimizer = has_state.then_some(digests.optimizer);
        let known = ArtifactDigests::of_manifest(&self.identity, self.groups())?.with(documents);
        known.digests(Some(digests.weights), optimizer)
    }

    /// Receipt of an export of this state as it is before anything is written.
    pub(crate) fn draft(&self) -> ModelIoArtifactReceipt {
        let mut draft = self.account.clone();
        if draft.operation == Operation::Import {
            draft.operation = Operation::Convert;
        }
        if draft.tensors == ReceiptTensors::default() {
            draft.tensors.admitted = self.tensors().keys().cloned().collect();
            draft.groups.admitted = group_ids(self.groups());
        }
        draft
    }
}
