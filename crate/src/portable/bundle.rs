//! A state with everything that makes it a model: configuration, tokenizer, origin.

use std::collections::BTreeMap;

use super::contract::{ContractFacts, ModelIoCompatibilityContract};
use super::imports::{OpenedBundle, SharedFiles, boxed, open_checkpoint, open_gguf, open_hf_folder};
use super::json::open_json;
use super::model_metadata::ModelMetadata;
use super::safetensors::open_safetensors;
use super::training::TrainingGroups;
use crate::bundle::{FileStream, ModelAssets, PortableTokenizerBinding};
use crate::error::Result;
use crate::export::{ExportOptions, JsonEncoding, export_folder, export_gguf};
use crate::formats::{ByteSource, Digest, Warning};
use crate::state::{
    Base, BundleParts, ImportedState, MODEL_FILE, ModelIoArtifactReceipt, OpenedFile, OpenedState, PortableModelBundleImportPlan,
    PortableModelImportRequest, PortableModelStateDict, RECEIPT, SelectionReport, StateManifest, StatedResult, VerifyPolicy, bundle_digest,
};

/// A model as plain data: its state and its companions.
#[derive(Debug, Clone)]
pub struct PortableModelBundle {
    /// Tensors and groups.
    pub state_dict: PortableModelStateDict,
    /// Configuration, tokenizer, origin.
    pub metadata: ModelMetadata,
}

/// A bundle that was imported, with the results of the import.
#[derive(Debug, Clone)]
pub struct ImportedBundle {
    /// The bundle.
    pub bundle: PortableModelBundle,
    /// Report of the tensors that were taken, left out and renamed.
    pub report: SelectionReport,
    /// Result for each digest that the artifact may state.
    pub checks: BTreeMap<&'static str, StatedResult>,
    /// Files of the artifact.
    pub files: Vec<OpenedFile>,
    /// Unusual but allowed properties.
    pub warnings: Vec<Warning>,
    /// Receipt of the import; without digests if values were not read.
    pub receipt: ModelIoArtifactReceipt,
}

impl OpenedBundle {
    /// Creates a bundle from a state, with the companions that its manifest carries and no others.
    fn of_state(state: OpenedState) -> Self {
        let mut metadata = ModelMetadata::default();
        if let Some(manifest) = &state.manifest {
            metadata.base.clone_from(&manifest.base);
            metadata.profile_contract.clone_from(&manifest.profile_contract);
            metadata.preferred_formats.clone_from(&manifest.preferred_formats);
        }
        Self { state, metadata }
    }

    /// Imports the part that `request` asks for; each admitted tensor is read once and compared with the stated digests.
    ///
    /// # Errors
    /// The errors of [`OpenedState::import`].
    pub async fn import(self, request: &PortableModelImportRequest) -> Result<ImportedBundle> {
        let ImportedState { state_dict, report, checks, files, warnings, .. } = self.state.import(request).await?;
        let bundle = PortableModelBundle { state_dict, metadata: self.metadata };
        let read = request.verify == VerifyPolicy::Full;
        let receipt = if read { bundle.receipt().await? } else { bundle.state_dict.account.clone().seal()? };
        Ok(ImportedBundle { bundle, report, checks, files, warnings, receipt })
    }

    /// Plans that import; if it is deferred, no value is read.
    ///
    /// # Errors
    /// The errors of [`PortableModelBundleImportPlan::new`].
    pub async fn plan(self, request: PortableModelImportRequest) -> Result<PortableModelBundleImportPlan> {
        PortableModelBundleImportPlan::new(self.state, request).await
    }
}

impl PortableModelBundle {
    /// Creates the bundle of a run in training in its present state, with the documents that accompany it and the base that it started from.
    ///
    /// # Errors
    /// `state.*` for groups that contradict themselves, `tokenizer.*` for documents that do.
    pub fn from_training_groups(training: &TrainingGroups, assets: &ModelAssets, base: Option<Base>) -> Result<Self> {
        let state_dict = PortableModelStateDict::from_training_groups(training)?;
        let model = training.trainer.model();
        let documents: BTreeMap<String, Vec<u8>> = assets.documents_for(model.config(), model.precision())?.into_iter().collect();
        let bound = PortableTokenizerBinding::from_documents(&documents)?;
        let (tokenizer, warnings) = bound.map_or((None, Vec::new()), |(binding, warnings)| (Some(binding), warnings));
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
        Ok(Self { state_dict, metadata })
    }

