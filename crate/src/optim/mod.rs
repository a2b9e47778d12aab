//! The optimizers: parameter groups, per-parameter typed state, one update at a time (shaders/README.md, "Update rules").

#![allow(clippy::needless_range_loop, reason = "twins index as their formula does")]

pub mod adafactor;
pub mod adamw;
pub mod apollo;
pub mod arithmetic;
pub mod gate;
mod groups;
mod member;
mod module;
pub mod norm;
mod rule;
mod saved;
pub mod sgd;
mod state;
mod step;

use std::any::Any;
use std::collections::BTreeMap;

use burn::tensor::{DType, Tensor};

use crate::config::{GroupConfig, OptimizerConfig, TrainConfig, glob_matches};
use crate::error::{Error, Fault, Result};
use crate::gpu::noise::Rounding;
use crate::gpu::{Buffer, Kernels, check_devices};
pub use crate::parameters::ParamInfo;
use crate::random;

pub use adafactor::Adafactor;
pub use adamw::Adamw;
pub use apollo::{Apollo, orthogonal};
pub use gate::Gate;
pub use groups::{ResolvedGroup, resolved_groups};
pub use module::OptimSettings;
pub use norm::{SquareSum, blocks_of, clip_factor, global_norm, sum_of_squares};
pub use rule::{Layout, Member, Rule, Stepped, Update};
pub use saved::{ReadSaved, SavedState};
pub use sgd::Sgd;
pub use state::{StateData, StateTensor};
pub(crate) use step::Moved;

use rule::Recorded;
use state::State;

/// The kernels of all rules, and of the norm.
pub(crate) const KERNELS: [Kernels; 6] =
    [adafactor::KERNELS, adamw::KERNELS, apollo::KERNELS, &[&gate::KERNEL.all()], norm::KERNELS, sgd::KERNELS];

/// The rule of these settings for `parameter`, and the factor of its rate if it is AdamW in place of APOLLO, which does not project it.
fn made(config: &OptimizerConfig, parameter: &ParamInfo) -> (Box<dyn Rule>, Option<f64>) {
    match config {
        OptimizerConfig::Adamw(config) => (Box::new(Adamw::new(config.clone())), None),
        OptimizerConfig::Adafactor(config) => (Box::new(Adafactor::new(config.clone())), None),
        OptimizerConfig::Apollo(config) if apollo::projects(config, parameter) => (Box::new(Apollo::new(config.clone())), None),
        OptimizerConfig::Apollo(config) => (Box::new(Adamw::new(config.fallback())), Some(config.adamw_learning_rate_scale)),
        OptimizerConfig::Sgd(config) => (Box::new(Sgd::new(config.clone())), None),
    }
}

/// A parameter with its update rule and state, and what stays the same over the run.
#[derive(Debug)]
struct Slot {
    info: ParamInfo,
    frozen: bool,
    /// Not trained in the current step.
    rests: bool,
    rate_scale: f64,
    rule: Box<dyn Rule>,
    /// Factor of the rate of what APOLLO leaves to AdamW.
    fallback: Option<f64>,
    rounding: Rounding,
    key: [u32; 2],
    layout: Layout,
    state: Option<State>,
}

impl Slot {
    /// Whether it is moved in the current step.
    fn trains(&self) -> bool {
        !(self.frozen || self.rests)
    }

    /// Refuses another shape or dtype than that of the parameter, which may come flattened.
    fn check_tensors<const D: usize>(&self, p: &Tensor<D>, grad: &Tensor<D>) -> Result<()> {
        let ParamInfo { name, shape, dtype, .. } = &self.info;
        for found in [p.dims().to_vec(), grad.dims().to_vec()] {
            if found != *shape && found != [self.info.elements()] {
                return Err(Error::TensorShape { name: name.clone(), expected: shape.clone(), found });
            }
        }
        if p.dtype() != *dtype || grad.dtype() != DType::F32 {
            let fault = Fault::new(name, format!("{dtype:?} with an F32 gradient"), format!("{:?}, {:?}", p.dtype(), grad.dtype()));
            return Err(Error::InvalidConfig(vec![fault]));
        }
        Ok(())
    }

    /// Refuses buffers on different devices, before anything changes.
    fn check_devices(&self, p: &Buffer, grad: &Buffer, recorded: Option<&Recorded>) -> Result<()> {
        let names = self.layout.0.iter().map(|(name, ..)| *name);
        let state = names.zip(self.state.iter().flat_map(|state| &state.tensors));
        let given = recorded.into_iter().flat_map(|given| [("noise", &given.noise), ("projector", &given.projector)]);
        let given = given.filter_map(|(name, buffer)| Some((name, buffer.as_ref()?)));
        check_devices("of an update", [("p", p), ("g", grad)].into_iter().chain(state).chain(given))
    }
}

/// The optimizer of a run. Parameters are updated one by one; state appears at the first step that has a gradient.
#[derive(Debug)]
pub struct Optim {
    seed: u64,
    peak_rate: f64,
    /// Bound of the norm in [`Optim::step_module`]; 0 = none.
    max_grad_norm: f64,
    /// The factor that the bound gives the next step, once its norm is known.
    clip: Option<f32>,
    slots: BTreeMap<String, Slot>,
    /// A buffer of one word, bound in place of a buffer that a kernel does not read.
    unread: Option<Buffer>,
    recorded: BTreeMap<String, Recorded>,
    /// The step of the run, where parameters that rest count fewer.
    run_step: Option<u64>,
}

