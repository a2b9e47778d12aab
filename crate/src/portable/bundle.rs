//! A state with everything that makes it a model: configuration, tokenizer, origin.

use std::collections::BTreeMap;

use super::contract::{ContractFacts, ModelIoCompatibilityContract};
use super::model_metadata::ModelMetadata;
use super::training::TrainingGroups;
use crate::bundle::{Bundle, ModelAssets, PortableTokenizerBinding};
use crate::error::{Result, Warning};
use crate::formats::Digest;
use crate::state::{
    Base, ImportedState, ModelIoArtifactReceipt, OpenedState, PortableModelImportRequest,
    PortableModelStateDict, SelectionReport, StateManifest, VerifyPolicy,
};

/// A model as plain data: its state and its companions ([example](crate::portable)).
#[derive(Debug, Clone)]
pub struct PortableModelBundle {
    /// Tensors and groups.
    pub state_dict: PortableModelStateDict,
    /// Configuration, tokenizer, origin.
    pub metadata: ModelMetadata,
}

/// A [bundle](PortableModelBundle) that was imported, with the results of the import ([example](crate::portable)).
#[derive(Debug, Clone)]
pub struct ImportedBundle {
    /// The bundle.
    pub bundle: PortableModelBundle,
    /// Unusual but allowed properties.
    pub warnings: Vec<Warning>,
    /// Receipt of the import; without digests if values were not read.
    pub receipt: ModelIoArtifactReceipt,
}

/// An artifact whose headers were read, with everything that is no tensor.
#[derive(Debug, Clone)]
pub struct OpenedBundle {
    /// Tensors and groups.
    pub state: OpenedState,
    /// Configuration, tokenizer, origin.
    pub metadata: ModelMetadata,
}

/// A tokenizer, if there is one, with its warnings.
pub(super) type Bound = Option<(PortableTokenizerBinding, Vec<Warning>)>;

impl OpenedBundle {
    /// Joins a state with the companions that its manifest carries and no others.
    pub(super) fn of_state(state: OpenedState) -> Self {
        let mut metadata = ModelMetadata::default();
        if let Some(manifest) = &state.manifest {
            metadata.base.clone_from(&manifest.base);
            metadata
                .profile_contract
                .clone_from(&manifest.profile_contract);
            metadata
                .preferred_formats
                .clone_from(&manifest.preferred_formats);
        }
        Self { state, metadata }
    }

    /// Joins a state with the opened model whose weights it has, and with its tokenizer; the warnings of both become those of the state.
    pub(super) fn of_model(mut state: OpenedState, model: &Bundle, bound: Bound) -> Self {
        let (tokenizer, of_tokenizer) = bound.unzip();
        state.warnings.extend(model.warnings.iter().cloned());
        state.warnings.extend(of_tokenizer.unwrap_or_default());
        let metadata = ModelMetadata {
            config: Some(model.config.clone()),
            tokenizer,
            base: Some(Base::of_bundle(model)),
            assets: Some(ModelAssets::of_bundle(model)),
            ..ModelMetadata::default()
        };
        Self { state, metadata }
    }

    /// Imports the part that `request` asks for; each admitted tensor is read once and compared with the stated digests.
    ///
    /// # Errors
    /// The errors of [`OpenedState::import`].
    pub async fn import(self, request: &PortableModelImportRequest) -> Result<ImportedBundle> {
        let ImportedState {
            state_dict,
            warnings,
            ..
        } = self.state.import(request).await?;
        let bundle = PortableModelBundle {
            state_dict,
            metadata: self.metadata,
        };
        let receipt = match request.verify {
            VerifyPolicy::Full => bundle.receipt().await?,
            VerifyPolicy::Header => bundle.state_dict.account.clone().seal()?,
        };
        Ok(ImportedBundle {
            bundle,
            warnings,
            receipt,
        })
    }
}

