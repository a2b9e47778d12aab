//! The file of a delta: its words as safetensors, with a record of the tensors that they change.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::{DeltaTensor, ModelAdapterDelta};
use crate::bundle::{Contents, FileStream};
use crate::error::{Refusal, Result, refuse_all, word};
use crate::formats::{
    ByteSource, Digest, DocumentError, Json, SafetensorsFile, json_document, json_typed, sha256_of,
};
use crate::state::{ModelIoArtifactReceipt, Operation, RECEIPT, ReceiptFile, Tensor, canonical};

/// Metadata key of a delta's record in its file.
const DELTA_KEY: &str = "tabtune.delta";
/// Maximum number of tensors: that of a safetensors file.
const MAX_TENSORS: usize = 100_000;
/// File name of a delta.
const DELTA_FILE: &str = "delta.safetensors";

/// Record of a delta, which its file has as metadata.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeltaRecord {
    version: u64,
    adapter_id: String,
    base_weights_digest: Digest,
    target_weights_digest: Digest,
    tensors: BTreeMap<String, String>,
}

impl ModelAdapterDelta {
    /// Writes the delta as `delta.safetensors`, then its receipt; its words are computed when they are written.
    ///
    /// # Errors
    /// The errors of [`Self::export_as`].
    pub fn export(&self) -> Result<FileStream> {
        self.export_as(DELTA_FILE)
    }

    /// Writes the delta to a file `name`, then its receipt.
    ///
    /// # Errors
    /// `export.name.invalid` or `export.tensor.size` for a tensor that the format cannot hold.
    pub fn export_as(&self, name: &str) -> Result<FileStream> {
        let record = DeltaRecord {
            version: 1,
            adapter_id: self.adapter_id.clone(),
            base_weights_digest: self.base_weights_digest,
            target_weights_digest: self.target_weights_digest,
            tensors: self
                .tensors
                .iter()
                .map(|(key, tensor)| (key.clone(), tensor.dtype.clone()))
                .collect(),
        };
        let metadata = BTreeMap::from([(DELTA_KEY.to_string(), canonical(&record)?)]);
        let mut stream = FileStream::summed();
        let words = self.tensors.values().map(|tensor| tensor.words.clone());
        stream.push_safetensors_as(name, words.collect(), None, Contents::Other, &metadata)?;
        stream.push_receipt(RECEIPT, self.account.clone())?;
        Ok(stream)
    }

    /// Reads the header of a delta's file, and all of it for its checksum.
    ///
    /// # Errors
    /// The errors of [`SafetensorsFile::open`]; `format.unsupported` for a file that is no delta; `manifest.json`, `manifest.version` for a
    /// record that cannot be read; `manifest.tensor.missing`, `manifest.tensor.unlisted` if it does not list the file's tensors.
    pub fn open(source: Rc<dyn ByteSource>) -> Result<Self> {
        let file = SafetensorsFile::open(&source)?;
        let refuse = |code| Refusal::new(code).of(source.name());
        let Some(text) = file.metadata.get(DELTA_KEY) else {
            return Err(refuse(word!("format.unsupported"))
                .subject(DELTA_KEY)
                .expected("an exact delta")
                .found("none")
                .into());
        };
        let DeltaRecord {
            adapter_id,
            base_weights_digest,
            target_weights_digest,
            tensors: mut dtypes,
            ..
        } = DeltaRecord::read(&text, source.name())?;
        let mut tensors = BTreeMap::new();
        let mut unlisted = Vec::new();
        for record in file.tensors {
            let Some(dtype) = dtypes.remove(&record.name) else {
                unlisted.push(refuse(word!("manifest.tensor.unlisted")).subject(&record.name));
                continue;
            };
            let words = Tensor::in_file(&record, &source);
            tensors.insert(record.name, DeltaTensor { dtype, words });
        }
        let mut refusals: Vec<_> = dtypes
            .keys()
            .map(|key| refuse(word!("manifest.tensor.missing")).subject(key))
            .collect();
        refusals.extend(unlisted);
        refuse_all(refusals)?;
        let sum = sha256_of(&source, 0, source.len())?;
        let mut account = ModelIoArtifactReceipt::new(Operation::Import);
        account.inputs = vec![ReceiptFile {
            role: "delta".into(),
            ..ReceiptFile::of_name(source.name(), source.len(), Some(sum))
        }];
        Ok(Self {
            adapter_id,
            base_weights_digest,
            target_weights_digest,
            tensors,
            account,
        })
    }
}

impl DeltaRecord {
    /// Reads the record in the file `artifact`.
    fn read(text: &str, artifact: &str) -> Result<Self> {
        let refuse = |code| Refusal::new(code).of(artifact).subject(DELTA_KEY);
        let wrong = |wrong: DocumentError| refuse(word!("manifest.json")).found(wrong.found);
        let document = json_document(text).map_err(wrong)?;
        let [version, listed] = document.fields(["version", "tensors"]);
        let other = version.and_then(Json::count).filter(|&found| found != 1);
        if let Some(found) = other {
            return Err(refuse(word!("manifest.version"))
                .expected("1")
                .found(found)
                .into());
        }
        let listed = listed.and_then(Json::object);
        if listed.is_some_and(|tensors| tensors.count() > MAX_TENSORS) {
            return Err(refuse(word!("manifest.json"))
                .expected(format!("at most {MAX_TENSORS} tensors"))
                .into());
        }
        Ok(json_typed(document, "").map_err(wrong)?)
    }
}
