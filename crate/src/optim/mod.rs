//! The optimizers: parameter groups, update rules, and the typed state of each parameter (shaders/README.md, "Update rules").

#![allow(
    clippy::needless_range_loop,
    reason = "twins index as their formula does"
)]

#[doc(hidden)]
pub mod adafactor;
#[doc(hidden)]
pub mod adamw;
#[doc(hidden)]
pub mod apollo;
#[doc(hidden)]
pub mod arithmetic;
mod bytes;
#[doc(hidden)]
pub mod gate;
mod groups;
#[doc(hidden)]
pub mod guard;
mod module;
#[doc(hidden)]
pub mod norm;
mod parameter_state;
mod rule;
mod saved;
#[doc(hidden)]
pub mod sgd;
mod state;
mod state_tensor;
mod step;

use std::any::Any;
use std::collections::BTreeMap;

use burn::tensor::{DType, Tensor};

use crate::config::{GroupConfig, OptimizerConfig, TrainConfig, glob_matches};
use crate::error::{Error, Fault, Result};
use crate::gpu::noise::Rounding;
use crate::gpu::{Buffer, Kernels, check_devices};
use crate::parameters::{part_of, whole_name};
use crate::random;

pub use apollo::ProjectorRequest;
pub use gate::Gate;
pub(crate) use groups::{resolved_groups, stepped_in_parts};
pub use module::OptimSettings;
pub(crate) use norm::blocks_of;
pub use rule::{Layout, Rule, Stepped, Update};
pub use saved::SavedState;
pub use state_tensor::StateTensor;
pub(crate) use step::Moved;

// For the packages of this workspace.
#[doc(hidden)]
pub use self::{
    adafactor::Adafactor,
    adamw::Adamw,
    apollo::{Apollo, orthogonal},
    groups::ResolvedGroup,
    norm::{SquareSum, clip_factor, global_norm, sum_of_squares},
    rule::Member,
    saved::ReadSaved,
    sgd::Sgd,
    state_tensor::StateData,
};
#[doc(hidden)]
pub use crate::parameters::ParamInfo;

use rule::Recorded;
use state::State;

/// The kernels of all rules, the gate and the norm.
pub(crate) const KERNELS: [Kernels; 7] = [
    adafactor::KERNELS,
    adamw::KERNELS,
    apollo::KERNELS,
    &[&gate::KERNEL.all()],
    guard::KERNELS,
    norm::KERNELS,
    sgd::KERNELS,
];

/// Makes the rule of these settings for `parameter`. If the rule is AdamW because APOLLO does not project the parameter, the factor of its rate
/// is returned too.
fn made(config: &OptimizerConfig, parameter: &ParamInfo) -> (Box<dyn Rule>, Option<f64>) {
    match config {
        OptimizerConfig::Adamw(config) => (Box::new(Adamw::new(config.clone())), None),
        OptimizerConfig::Adafactor(config) => (Box::new(Adafactor::new(config.clone())), None),
        OptimizerConfig::Apollo(config) if apollo::projects(config, parameter) => {
            (Box::new(Apollo::new(config.clone())), None)
        }
        OptimizerConfig::Apollo(config) => (
            Box::new(Adamw::new(config.fallback())),
            Some(config.adamw_learning_rate_scale),
        ),
        OptimizerConfig::Sgd(config) => (Box::new(Sgd::new(config.clone())), None),
    }
}

/// The error of a parameter that the optimizer was not made for.
fn unexpected(name: &str) -> Error {
    Error::UnexpectedTensors(vec![name.to_string()])
}

/// A parameter with its update rule, its state, and the values that stay the same over the run.
#[derive(Debug)]
struct Slot {
    info: ParamInfo,
    frozen: bool,
    /// True if it is not trained in the current step.
    rests: bool,
    rate_scale: f64,
    rule: Box<dyn Rule>,
    /// Factor of the rate of a parameter that APOLLO leaves to AdamW.
    fallback: Option<f64>,
    rounding: Rounding,
    key: [u32; 2],
    /// Index of its first pair of elements in the parameter, of which it may be a part.
    first_pair: u32,
    layout: Layout,
    state: Option<State>,
}

impl Slot {
    /// Returns true if it is trained in the current step.
    fn trains(&self) -> bool {
        !(self.frozen || self.rests)
    }

    /// The number of bytes that a step takes for its duration.
    fn work_bytes(&self) -> u64 {
        let guarded = match self.rule.binds_gate() {
            true => 0,
            false => guard::work_bytes(self.info.elements(), &self.layout),
        };
        guarded + self.rule.work_bytes(&self.info)
    }

