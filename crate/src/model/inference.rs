//! Models that are run and not trained: beside an adapter, and without it again.

use std::collections::BTreeMap;
use std::sync::Arc;

use burn::tensor::{Device, Tensor};
use serde::Serialize;

use super::adaptation::Adaptation;
use super::opening::Beside;
use super::{Model, ParamMap};
use crate::bundle::Bundle;
use crate::config::{BaseStorage, Precision};
use crate::error::Result;
use crate::gpu::transfer::{RUN_BYTES, Upload};
use crate::interrupt::Interrupt;

/// The adapter that stands beside a model, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AttachedAdapter {
    /// Rank of the factors; patterns may give some another.
    pub r: u64,
    /// What the product is multiplied by, before it is divided by the rank.
    pub alpha: f64,
    /// The modules that have factors.
    pub targets: Vec<String>,
    /// Values of all factors and of what is stored in full.
    pub parameters: u64,
    /// Bytes of the file of its weights.
    pub bytes: u64,
}

impl AttachedAdapter {
    /// That of `bundle`, if an adapter was put beside it when it was opened.
    ///
    /// # Errors
    /// Those of [`Adaptation::new`].
    pub fn of(bundle: &Bundle) -> Result<Option<Self>> {
        let (Some(adaptation), Some(file)) = (Adaptation::attached(bundle)?, bundle.merged_adapter()) else { return Ok(None) };
        let parameters = super::Plan::of(&bundle.config, Some(&adaptation))?.parameters;
        let values = |shape: &[usize]| shape.iter().map(|&dim| dim as u64).product::<u64>();
        Ok(Some(Self {
            r: file.config.r,
            alpha: file.config.lora_alpha,
            targets: adaptation.targets().keys().cloned().collect(),
            parameters: parameters.iter().filter(|asked| asked.trained).map(|asked| values(&asked.shape)).sum(),
            bytes: file.bytes,
        }))
    }
}

/// Puts tensors in place of parameters.
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
    /// A model that is run and not trained: its weights are constants, which the device holds as `storage` says. The adapter that was put
    /// beside it when it was opened, if there is one, stays apart: A and B in f32, their product added to that of their matrix.
    ///
    /// # Errors
    /// As [`Model::from_bundle`].
    pub async fn for_inference(bundle: &Bundle, storage: BaseStorage, device: &Device, interrupt: &Interrupt) -> Result<Self> {
        let adaptation = Adaptation::attached(bundle)?.unwrap_or_default();
        Self::adapted(bundle, Precision::F32, Beside { adaptation: &adaptation, storage }, device, interrupt).await
    }

    /// The base of this model, which shares its constants; `bundle` is what both were opened from. What the adapter stores in full is read
    /// anew from the base's files.
    ///
    /// # Errors
    /// Those of reading the files.
    pub async fn without_adapter(&self, bundle: &Bundle, interrupt: &Interrupt) -> Result<Self> {
        let mut base = Self { adaptation: Some(Arc::new(Adaptation::default())), ..self.clone() };
        base.body.detach();
        // What is left to see are the modules that the adapter stores in full.
        let mut replaced = BTreeMap::new();
        for info in base.parameters() {
            let mut upload = Upload::new(info.elements(), info.dtype, &self.device);
            let mut pieces = bundle.base_pieces(&info.name, RUN_BYTES / 4)?;
            while let Some((_, values)) = pieces.next_piece()? {
                upload.put(values)?;
                upload.settle(interrupt).await?;
            }
            replaced.insert(info.name, upload.finish()?);
        }
        Ok(base.map(&mut Put(replaced)))
    }
}
