//! Loads models for inference only: with an adapter, and with the adapter removed again.

use std::collections::BTreeMap;
use std::sync::Arc;

use burn::tensor::{Device, Tensor};
use serde::Serialize;

use super::adaptation::Adaptation;
use super::opening::AdaptedBase;
use super::{Model, ParamMap};
use crate::bundle::Bundle;
use crate::config::{BaseStorage, Precision};
use crate::error::Result;
use crate::gpu::transfer::{RUN_BYTES, Upload};
use crate::interrupt::Interrupt;
use crate::parameters::{ParamInfo, whole_name};

/// Adapter attached to a model (opened with it and not merged into it), in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AttachedAdapter {
    /// Rank of the factors; patterns may give some modules a different one.
    pub r: u64,
    /// Number that the product is multiplied by, before it is divided by the rank.
    pub alpha: f64,
    /// Names of the modules that have factors.
    pub targets: Vec<String>,
    /// Number of values in all factors and in the modules that are stored in full.
    pub parameters: u64,
    /// Size of the adapter's weight file in bytes.
    pub bytes: u64,
}

impl AttachedAdapter {
    /// Returns the adapter attached to `bundle`, if any.
    ///
    /// # Errors
    /// The errors of [`Adaptation::new`].
    pub fn of(bundle: &Bundle) -> Result<Option<Self>> {
        let (Some(adaptation), Some(file)) =
            (Adaptation::attached(bundle)?, bundle.merged_adapter())
        else {
            return Ok(None);
        };
        let parameters = super::Plan::of(&bundle.config, Some(&adaptation))?.parameters;
        let values = |shape: &[usize]| shape.iter().map(|&dim| dim as u64).product::<u64>();
        Ok(Some(Self {
            r: file.config.r,
            alpha: file.config.lora_alpha,
            targets: adaptation.targets().keys().cloned().collect(),
            parameters: parameters
                .iter()
                .filter(|asked| asked.trained)
                .map(|asked| values(&asked.shape))
                .sum(),
            bytes: file.bytes,
        }))
    }
}

/// Replaces parameters by tensors.
struct Put(BTreeMap<String, Tensor<1>>);

impl ParamMap for Put {
    fn map<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) -> Tensor<D> {
        match self.0.remove(name) {
            Some(values) => values.reshape(tensor.dims()),
            None => tensor,
        }
    }
}

impl Model {
    /// Loads a model for inference only: its weights are constants, which the device holds as `storage` says. An adapter attached to
    /// `bundle` stays separate: A and B are f32, and their product is added to that of their matrix.
    ///
    /// # Errors
    /// As [`Model::from_bundle`].
    pub async fn for_inference(
        bundle: &Bundle,
        storage: BaseStorage,
        device: &Device,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let adaptation = Adaptation::attached(bundle)?.unwrap_or_default();
        Self::adapted(
            bundle,
            Precision::F32,
            AdaptedBase {
                adaptation: &adaptation,
                storage,
            },
            device,
            interrupt,
        )
        .await
    }

    /// Returns the base of this model, which shares its constants; `bundle` is the one that the model was opened from. Parameters that the
    /// adapter stores in full are read again from the base's files.
    ///
    /// # Errors
    /// The errors of reading the files, and `call.aborted`.
    #[doc(hidden)]
    pub async fn without_adapter(&self, bundle: &Bundle, interrupt: &Interrupt) -> Result<Self> {
        let mut base = Self {
            adaptation: Some(Arc::new(Adaptation::default())),
            ..self.clone()
        };
        base.body.detach();
        // The parameters that are still visible are those that the adapter stores in full.
        let (mut replaced, parameters) = (BTreeMap::new(), base.parameters());
        for same in parameters.chunk_by(|a, b| whole_name(&a.name) == whole_name(&b.name)) {
            let elements = same.iter().map(ParamInfo::elements).collect();
            let mut upload = Upload::in_parts(elements, same[0].dtype, &self.device);
            let mut pieces = bundle.base_pieces(whole_name(&same[0].name), RUN_BYTES / 4)?;
            while let Some((_, values)) = pieces.next_piece()? {
                upload.put(values)?;
                upload.settle(interrupt).await?;
            }
            let names = same.iter().map(|info| info.name.clone());
            replaced.extend(names.zip(upload.finish_all()?));
        }
        Ok(base.map(&mut Put(replaced)))
    }
}
