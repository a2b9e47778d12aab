//! The optimizers for any Burn module: parameters are named by their paths, and gradients are taken as Burn collects them.
//!
//! Burn's own `Optimizer` trait does not fit. It gets neither the name of a parameter nor a seed, and the noise of bf16 write-backs and APOLLO's
//! projectors are functions of both. It cannot return an error. And its records read the device synchronously, which panics in a browser.

use burn::module::{Module, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;

use super::{Gate, Optim, ParamInfo, clip_factor, global_norm};
use crate::config::{GroupConfig, OptimizerConfig, TrainConfig};
use crate::error::{Error, Fault, Result};
use crate::gpu::Buffer;
use crate::parameters::{ParamMap, ParamVisitor, map, visit};

/// The settings of the optimizer of a module ([example](crate#any-burn-module)).
#[derive(Debug, Clone, PartialEq)]
pub struct OptimSettings {
    /// Update rule.
    pub optimizer: OptimizerConfig,
    /// Parameter groups by path; empty = one group of everything.
    pub groups: Vec<GroupConfig>,
    /// The largest rate of any step.
    pub learning_rate: f64,
    /// Bound of the global gradient norm; 0 = no clipping.
    pub max_grad_norm: f64,
    /// Seed of the random numbers of updates.
    pub seed: u64,
}

impl Default for OptimSettings {
    fn default() -> Self {
        Self {
            optimizer: OptimizerConfig::default(),
            groups: Vec::new(),
            learning_rate: 1e-3,
            max_grad_norm: 0.0,
            seed: 0,
        }
    }
}

impl Optim {
    /// Makes the optimizer of `module`, for each parameter that requires a gradient, named by its path (`layers.0.weight`); one at several paths
    /// by the first. Others, such as the running statistics of a BatchNorm, are not updated and have no state.
    ///
    /// # Errors
    ///
    /// As [`Optim::new`]; `optim.groups` if no parameter requires a gradient.
    pub fn for_module<M: Module>(module: &M, settings: &OptimSettings) -> Result<Self> {
        struct Trained(Vec<ParamInfo>);
        impl ParamVisitor for Trained {
            fn visit<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) {
                if tensor.is_require_grad() {
                    self.0.push(ParamInfo::of(name, &tensor));
                }
            }
        }
        let OptimSettings {
            optimizer,
            groups,
            learning_rate,
            max_grad_norm,
            seed,
        } = settings.clone();
        let config = TrainConfig {
            optimizer,
            groups,
            learning_rate,
            max_grad_norm,
            seed,
            ..TrainConfig::default()
        };
        config.validate()?;
        let mut trained = Trained(Vec::new());
        visit(module, &mut trained);
        if trained.0.is_empty() {
            return Err(Error::Groups(vec![Fault::new(
                "module",
                "a parameter that requires a gradient, on an autodiff device",
                "none",
            )]));
        }
        Ok(Self {
            max_grad_norm,
            ..Self::new(&config, &trained.0)?
        })
    }

    /// Computes the global 2-norm of the gradients of all trained parameters, and with it the factor by which the next [`Optim::step_module`] clips
    /// them. Reads the device once.
    ///
    /// # Errors
    ///
    /// `train.non-finite` for a norm that is not finite, since a step with these gradients would spoil the parameters; `device.lost`; and the
    /// errors of [`Optim::step_module`] for gradients that do not fit.
    pub async fn grad_norm<M: Module>(
        &mut self,
        module: &M,
        grads: &GradientsParams,
    ) -> Result<f64> {
        self.clip = None;
        let norm = global_norm(self.gathered(module, grads)?).await?;
        if !norm.is_finite() {
            let step = 1 + self
                .slots
                .values()
                .filter_map(|slot| Some(slot.state.as_ref()?.step))
                .max()
                .unwrap_or(0);
            return Err(Error::NonFinite {
                step,
                tensor: "grad_norm".into(),
                value: norm,
            });
        }
        self.clip = Some(clip_factor(norm, self.max_grad_norm));
        Ok(norm)
    }

    /// Steps every parameter that has a gradient, in place if `module` is its only owner: drop the loss first, keep no clone, and read the norm
    /// or the loss, since work that waits for the device holds the buffers that it reads. The other parameters stay as they are.
    ///
    /// # Errors
    ///
    /// `config.invalid` for a rate that is negative or above that of the settings, for a bound of the norm without [`Optim::grad_norm`] before the
    /// step, and for a gradient or parameter of another dtype; `model.tensor.unexpected` or `model.tensor.shape` for a gradient of an unknown
    /// parameter or of another shape; `kernel.mixed-devices`; `kernel.foreign-backend`. All of these are found before anything changes, but
    /// `module` is lost.
    pub fn step_module<M: Module>(
        &mut self,
        rate: f64,
        module: M,
        grads: GradientsParams,
    ) -> Result<M> {
        let most = self.peak_rate;
        if !(0.0..=most).contains(&rate) {
            return Err(Error::invalid(
                "rate",
                format!("0 ≤ rate ≤ {most}, that of the settings"),
                rate,
            ));
        }
        let clip = match self.clip.take() {
            Some(clip) => clip,
            None if self.max_grad_norm > 0.0 => {
                return Err(Error::invalid(
                    "max_grad_norm",
                    "0, or a call of grad_norm before each step",
                    self.max_grad_norm,
                ));
            }
            None => 1.0,
        };
        self.gathered(&module, &grads)?;
        let mut step = Step {
            optim: self,
            grads,
            rate,
            clip,
            gate: None,
            failed: None,
        };
        let module = map(module, &mut step);
        step.failed.map_or(Ok(module), Err)
    }

    /// The gradients of all trained parameters, each with its number of elements; refuses what a step would refuse.
    fn gathered<M: Module>(
        &self,
        module: &M,
        grads: &GradientsParams,
    ) -> Result<Vec<(Buffer, usize)>> {
        let mut gather = Gather {
            optim: self,
            grads,
            found: Vec::new(),
            failed: None,
        };
        visit(module, &mut gather);
        gather.failed.map_or(Ok(gather.found), Err)
    }
}