    /// Returns the manifest of the bundle, without digests, which depend on values.
    pub fn manifest(&self) -> StateManifest {
        let ModelMetadata { tokenizer, base, profile_contract, preferred_formats, .. } = &self.metadata;
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
    pub async fn bundle_digest(&self) -> Result<Digest> {
        let digests = self.state_dict.digests().await?;
        let (has_state, has_groups) =
            (self.state_dict.tensors().values().any(|entry| entry.is_state()), !self.state_dict.groups().is_empty());
        let tokenizer = self.metadata.tokenizer.as_ref();
        let parts = BundleParts {
            weights: Some(digests.weights),
            optimizer: has_state.then_some(digests.optimizer),
            assignment: has_groups.then_some(digests.assignment),
            tokenizer: tokenizer.map(|binding| binding.tokenizer_digest),
            template: tokenizer.and_then(|binding| binding.template_digest),
        };
        Ok(bundle_digest(&self.state_dict.identity, &parts))
    }

    /// Returns the receipt of the operation that the bundle comes from, with its digests; every tensor is read once for them.
    ///
    /// # Errors
    /// Errors of reading.
    pub async fn receipt(&self) -> Result<ModelIoArtifactReceipt> {
        self.state_dict.receipt_with(self.metadata.tokenizer.as_ref().map_or([None, None], PortableTokenizerBinding::digests)).await
    }

    /// Computes which formats the bundle can be written in. With `read`, every tensor is read once for the digest of the state.
    ///
    /// # Errors
    /// Errors of reading.
    pub async fn compatibility_contract(&self, read: bool) -> Result<ModelIoCompatibilityContract> {
        let ModelMetadata { config, base, .. } = &self.metadata;
        let odd = self.metadata.warnings.iter().find(|warning| warning.code == "tensor.non-finite");
        let facts = ContractFacts {
            identity: &self.state_dict.identity,
            state_digest: if read { Some(self.state_dict.digests().await?.state) } else { None },
            config: config.as_ref(),
            recipe_refused: None,
            adapter: false,
            gguf_base: base.as_ref().is_some_and(|base| base.format == "gguf"),
            non_finite: odd.map(|warning| warning.subject.as_str()),
        };
        let tensors: Vec<_> = self.state_dict.traversal_records().collect();
        ModelIoCompatibilityContract::of(facts, tensors.iter().copied())
    }

    /// The part that `request` asks for, with the same metadata.
    ///
    /// # Errors
    /// `select.*` and `remap.*`.
    pub fn select_and_remap(&self, request: &PortableModelImportRequest) -> Result<(Self, SelectionReport, Vec<Warning>)> {
        let selected = self.state_dict.select_and_remap(request)?;
        let bundle = Self { state_dict: selected.state_dict, metadata: self.metadata.clone() };
        Ok((bundle, selected.report, selected.warnings))
    }

    /// Imports all of a safetensors file, or of shards with their manifest, and of the optimizer file next to them.
    ///
    /// # Errors
    /// The errors of [`open_safetensors`] and [`OpenedState::import`].
    pub async fn import_safetensors(files: SharedFiles) -> Result<ImportedBundle> {
        Self::import_safetensors_with_request(files, &PortableModelImportRequest::default()).await
    }

    /// Imports the part of such files that `request` asks for.
    ///
    /// # Errors
    /// The errors of [`Self::import_safetensors`].
    pub async fn import_safetensors_with_request(files: SharedFiles, request: &PortableModelImportRequest) -> Result<ImportedBundle> {
        OpenedBundle::of_state(open_safetensors(files)?).import(request).await
    }

    /// Plans that import.
    ///
    /// # Errors
    /// The errors of [`Self::import_safetensors`].
    pub async fn plan_safetensors_import(files: SharedFiles, request: PortableModelImportRequest) -> Result<PortableModelBundleImportPlan> {
        OpenedBundle::of_state(open_safetensors(files)?).plan(request).await
    }

    /// Writes the bundle as `model.safetensors` with its manifest, `optimizer.safetensors` if it has state tensors, and its receipt.
    ///
    /// # Errors
    /// The errors of [`PortableModelStateDict::export_safetensors`].
    pub async fn export_safetensors(&self) -> Result<FileStream> {
        self.export_safetensors_as(MODEL_FILE).await
    }

    /// Writes the same with the weights in the file `name`.
    ///
    /// # Errors
    /// The errors of [`Self::export_safetensors`].
    pub async fn export_safetensors_as(&self, name: &str) -> Result<FileStream> {
        let mut stream = self.state_dict.safetensors_stream(name, &self.manifest()).await?;
        stream.push_receipt(RECEIPT, self.draft())?;
        Ok(stream)
    }

    fn draft(&self) -> ModelIoArtifactReceipt {
        ModelIoArtifactReceipt { base: self.metadata.base.clone(), ..self.state_dict.draft() }
    }

    /// Writes the bundle as one GGUF file, then its receipt: `base_files`, a GGUF file or its parts, with this model's tensors in place of
    /// theirs, or without such files a new one. `options` are those of [`export_gguf`].
    ///
    /// # Errors
    /// `bundle.config.missing` without a configuration, `model.tensor.*` for tensors that are not the model's, and those of [`export_gguf`].
    pub async fn export_gguf(&self, base_files: &SharedFiles, options: &ExportOptions) -> Result<FileStream> {
        export_gguf(&self.export_source().await?, boxed(base_files), options).await
    }

    /// Writes the bundle as a Hugging Face folder, the receipt last. `options` are those of [`export_folder`].
    ///
    /// # Errors
    /// The errors of [`Self::export_gguf`] and of [`export_folder`].
    pub async fn export_hf_folder(&self, options: &ExportOptions) -> Result<FileStream> {
        export_folder(&self.export_source().await?, options)
    }

    /// Imports all of a JSON state dict.
    ///
    /// # Errors
    /// The errors of [`open_json`] and [`OpenedState::import`].
    pub async fn import_torch_state_dict_json(file: &dyn ByteSource) -> Result<ImportedBundle> {
        Self::import_torch_state_dict_json_with_request(file, &PortableModelImportRequest::default()).await
    }

    /// Imports the part of a JSON state dict that `request` asks for.
    ///
    /// # Errors
    /// The errors of [`Self::import_torch_state_dict_json`].
    pub async fn import_torch_state_dict_json_with_request(
        file: &dyn ByteSource,
        request: &PortableModelImportRequest,
    ) -> Result<ImportedBundle> {
        OpenedBundle::of_state(open_json(file)?).import(request).await
    }

    /// Writes the bundle as the JSON document `name`, then its receipt. With `allow_non_finite`, base64 keeps NaN and infinities.
    ///
    /// # Errors
    /// The errors of [`PortableModelStateDict::export_json`].
    pub async fn export_torch_state_dict_json(&self, name: &str, encoding: JsonEncoding, allow_non_finite: bool) -> Result<FileStream> {
        let mut stream = self.state_dict.export_json(name, Some(&self.manifest()), encoding, allow_non_finite).await?;
        stream.push_receipt(RECEIPT, self.draft())?;
        Ok(stream)
    }

    /// Imports a GGUF file, or all parts of one, under the names that `request` asks for.
    ///
    /// # Errors
    /// The errors of [`open_gguf`] and [`OpenedState::import`].
    pub async fn import_gguf(files: &SharedFiles, request: &PortableModelImportRequest) -> Result<ImportedBundle> {
        open_gguf(files, request.names)?.import(request).await
    }

    /// Plans that import.
    ///
    /// # Errors
    /// The errors of [`Self::import_gguf`].
    pub async fn plan_gguf_import(files: &SharedFiles, request: PortableModelImportRequest) -> Result<PortableModelBundleImportPlan> {
        open_gguf(files, request.names)?.plan(request).await
    }

    /// Imports a Hugging Face folder.
    ///
    /// # Errors
    /// The errors of [`open_hf_folder`] and [`OpenedState::import`].
    pub async fn import_hf_folder(files: &SharedFiles, request: &PortableModelImportRequest) -> Result<ImportedBundle> {
        open_hf_folder(files)?.import(request).await
    }

    /// Imports a checkpoint folder, without making a trainer.
    ///
    /// # Errors
    /// The errors of [`open_checkpoint`] and [`OpenedState::import`].
    pub async fn import_checkpoint(files: &SharedFiles, request: &PortableModelImportRequest) -> Result<ImportedBundle> {
        open_checkpoint(files)?.import(request).await
    }
}
