//! Imports of models from every container, and exports to it.

use super::bundle::{ImportedBundle, OpenedBundle, PortableModelBundle};
use super::imports::{SharedFiles, open_checkpoint, open_gguf, open_hf_folder};
use super::json::open_json;
use super::safetensors::open_safetensors;
use crate::bundle::{FileStream, STATE_JSON};
use crate::error::{Refusal, Result, word};
use crate::export::{
    ExportDtype, ExportFormat, ExportOptions, JsonEncoding, export, export_folder, export_gguf,
};
use crate::formats::ByteSource;
use crate::state::{
    MODEL_FILE, PortableModelBundleImportPlan, PortableModelImportRequest, RECEIPT,
};

impl PortableModelBundle {
    /// Imports all of a safetensors file, or of shards with their manifest, and of the optimizer file next to them.
    ///
    /// # Errors
    /// `safetensors.*` and `state.*` for files that break the rules of their format or contradict themselves, and errors of reading.
    pub async fn import_safetensors(files: SharedFiles) -> Result<ImportedBundle> {
        Self::import_safetensors_with_request(files, &PortableModelImportRequest::default()).await
    }

    /// Imports the part of such files that `request` asks for.
    ///
    /// # Errors
    /// The errors of [`Self::import_safetensors`].
    pub async fn import_safetensors_with_request(
        files: SharedFiles,
        request: &PortableModelImportRequest,
    ) -> Result<ImportedBundle> {
        OpenedBundle::of_state(open_safetensors(files)?)
            .import(request)
            .await
    }

    /// Writes the bundle as `model.safetensors` with its manifest, `optimizer.safetensors` if it has state tensors, and its receipt.
    ///
    /// # Errors
    /// `export.*` for a state that the format cannot hold, and errors of reading.
    pub async fn export_safetensors(&self) -> Result<FileStream> {
        self.export_safetensors_as(MODEL_FILE).await
    }

    /// Writes the same with the weights in the file `name`.
    ///
    /// # Errors
    /// The errors of [`Self::export_safetensors`].
    pub async fn export_safetensors_as(&self, name: &str) -> Result<FileStream> {
        let mut stream = self
            .state_dict
            .safetensors_stream(name, &self.manifest())
            .await?;
        stream.push_receipt(RECEIPT, self.draft())?;
        Ok(stream)
    }

    /// Writes the bundle as one GGUF file, then its receipt: `base_files`, a GGUF file or its parts, with this model's tensors in place of
    /// theirs, or without such files a new one. `options` are those of [`export()`](crate::export::export()).
    ///
    /// # Errors
    /// `bundle.config.missing` without a configuration, `model.tensor.*` for tensors that are not the model's, and those of
    /// [`export()`](crate::export::export()).
    pub async fn export_gguf(
        &self,
        base_files: &SharedFiles,
        options: &ExportOptions,
    ) -> Result<FileStream> {
        export_gguf(&self.export_source().await?, base_files.clone(), options).await
    }

    /// Writes the bundle as a Hugging Face folder, the receipt last. `options` are those of [`export()`](crate::export::export()).
    ///
    /// # Errors
    /// The errors of [`Self::export_gguf`].
    pub async fn export_hf_folder(&self, options: &ExportOptions) -> Result<FileStream> {
        export_folder(&self.export_source().await?, options)
    }

    /// Writes the bundle with the options of an export. One without a model's configuration can become safetensors and JSON, in the stored types.
    ///
    /// # Errors
    /// `bundle.config.missing` for a format or an option that needs a model, and those of [`export()`](crate::export::export()).
    pub async fn export(&self, options: &ExportOptions) -> Result<FileStream> {
        if self.metadata.config.is_some() {
            return export(&self.export_source().await?, Vec::new(), options).await;
        }
        let plain = options.dtype == ExportDtype::Stored && options.shard_bytes.is_none();
        match options.format {
            ExportFormat::Safetensors if plain => self.export_safetensors().await,
            ExportFormat::Json => {
                let usual = || format!("model{STATE_JSON}");
                let name = options.file_name.clone().unwrap_or_else(usual);
                let (encoding, non_finite) = (options.encoding, options.allow_non_finite);
                self.export_torch_state_dict_json(&name, encoding, non_finite)
                    .await
            }
            format => Err(Refusal::new(word!("bundle.config.missing"))
                .of(format.word())
                .subject("config.json")
                .expected("a model's configuration")
                .hint("a state without one can become safetensors or json, in the stored types")
                .into()),
        }
    }

    /// Imports all of a JSON state dict.
    ///
    /// # Errors
    /// `json.*` and `state.*` for a document that breaks the rules of its format or contradicts itself.
    pub async fn import_torch_state_dict_json(file: &dyn ByteSource) -> Result<ImportedBundle> {
        OpenedBundle::of_state(open_json(file)?)
            .import(&PortableModelImportRequest::default())
            .await
    }

    /// Writes the bundle as the JSON document `name`, then its receipt. With `allow_non_finite`, base64 keeps NaN and infinities.
    ///
    /// # Errors
    /// `export.json.*` and `json.*` for values that the document cannot hold.
    pub async fn export_torch_state_dict_json(
        &self,
        name: &str,
        encoding: JsonEncoding,
        allow_non_finite: bool,
    ) -> Result<FileStream> {
        let mut stream = self
            .state_dict
            .export_json(name, Some(&self.manifest()), encoding, allow_non_finite)
            .await?;
        stream.push_receipt(RECEIPT, self.draft())?;
        Ok(stream)
    }

    /// Imports a GGUF file, or all parts of one, under the names that `request` asks for.
    ///
    /// # Errors
    /// `gguf.*` and `state.*` for files that break the rules of their format or contradict themselves, and errors of reading.
    pub async fn import_gguf(
        files: &SharedFiles,
        request: &PortableModelImportRequest,
    ) -> Result<ImportedBundle> {
        open_gguf(files, request.names)?.import(request).await
    }

    /// Plans that import.
    ///
    /// # Errors
    /// The errors of [`Self::import_gguf`].
    pub async fn plan_gguf_import(
        files: &SharedFiles,
        request: PortableModelImportRequest,
    ) -> Result<PortableModelBundleImportPlan> {
        let opened = open_gguf(files, request.names)?;
        PortableModelBundleImportPlan::new(opened.state, request).await
    }

    /// Imports a Hugging Face folder.
    ///
    /// # Errors
    /// The errors of [`open_model`](crate::model::open_model), and errors of reading.
    pub async fn import_hf_folder(
        files: &SharedFiles,
        request: &PortableModelImportRequest,
    ) -> Result<ImportedBundle> {
        open_hf_folder(files)?.import(request).await
    }

    /// Imports a checkpoint folder, without making a trainer.
    ///
    /// # Errors
    /// The errors of [`Checkpoint::open`](crate::checkpoint::Checkpoint::open), and errors of reading.
    pub async fn import_checkpoint(
        files: &SharedFiles,
        request: &PortableModelImportRequest,
    ) -> Result<ImportedBundle> {
        open_checkpoint(files)?.import(request).await
    }
}