    /// Checks that tensors have the shape and dtype of the parameter; they may be flattened.
    fn check_tensors<const D: usize>(&self, p: &Tensor<D>, grad: &Tensor<D>) -> Result<()> {
        let ParamInfo {
            name, shape, dtype, ..
        } = &self.info;
        for found in [p.dims().to_vec(), grad.dims().to_vec()] {
            if found != *shape && found != [self.info.elements()] {
                return Err(Error::TensorShape {
                    name: name.clone(),
                    expected: shape.clone(),
                    found,
                });
            }
        }
        if p.dtype() != *dtype || grad.dtype() != DType::F32 {
            return Err(Error::invalid(
                name,
                format!("{dtype:?} with an F32 gradient"),
                format!("{:?}, {:?}", p.dtype(), grad.dtype()),
            ));
        }
        Ok(())
    }

    /// Checks that all buffers are on one device, before anything changes.
    fn check_devices(&self, p: &Buffer, grad: &Buffer, recorded: Option<&Recorded>) -> Result<()> {
        let names = self.layout.0.iter().map(|(name, ..)| *name);
        let state = names.zip(self.state.iter().flat_map(|state| &state.tensors));
        let given = recorded
            .into_iter()
            .flat_map(|given| [("noise", &given.noise), ("projector", &given.projector)]);
        let given = given.filter_map(|(name, buffer)| Some((name, buffer.as_ref()?)));
        check_devices(
            "of an update",
            [("p", p), ("g", grad)]
                .into_iter()
                .chain(state)
                .chain(given),
        )
    }
}

/// The optimizer of a run. Each parameter has a rule of its own; its state is made at the first step that has a gradient for it.
#[derive(Debug)]
pub struct Optim {
    seed: u64,
    peak_rate: f64,
    /// Bound of the gradient norm in [`Optim::step_module`]; 0 = none.
    max_grad_norm: f64,
    /// Clipping factor of the next step, once its norm is known.
    clip: Option<f32>,
    slots: BTreeMap<String, Slot>,
    /// A buffer of one word, bound in place of a buffer that a kernel does not read.
    unread: Option<Buffer>,
    recorded: BTreeMap<String, Recorded>,
    /// The step of the run, if parameters rest in it and count fewer steps of their own.
    run_step: Option<u64>,
}

impl Optim {
    /// Sorts `params` into the configuration's groups and makes their rules.
    ///
    /// # Errors
    ///
    /// `optim.groups` for patterns that match nothing and parameters that no pattern matches; `config.invalid` if there are faults in settings,
    /// dtypes other than f32 and bf16, or too many elements as well. Every fault is listed.
    #[doc(hidden)]
    pub fn new(config: &TrainConfig, params: &[ParamInfo]) -> Result<Self> {
        let names: Vec<&str> = params.iter().map(|param| whole_name(&param.name)).collect();
        let (groups, mut faults) = groups::resolve(config, &names);
        let of_names = faults.len();
        faults.extend(GroupConfig::all_frozen(&config.groups));
        let mut slots = BTreeMap::new();
        for group in groups {
            faults.extend(
                group
                    .rule
                    .faults_at(&group.key, config.learning_rate * group.rate_scale),
            );
            for at in group.members {
                let info = params[at].clone();
                if !matches!(info.dtype, DType::F32 | DType::BF16) {
                    faults.push(Fault::new(
                        &info.name,
                        "dtype F32 or BF16",
                        format!("{:?}", info.dtype),
                    ));
                }
                if u32::try_from(info.elements()).is_err() {
                    faults.push(Fault::new(
                        &info.name,
                        "fewer than 2³² elements",
                        info.elements(),
                    ));
                }
                let part = part_of(&info.name);
                let first = part.as_ref().map_or(0, |(_, rows)| rows.start);
                let first_pair = (first * info.shape.last().copied().unwrap_or(0) / 2) as u32;
                let rounding = match (info.dtype, group.rule.stochastic_rounding()) {
                    (DType::BF16, true) => Rounding::Stochastic,
                    (DType::BF16, false) => Rounding::Nearest,
                    _ => Rounding::None,
                };
                let (rule, fallback) = made(&group.rule, &info);
                if let Some((whole, rows)) = part.filter(|_| !group.frozen && !rule.takes_parts()) {
                    faults.push(Fault::new(
                        format!("{}.type", group.key),
                        format!("adamw or sgd for {whole}, which lies in parts on this device"),
                        format!("{} (rows {rows:?})", group.rule.kind()),
                    ));
                }
                let slot = Slot {
                    frozen: group.frozen,
                    rests: false,
                    rate_scale: group.rate_scale,
                    rounding,
                    key: random::key(
                        random::STOCHASTIC_ROUNDING,
                        config.seed,
                        whole_name(&info.name),
                    ),
                    first_pair,
                    layout: rule.layout(&info),
                    rule,
                    fallback,
                    state: None,
                    info,
                };
                slots.insert(slot.info.name.clone(), slot);
            }
        }
        if !faults.is_empty() {
            return Err(if faults.len() == of_names {
                Error::Groups(faults)
            } else {
                Error::InvalidConfig(faults)
            });
        }
        Ok(Self {
            seed: config.seed,
            peak_rate: config.learning_rate,
            max_grad_norm: 0.0,
            clip: None,
            slots,
            unread: None,
            recorded: BTreeMap::new(),
            run_step: None,
        })
    }

