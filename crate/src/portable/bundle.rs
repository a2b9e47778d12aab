//! A state with everything that makes it a model: configuration, tokenizer, origin.

use std::collections::BTreeMap;

use super::contract::{ContractFacts, ModelIoCompatibilityContract};
use super::imports::OpenedBundle;
use super::model_metadata::ModelMetadata;
use super::training::TrainingGroups;
use crate::bundle::{ModelAssets, PortableTokenizerBinding};
use crate::error::{Result, Warning};
use crate::formats::Digest;
use crate::state::{
    Base, CheckResult, ImportedState, ModelIoArtifactReceipt, OpenedFile, OpenedState,
    PortableModelBundleImportPlan, PortableModelImportRequest, PortableModelStateDict,
    SelectionReport, StateManifest, StatedDigests, VerifyPolicy, bundle_digest,
};

/// A model as plain data: its state and its companions.
#[derive(Debug, Clone)]
pub struct PortableModelBundle {
    /// Tensors and groups.
    #[doc(hidden)]
    pub state_dict: PortableModelStateDict,
    /// Configuration, tokenizer, origin.
    #[doc(hidden)]
    pub metadata: ModelMetadata,
}

/// A bundle that was imported, with the results of the import.
#[derive(Debug, Clone)]
pub struct ImportedBundle {
    /// The bundle.
    pub bundle: PortableModelBundle,
    /// Report of the tensors that were taken, left out and renamed.
    #[doc(hidden)]
    pub report: SelectionReport,
    /// Result for each digest that the artifact may state.
    #[doc(hidden)]
    pub checks: BTreeMap<&'static str, CheckResult>,
    /// Files of the artifact.
    #[doc(hidden)]
    pub files: Vec<OpenedFile>,
    /// Unusual but allowed properties.
    pub warnings: Vec<Warning>,
    /// Receipt of the import; without digests if values were not read.
    #[doc(hidden)]
    pub receipt: ModelIoArtifactReceipt,
}

impl OpenedBundle {
    /// Creates a bundle from a state, with the companions that its manifest carries and no others.
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

    /// Imports the part that `request` asks for; each admitted tensor is read once and compared with the stated digests.
    ///
    /// # Errors
    /// The errors of [`OpenedState::import`].
    pub async fn import(self, request: &PortableModelImportRequest) -> Result<ImportedBundle> {
        let ImportedState {
            state_dict,
            report,
            checks,
            files,
            warnings,
            ..
        } = self.state.import(request).await?;
        let bundle = PortableModelBundle {
            state_dict,
            metadata: self.metadata,
        };
        let read = request.verify == VerifyPolicy::Full;
        let receipt = if read {
            bundle.receipt().await?
        } else {
            bundle.state_dict.account.clone().seal()?
        };
        Ok(ImportedBundle {
            bundle,
            report,
            checks,
            files,
            warnings,
            receipt,
        })
    }

    /// Plans that import; if it is deferred, no value is read.
    ///
    /// # Errors
    /// The errors of [`PortableModelBundleImportPlan::new`].
    pub async fn plan(
        self,
        request: PortableModelImportRequest,
    ) -> Result<PortableModelBundleImportPlan> {
        PortableModelBundleImportPlan::new(self.state, request).await
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
        let bound = PortableTokenizerBinding::from_documents(&documents)?;
        let (tokenizer, warnings) = bound.map_or((None, Vec::new()), |(binding, warnings)| {
            (Some(binding), warnings)
        });
        let document = |name: &str| documents.get(name).cloned();
        let metadata = ModelMetadata {
            config: Some(model.config().clone()),
            config_json: document("config.json"),
            generation_config_json: document("generation_config.json"),
            tokenizer,
            base,
            assets: Some(assets.clone()),
            warnings,
            ..ModelMetadata::default()
        };
        Ok(Self {
            state_dict,
            metadata,
        })
    }

    /// Returns the manifest of the bundle, without digests, which depend on values.
    #[doc(hidden)]
    pub fn manifest(&self) -> StateManifest {
        let ModelMetadata {
            tokenizer,
            base,
            profile_contract,
            preferred_formats,
            ..
        } = &self.metadata;
        StateManifest {
            base: base.clone(),
            tokenizer: tokenizer.as_ref().map(PortableTokenizerBinding::account),
            profile_contract: profile_contract.clone(),
            preferred_formats: preferred_formats.clone(),
            ..self.state_dict.manifest()
        }
    }

    /// Computes the digest of state, tokenizer, templates and identity; every tensor is read once.
    ///
    /// # Errors
    /// Errors of reading.
    #[doc(hidden)]
    pub async fn bundle_digest(&self) -> Result<Digest> {
        let digests = self.state_dict.digests().await?;
        let (has_state, has_groups) = (
            self.state_dict
                .tensors()
                .values()
                .any(|entry| entry.is_state()),
            !self.state_dict.groups().is_empty(),
        );
        let tokenizer = self.metadata.tokenizer.as_ref();
        let parts = StatedDigests {
            weights: Some(digests.weights),
            optimizer: has_state.then_some(digests.optimizer),
            assignment: has_groups.then_some(digests.assignment),
            tokenizer: tokenizer.map(|binding| binding.tokenizer_digest),
            template: tokenizer.and_then(|binding| binding.template_digest),
            ..StatedDigests::default()
        };
        Ok(bundle_digest(&self.state_dict.identity, &parts))
    }

    /// Returns the receipt of the operation that the bundle comes from, with its digests; every tensor is read once for them.
    ///
    /// # Errors
    /// Errors of reading.
    #[doc(hidden)]
    pub async fn receipt(&self) -> Result<ModelIoArtifactReceipt> {
        self.state_dict
            .receipt_with(
                self.metadata
                    .tokenizer
                    .as_ref()
                    .map_or([None, None], PortableTokenizerBinding::digests),
            )
            .await
    }

    /// Computes which formats the bundle can be written in. With `read`, every tensor is read once for the digest of the state.
    ///
    /// # Errors
    /// Errors of reading.
    #[doc(hidden)]
    pub async fn compatibility_contract(&self, read: bool) -> Result<ModelIoCompatibilityContract> {
        let ModelMetadata { config, base, .. } = &self.metadata;
        let odd = self
            .metadata
            .warnings
            .iter()
            .find(|warning| warning.code == "tensor.non-finite");
        let facts = ContractFacts {
            identity: &self.state_dict.identity,
            state_digest: if read {
                Some(self.state_dict.digests().await?.state)
            } else {
                None
            },
            config: config.as_ref(),
            recipe_refused: None,
            adapter: false,
            gguf_base: base.as_ref().is_some_and(|base| base.format == "gguf"),
            non_finite: odd.map(|warning| warning.subject.as_str()),
        };
        let tensors: Vec<_> = self.state_dict.traversal_records().collect();
        ModelIoCompatibilityContract::of(facts, tensors.iter())
    }

    /// The part that `request` asks for, with the same metadata.
    ///
    /// # Errors
    /// `select.*` and `remap.*`.
    #[doc(hidden)]
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

    pub(super) fn draft(&self) -> ModelIoArtifactReceipt {
        ModelIoArtifactReceipt {
            base: self.metadata.base.clone(),
            ..self.state_dict.draft()
        }
    }
}
