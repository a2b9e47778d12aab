//! Builds models from files and from a seed.

use std::sync::Arc;

use burn::tensor::Device;

use super::Model;
use super::adaptation::Adaptation;
use super::body::Body;
use super::frozen_weights::FrozenWeights;
use super::load::{Loaded, Plan};
use super::parameter_request::ParameterRequest;
use super::rope::Ropes;
use super::values::{BundleValues, FreshValues, Loading, Values};
use crate::bundle::Bundle;
use crate::config::{BaseStorage, ModelConfig, Precision, TrainConfig};
use crate::error::Result;
use crate::gpu::check_device;
use crate::interrupt::Interrupt;

/// Adapter on top of a base, and how the base is stored.
#[derive(Debug, Clone, Copy)]
pub struct AdaptedBase<'a> {
    /// Targets and saved modules of the adapter.
    pub adaptation: &'a Adaptation,
    /// Storage of the base on the device.
    pub storage: BaseStorage,
}

impl Model {
    async fn load(loading: Loading<'_>, plan: Plan, source: &mut impl Values) -> Result<Self> {
        check_device(loading.device)?;
        let (loaded, frozen_weights) = loading.run(&plan.parameters, source).await?;
        let (config, adaptation) = (loading.config, loading.adaptation.cloned());
        let model = Self::of_loaded(config, loading.precision, loading.device, plan, loaded)?;
        Ok(Self {
            adaptation: adaptation.map(Arc::new),
            frozen_weights,
            ..model
        })
    }

    /// Builds the modules of a model without an adapter from what was loaded for them.
    fn of_loaded(
        config: &ModelConfig,
        precision: Precision,
        device: &Device,
        plan: Plan,
        mut loaded: Loaded<'_>,
    ) -> Result<Self> {
        let Plan {
            stack, parameters, ..
        } = plan;
        let part = |request: ParameterRequest| (request.name, request.part);
        Ok(Self {
            config: config.clone(),
            precision,
            body: Body::new(config, &stack, &mut loaded)?,
            ropes: Ropes::new(&stack, config.max_position_embeddings, device),
            device: device.clone(),
            parts: Arc::new(parameters.into_iter().map(part).collect()),
            adaptation: None,
            frozen_weights: FrozenWeights::default(),
            non_finite: Vec::new(),
        })
    }

    /// Loads a model, piece by piece, with a pause after each.
    ///
    /// # Errors
    /// `model.tensor.missing` (all are listed), `model.tensor.shape`, `model.tensor.unexpected`, `kernel.foreign-backend` for a device
    /// without these kernels, `call.aborted`, and the errors of reading the files.
    pub async fn from_bundle(
        bundle: &Bundle,
        precision: Precision,
        device: &Device,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        Self::of_files(bundle, precision, None, device, interrupt).await
    }

    /// Loads a model with an adapter. Factors that the files have are read; otherwise A is a pure function of the adapter's seed and its
    /// name, and B is zero. `precision` is that of the trained parameters.
    ///
    /// # Errors
    /// As [`Model::from_bundle`].
    #[doc(hidden)]
    pub async fn adapted(
        bundle: &Bundle,
        precision: Precision,
        adapted_base: AdaptedBase<'_>,
        device: &Device,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        Self::of_files(bundle, precision, Some(adapted_base), device, interrupt).await
    }

    /// Loads the model that a run with these settings trains: all of its weights, or an adapter on top of them.
    ///
    /// # Errors
    /// As [`Model::from_bundle`], and `config.invalid` or `adapter.*` for an adapter that does not fit the model.
    pub async fn for_run(
        bundle: &Bundle,
        train: &TrainConfig,
        device: &Device,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let adaptation = Adaptation::of_run(train, &bundle.config)?;
        let adapted_base = adaptation.as_ref().map(|adaptation| AdaptedBase {
            adaptation,
            storage: train.base_storage,
        });
        Self::of_files(bundle, train.precision, adapted_base, device, interrupt).await
    }

    async fn of_files(
        bundle: &Bundle,
        precision: Precision,
        adapted_base: Option<AdaptedBase<'_>>,
        device: &Device,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let adaptation = adapted_base.map(|adapted_base| adapted_base.adaptation);
        let plan = Plan::of(&bundle.config, adaptation)?;
        let mut values = BundleValues::new(
            bundle,
            &plan.parameters,
            adaptation.map_or(0, Adaptation::seed),
        )?;
        let base_storage =
            adapted_base.map_or(BaseStorage::F32, |adapted_base| adapted_base.storage);
        let loading = Loading {
            config: &bundle.config,
            precision,
            adaptation,
            base_storage,
            device,
            interrupt,
        };
        let model = Self::load(loading, plan, &mut values).await?;
        Ok(Self {
            non_finite: values.non_finite,
            ..model
        })
    }

    /// Creates a new model, piece by piece, whose weights are a pure function of `config` and `seed`: norms 1, biases 0, matrices nearly
    /// normal with mean 0 and standard deviation `initializer_range`, which is divided by √(2·layers) for matrices that write to the
    /// residual stream.
    ///
    /// # Errors
    /// The errors of [`ModelConfig::validate`], `kernel.foreign-backend`, `call.aborted`.
    pub async fn init(
        config: &ModelConfig,
        seed: u64,
        precision: Precision,
        device: &Device,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let loading = Loading {
            config,
            precision,
            adaptation: None,
            base_storage: BaseStorage::F32,
            device,
            interrupt,
        };
        Self::load(
            loading,
            Plan::of(config, None)?,
            &mut FreshValues { config, seed },
        )
        .await
    }
}