impl PortableModelBundle {
    /// Creates the bundle of a run in training in its present state, with the documents that accompany it and the base that it started from.
    ///
    /// # Errors
    /// `state.*` for groups that contradict themselves, `tokenizer.*` for documents that do.
    pub fn from_training_groups(
        training: &TrainingGroups,
        assets: &ModelAssets,
        base: Option<Base>,
    ) -> Result<Self> {
        let state_dict = PortableModelStateDict::from_training_groups(training)?;
        let model = training.trainer.model();
        let documents: BTreeMap<String, Vec<u8>> = assets
            .documents_for(model.config(), model.precision())?
            .into_iter()
            .collect();
        let (tokenizer, warnings) = PortableTokenizerBinding::from_documents(&documents)?.unzip();
        let metadata = ModelMetadata {
            config: Some(model.config().clone()),
            tokenizer,
            base,
            assets: Some(assets.clone()),
            warnings: warnings.unwrap_or_default(),
            ..ModelMetadata::default()
        };
        Ok(Self {
            state_dict,
            metadata,
        })
    }

    /// The manifest of the bundle, without digests, which depend on values.
    pub fn manifest(&self) -> StateManifest {
        let ModelMetadata {
            tokenizer,
            base,
            profile_contract,
            preferred_formats,
            ..
        } = self.metadata.clone();
        StateManifest {
            base,
            tokenizer: tokenizer.map(|binding| binding.account()),
            profile_contract,
            preferred_formats,
            ..self.state_dict.manifest()
        }
    }

    /// Computes the digest of state, tokenizer, templates and identity; every tensor is read once.
    ///
    /// # Errors
    /// Errors of reading.
    pub async fn bundle_digest(&self) -> Result<Digest> {
        let digests = self
            .state_dict
            .stated_digests(self.document_digests())
            .await?;
        Ok(digests.bundle.expect("the weights were read"))
    }

    /// The receipt of the operation that the bundle comes from, with its digests; every tensor is read once for them.
    ///
    /// # Errors
    /// Errors of reading.
    pub async fn receipt(&self) -> Result<ModelIoArtifactReceipt> {
        self.state_dict.receipt_with(self.document_digests()).await
    }

    /// Digests of the tokenizer and of the chat templates.
    fn document_digests(&self) -> [Option<Digest>; 2] {
        self.metadata
            .tokenizer
            .as_ref()
            .map_or([None, None], PortableTokenizerBinding::digests)
    }

    /// Computes which formats the bundle can be written in. With `read`, every tensor is read once for the digest of the state.
    ///
    /// # Errors
    /// Errors of reading.
    pub async fn compatibility_contract(&self, read: bool) -> Result<ModelIoCompatibilityContract> {
        let state_digest = if read {
            Some(self.state_dict.digests().await?.state)
        } else {
            None
        };
        let facts = ContractFacts {
            state_digest,
            config: self.metadata.config.as_ref(),
            gguf_base: self.metadata.base.as_ref().is_some_and(Base::is_gguf),
            ..ContractFacts::default()
        };
        let tensors: Vec<_> = self.state_dict.traversal_records().collect();
        ModelIoCompatibilityContract::of(&self.state_dict.identity, facts, &tensors)
    }

    /// The part that `request` asks for, with the same metadata.
    ///
    /// # Errors
    /// `select.*` and `remap.*`.
    pub fn select_and_remap(
        &self,
        request: &PortableModelImportRequest,
    ) -> Result<(Self, SelectionReport, Vec<Warning>)> {
        let selected = self.state_dict.select_and_remap(request)?;
        let bundle = Self {
            state_dict: selected.state_dict,
            metadata: self.metadata.clone(),
        };
        Ok((bundle, selected.report, selected.warnings))
    }

    /// The receipt of an export as it is before anything is written.
    pub(super) fn draft(&self) -> ModelIoArtifactReceipt {
        ModelIoArtifactReceipt {
            base: self.metadata.base.clone(),
            ..self.state_dict.draft()
        }
    }
}