struct Gather<'a> {
    optim: &'a Optim,
    grads: &'a GradientsParams,
    found: Vec<(Buffer, usize)>,
    failed: Option<Error>,
}

impl Gather<'_> {
    fn gradient<const D: usize>(
        &self,
        name: &str,
        param: &Param<Tensor<D>>,
    ) -> Result<Option<(Buffer, usize)>> {
        let value = param.val();
        let Some(grad) = self
            .grads
            .get::<D>(param.id)
            .filter(|_| value.is_require_grad())
        else {
            return Ok(None);
        };
        let (slot, elements) = (self.optim.slot(name)?, grad.dims().iter().product());
        slot.check_tensors(&value.clone().inner(), &grad)?;
        let (value, grad) = (Buffer::of(value.inner())?, Buffer::of(grad)?);
        slot.check_devices(&value, &grad, None)?;
        Ok((!slot.frozen).then_some((grad, elements)))
    }
}

impl ParamVisitor for Gather<'_> {
    fn visit<const D: usize>(&mut self, _name: &str, _tensor: Tensor<D>) {}

    fn visit_param<const D: usize>(&mut self, name: &str, param: &Param<Tensor<D>>) {
        match self.gradient(name, param) {
            Ok(found) => self.found.extend(found),
            Err(error) => self.failed = self.failed.take().or(Some(error)),
        }
    }
}

struct Step<'a> {
    optim: &'a mut Optim,
    grads: GradientsParams,
    rate: f64,
    clip: f32,
    /// The gate, made at the first parameter, on its device.
    gate: Option<Gate>,
    failed: Option<Error>,
}

impl ParamMap for Step<'_> {
    fn map<const D: usize>(&mut self, _name: &str, tensor: Tensor<D>) -> Tensor<D> {
        tensor
    }

    fn map_param<const D: usize>(
        &mut self,
        name: &str,
        param: Param<Tensor<D>>,
    ) -> Param<Tensor<D>> {
        let grad = self.grads.remove::<D>(param.id);
        let (id, tensor, mapper) = param.consume();
        if self.failed.is_some() || grad.is_none() || !tensor.is_require_grad() {
            return Param::from_mapped_value(id, tensor, mapper);
        }
        let strategy = tensor.gradient_checkpointing_strategy();
        let device = tensor.device();
        let gate = self
            .gate
            .get_or_insert_with(|| Gate::open(self.clip, &tensor.clone().inner().device()))
            .clone();
        let stepped = self
            .optim
            .step_param(name, tensor.inner(), grad, self.rate, &gate)
            .map(Tensor::from_inner);
        let stepped = stepped.unwrap_or_else(|error| {
            // The module is not given back.
            self.failed = Some(error);
            Tensor::empty([0; D], &device)
        });
        let stepped = strategy.into_iter().fold(stepped, |stepped, strategy| {
            stepped.with_gradient_checkpointing_strategy(strategy)
        });
        Param::from_mapped_value(id, stepped.require_grad(), mapper)
    }
}