impl Optim {
    /// Sorts `params` into the configuration's groups. Every fault is listed: patterns that match nothing, parameters that no pattern
    /// matches, settings, dtypes other than f32 and bf16.
    pub fn new(config: &TrainConfig, params: &[ParamInfo]) -> Result<Self> {
        let names: Vec<&str> = params.iter().map(|param| param.name.as_str()).collect();
        let (groups, mut faults) = groups::resolve(config, &names);
        let of_names = faults.len();
        faults.extend(GroupConfig::all_frozen(&config.groups));
        let mut slots = BTreeMap::new();
        for group in groups {
            faults.extend(group.rule.faults_at(&group.key, config.learning_rate * group.rate_scale));
            for at in group.members {
                let info = params[at].clone();
                if !matches!(info.dtype, DType::F32 | DType::BF16) {
                    faults.push(Fault::new(&info.name, "dtype F32 or BF16", format!("{:?}", info.dtype)));
                }
                if u32::try_from(info.elements()).is_err() {
                    faults.push(Fault::new(&info.name, "fewer than 2³² elements", info.elements()));
                }
                let rounding = match (info.dtype, group.rule.stochastic_rounding()) {
                    (DType::BF16, true) => Rounding::Stochastic,
                    (DType::BF16, false) => Rounding::Nearest,
                    _ => Rounding::None,
                };
                let (rule, fallback) = made(&group.rule, &info);
                let slot = Slot {
                    frozen: group.frozen,
                    rests: false,
                    rate_scale: group.rate_scale,
                    rounding,
                    key: random::key(random::STOCHASTIC_ROUNDING, config.seed, &info.name),
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
            return Err(if faults.len() == of_names { Error::Groups(faults) } else { Error::InvalidConfig(faults) });
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

    /// Moves the trained parameters whose names match `pattern` by rules of the caller's own: `make` gives the instance of each, whose state
    /// starts anew. Every fault is listed: a pattern that matches none, settings, layouts.
    pub fn with_rule<R: Rule>(mut self, pattern: &str, make: impl Fn(&ParamInfo) -> R) -> Result<Self> {
        let mut faults = Vec::new();
        let mut matched = false;
        for slot in self.slots.values_mut().filter(|slot| !slot.frozen && glob_matches(pattern, &slot.info.name)) {
            matched = true;
            let rule = make(&slot.info);
            let layout = rule.layout(&slot.info);
            faults.extend(rule.faults(self.peak_rate * slot.rate_scale));
            faults.extend(layout.faults(&slot.info.name));
            (slot.rule, slot.layout, slot.state, slot.fallback) = (Box::new(rule), layout, None, None);
        }
        if !matched {
            return Err(Error::Groups(vec![Fault::new("pattern", "one that matches trained parameters", pattern)]));
        }
        if faults.is_empty() { Ok(self) } else { Err(Error::InvalidConfig(faults)) }
    }

    /// The rule instance of `name`, if it is an `R`.
    pub fn rule<R: Rule>(&self, name: &str) -> Option<&R> {
        let rule: &dyn Any = &*self.slots.get(name)?.rule;
        rule.downcast_ref()
    }

    fn slot(&self, name: &str) -> Result<&Slot> {
        self.slots.get(name).ok_or_else(|| Error::UnexpectedTensors(vec![name.to_string()]))
    }

    /// Whether `name` is in a frozen group, rests, or is unknown: it needs no gradient.
    pub fn frozen(&self, name: &str) -> bool {
        self.slots.get(name).is_none_or(|slot| !slot.trains())
    }

    /// Number of steps that `name` has taken.
    pub fn step_count(&self, name: &str) -> u64 {
        self.slots.get(name).and_then(|slot| slot.state.as_ref()).map_or(0, |state| state.step)
    }

    /// Bytes of all state once every trained parameter has had a gradient: what is saved.
    pub fn state_bytes(&self) -> u64 {
        self.slots.values().filter(|slot| slot.trains()).map(|slot| slot.layout.bytes()).sum()
    }

    /// Bytes on the device that the rules keep in addition to the state, and that are not saved.
    pub fn side_bytes(&self) -> u64 {
        self.slots.values().filter(|slot| slot.trains()).map(|slot| slot.rule.side_bytes(&slot.info)).sum()
    }

    /// The most bytes that the step of one parameter takes and gives back.
    pub fn work_bytes(&self) -> u64 {
        self.slots.values().filter(|slot| slot.trains()).map(|slot| slot.rule.work_bytes(&slot.info)).max().unwrap_or(0)
    }

    /// Names of the trained parameters that APOLLO leaves to AdamW: embeddings and head unless it projects them too, what has no two
    /// dimensions, and what has a shorter side of at most the rank.
    pub fn fallbacks(&self) -> Vec<&str> {
        let trained = self.slots.values().filter(|slot| !slot.frozen);
        trained.filter(|slot| slot.fallback.is_some()).map(|slot| slot.info.name.as_str()).collect()
    }

    /// One step of parameter `name`: returns the new parameter, computed in place if `p` is uniquely owned. Tensors are without autodiff,
    /// `grad` is f32 (both may come flattened to [elements]), `learning_rate` is the schedule's (the group's scale is applied here),
    /// `gate` says whether anything is written, and the factor of the gradient (clipping). Without a gradient, if frozen or at rest, parameter
    /// and state stay as they are.
    pub fn step_param<const D: usize>(
        &mut self,
        name: &str,
        p: Tensor<D>,
        grad: Option<Tensor<D>>,
        learning_rate: f64,
        gate: &Gate,
    ) -> Result<Tensor<D>> {
        let slot = self.slot(name)?;
        let Some(grad) = grad.filter(|_| slot.trains()) else { return Ok(p) };
        let moved = self.moved(name, p, grad)?;
        let stepped = self.step_all(vec![moved], learning_rate, gate)?;
        Ok(stepped.into_iter().next().expect("one parameter is stepped").1.float())
    }
}
