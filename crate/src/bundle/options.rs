//! Options for opening a model, and the selection of its tensors by a request.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::error::{Result, Warning};
use crate::formats::ByteSource;
use crate::state::{ModelStateTensorManifest, PortableModelImportRequest, SelectionReport, select};

/// Options for opening a model ([example](crate)).
#[derive(Default)]
pub struct OpenOptions {
    /// Files `adapter_config.json` and `adapter_model.safetensors` of a PEFT LoRA, which is merged: every tensor then reads with the product of
    /// its pair added, rounded to its dtype, blocks as F32.
    pub adapter: Option<Vec<Rc<dyn ByteSource>>>,
    /// Attach the adapter to the model instead: its factors become separate tensors, and the base's matrices stay as they are.
    #[doc(hidden)]
    pub apart: bool,
    /// Return the tensors that an adapter is merged into as F32, whatever their dtype in the base: for writers that round by themselves.
    #[doc(hidden)]
    pub exact: bool,
    /// Chat template to use instead of the model's: a text, or `chatml`.
    #[doc(hidden)]
    pub chat_template: Option<String>,
    /// Use a table of embeddings that has more rows in the adapter than in the base: tokens were added before it was trained.
    pub resize_vocabulary: bool,
    /// Selection and renaming of the tensors, applied before the model's own names are looked up.
    #[doc(hidden)]
    pub request: Option<PortableModelImportRequest>,
    /// Read no values: a second head is then assumed to equal the embedding, and is left out.
    #[doc(hidden)]
    pub headers_only: bool,
}

/// New name of each selected tensor, by its name in the files.
#[derive(Default)]
pub(super) struct Taken {
    /// `None` if everything is taken under its own name.
    names: Option<BTreeMap<String, String>>,
    pub(super) report: SelectionReport,
}

impl Taken {
    /// Applies `request` to `tensors`, each with its name, dtype and shape; without one everything is taken.
    pub(super) fn of<'a>(
        tensors: impl Iterator<Item = (&'a str, &'a str, &'a [u64])>,
        request: Option<&PortableModelImportRequest>,
        artifact: &str,
        warnings: &mut Vec<Warning>,
    ) -> Result<Self> {
        let Some(request) = request else {
            return Ok(Self::default());
        };
        let listed = |(name, dtype, shape): (&str, _, _)| {
            let manifest = ModelStateTensorManifest::of_name(name, dtype, shape);
            (name.to_string(), manifest)
        };
        let selected = select(&tensors.map(listed).collect(), &[], request, artifact)?;
        warnings.extend(selected.warnings);
        let entries = selected.entries.into_iter();
        let names = entries.map(|entry| (entry.source_key, entry.tensor.state_key));
        Ok(Self {
            names: Some(names.collect()),
            report: selected.report,
        })
    }

    /// Finds the name under which the tensor `stored` of a file is taken.
    pub(super) fn name<'a>(&'a self, stored: &'a str) -> Option<&'a str> {
        match &self.names {
            Some(names) => names.get(stored).map(String::as_str),
            None => Some(stored),
        }
    }
}
