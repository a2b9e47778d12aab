//! Options of opening a model, and the tensors that a request takes of its files.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::formats::{ByteSource, Warning};
use crate::state::{ModelStateTensorManifest, PortableModelImportRequest, SelectionReport, select};

/// What is done to a model while it is opened.
#[derive(Default)]
pub struct OpenOptions {
    /// `adapter_config.json` and `adapter_model.safetensors` of a PEFT LoRA, which is merged: every tensor then reads with the product of
    /// its pair added, rounded to its dtype, blocks as F32.
    pub adapter: Option<Vec<Box<dyn ByteSource>>>,
    /// Put the adapter beside the model instead: its factors become tensors of their own, and the base's matrices stay as they are.
    pub apart: bool,
    /// Leave the tensors that an adapter is merged into as F32, whatever they are in the base: for writers that round by themselves.
    pub exact: bool,
    /// Take a table of embeddings that has more rows in the adapter than in the base: tokens were added before it was trained.
    pub resize_vocabulary: bool,
    /// What is taken of the tensors and under which names, before the model's own names are looked for.
    pub request: Option<PortableModelImportRequest>,
    /// Read no values: whether a second head equals the embedding stays open, and it is left out as if it did.
    pub headers_only: bool,
}

/// The new name of each tensor that is taken, by its name in the files.
pub(super) struct Taken {
    names: Option<BTreeMap<String, String>>,
    pub(super) report: SelectionReport,
}

impl Taken {
    /// What `request` takes of `tensors`, given as name, dtype and shape; everything without one.
    pub(super) fn of<'a>(
        tensors: impl Iterator<Item = (&'a str, String, &'a [u64])>,
        request: Option<&PortableModelImportRequest>,
        artifact: &str,
        warnings: &mut Vec<Warning>,
    ) -> Result<Self> {
        let Some(request) = request else { return Ok(Self { names: None, report: SelectionReport::default() }) };
        let listed = tensors.map(|(name, dtype, shape)| (name.to_string(), ModelStateTensorManifest::of_name(name, &dtype, shape)));
        let selected = select(&listed.collect(), &[], request, artifact)?;
        warnings.extend(selected.warnings);
        let names = selected.entries.into_iter().map(|entry| (entry.source_key, entry.tensor.state_key)).collect();
        Ok(Self { names: Some(names), report: selected.report })
    }

    /// The name under which the tensor `stored` of a file is taken.
    pub(super) fn name<'a>(&'a self, stored: &'a str) -> Option<&'a str> {
        match &self.names {
            Some(names) => names.get(stored).map(String::as_str),
            None => Some(stored),
        }
    }
}