    /// Gives the trained parameters whose names match `pattern` rules of the caller's own: `make` makes the instance for each, and its state starts
    /// again.
    ///
    /// # Errors
    ///
    /// `optim.groups` for a pattern that matches none; `config.invalid` for faults of settings and layouts, all of them listed.
    pub fn with_rule<R: Rule>(
        mut self,
        pattern: &str,
        make: impl Fn(&ParamInfo) -> R,
    ) -> Result<Self> {
        let mut faults = Vec::new();
        let mut matched = false;
        for slot in self
            .slots
            .values_mut()
            .filter(|slot| !slot.frozen && glob_matches(pattern, &slot.info.name))
        {
            matched = true;
            let rule = make(&slot.info);
            let layout = rule.layout(&slot.info);
            if part_of(&slot.info.name).is_some() && !rule.takes_parts() {
                let rule = "a parameter that a kernel of this device can bind as a whole";
                faults.push(Fault::new(pattern, rule, &slot.info.name));
            }
            faults.extend(rule.faults(self.peak_rate * slot.rate_scale));
            faults.extend(layout.faults(&slot.info.name));
            (slot.rule, slot.layout, slot.state, slot.fallback) =
                (Box::new(rule), layout, None, None);
        }
        if !matched {
            return Err(Error::Groups(vec![Fault::new(
                "pattern",
                "one that matches trained parameters",
                pattern,
            )]));
        }
        Error::of_faults(faults)?;
        Ok(self)
    }

    /// The rule instance of `name`, if it is an `R`.
    #[doc(hidden)]
    pub fn rule<R: Rule>(&self, name: &str) -> Option<&R> {
        let rule: &dyn Any = &*self.slots.get(name)?.rule;
        rule.downcast_ref()
    }

    fn slot(&self, name: &str) -> Result<&Slot> {
        self.slots.get(name).ok_or_else(|| unexpected(name))
    }

    /// The slots of a parameter: its own, or those of its parts in order.
    fn slots_of(&self, name: &str) -> impl Iterator<Item = &Slot> {
        let from = self.slots.range(name.to_string()..);
        from.map(|(_, slot)| slot)
            .take_while(move |slot| slot.info.name.starts_with(name))
            .filter(move |slot| whole_name(&slot.info.name) == name || slot.info.name == name)
    }

    #[cfg(feature = "replay")]
    fn slot_mut(&mut self, name: &str) -> Result<&mut Slot> {
        self.slots.get_mut(name).ok_or_else(|| unexpected(name))
    }

    /// The parameters that are trained in this step.
    fn trained(&self) -> impl Iterator<Item = &Slot> {
        self.slots.values().filter(|slot| slot.trains())
    }

    /// Steps parameter `name` and returns the new parameter, computed in place if `p` is uniquely owned. `p` and the f32 `grad` are without autodiff
    /// and have the shape of the parameter or are flattened to `[elements]`. `learning_rate` is that of the schedule: the group's scale is applied
    /// here. `gate` decides if anything is written, and has the clipping factor of the gradient. Without a gradient, and for a parameter that
    /// is frozen or at rest, parameter and state stay as they are.
    ///
    /// # Errors
    ///
    /// `model.tensor.unexpected`, `model.tensor.shape` or `config.invalid` for another name, shape or dtype; `kernel.mixed-devices`,
    /// `kernel.foreign-backend`; and the errors of the rule.
    #[doc(hidden)]
    pub fn step_param<const D: usize>(
        &mut self,
        name: &str,
        p: Tensor<D>,
        grad: Option<Tensor<D>>,
        learning_rate: f64,
        gate: &Gate,
    ) -> Result<Tensor<D>> {
        let slot = self.slot(name)?;
        let Some(grad) = grad.filter(|_| slot.trains()) else {
            return Ok(p);
        };
        let moved = self.moved(name, p, grad)?;
        let stepped = self.step_all(vec![moved], learning_rate, gate)?;
        Ok(stepped
            .into_iter()
            .next()
            .expect("one parameter is stepped")
            .1
            .float())
    }
}
