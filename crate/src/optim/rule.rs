//! The trait of update rules, each of which moves one parameter by one step.

use std::any::Any;
use std::fmt::Debug;

use burn::tensor::{DType, Device, Tensor};

use super::state::DTYPES;
use super::{Optim, ParamInfo};
use crate::config::{Kept, KeptTensor, OptimizerKind};
use crate::error::{Error, Fault, Result};
use crate::gpu::Buffer;
use crate::gpu::noise::Noise;

/// An update rule for one parameter. [`Optim`](super::Optim) has an instance for each parameter, keeps its state, saves and loads it. The crate's
/// own rules are made from an [`OptimizerConfig`](crate::config::OptimizerConfig); [`Optim::with_rule`](super::Optim::with_rule) takes others.
///
/// A rule need not know of clipping, of steps that are not finite, and of bf16. Parameter and gradient come to it in f32, in the shape of the
/// parameter, the gradient clipped; a bf16 parameter is widened before and rounded after the step, stochastically unless its group says otherwise,
/// and so are bf16 tensors of the state. If the loss or the norm of a step is not finite, what the rule has computed is dropped. This takes
/// copies of one parameter and its state at a time; [`Rule::binds_gate`] is for rules that do without. [The front page](crate#a-rule-of-your-own)
/// has an example.
pub trait Rule: Any + Debug + Send {
    /// The layout of the tensors that the rule keeps for `parameter` from step to step. They start at zero, lie flat, and are saved.
    fn layout(&self, parameter: &ParamInfo) -> Layout;

    /// Takes one step: returns the new parameter and the new state, in the order of the layout. Buffers that are uniquely owned are best changed in
    /// place.
    ///
    /// # Errors
    ///
    /// The errors of its kernels. An error ends the run: the parameter and its state are lost. [`Optim`](super::Optim) refuses another number or
    /// length of buffers (`optim.state-mismatch`).
    fn step(
        &mut self,
        update: &Update<'_>,
        p: Buffer,
        grad: Buffer,
        state: Vec<Buffer>,
    ) -> Result<Stepped>;

    /// Returns true if the kernels of the rule bind [`Update::gate`] and write nothing while it is closed, multiply the raw gradient by its factor,
    /// and round what they write to bf16 with [`Update::noise`]. Parameter and state then come as they are stored, bf16 packed, and are changed
    /// where they lie.
    ///
    /// ```
    /// use tabtune::gpu::{Buffer, Noise, Words, run};
    /// use tabtune::optim::{Gate, Layout, Rule, Stepped, Update};
    /// use tabtune::parameters::ParamInfo;
    ///
    /// tabtune::kernel! {
    ///     /// `p ← p − η·g`, f32 or packed bf16, two elements a thread.
    ///     pub PLAIN = "plain_sgd" text (r"
    ///         struct Params { n: u32, rate: f32, @align(16) noise: Noise }
    ///         @group(0) @binding(0) var<storage, read_write> g: array<f32>;
    ///         @group(0) @binding(1) var<storage, read_write> gate: Gate;
    ///         @group(0) @binding(2) var<storage, read_write> p: array<u32>;
    ///         @group(0) @binding(3) var<storage, read_write> params: Params;
    ///
    ///         fn step(i: u32) -> f32 { return select(0.0, params.rate * gate.factor * g[i], i < params.n); }
    ///
    ///         @compute @workgroup_size(256)
    ///         fn main(
    ///             @builtin(workgroup_id) group: vec3<u32>,
    ///             @builtin(num_workgroups) groups: vec3<u32>,
    ///             @builtin(local_invocation_index) lane: u32,
    ///         ) {
    ///             let pair = grid_index(group, groups, lane, 256u);
    ///             let i = 2u * pair;
    ///             if (i >= params.n || gate.closed != 0u) { return; }
    ///             if (params.noise.rounding == ROUND_F32) {
    ///                 p[i] = bitcast<u32>(bitcast<f32>(p[i]) - step(i));
    ///                 if (i + 1u < params.n) { p[i + 1u] = bitcast<u32>(bitcast<f32>(p[i + 1u]) - step(i + 1u)); }
    ///             } else {
    ///                 let halves = noise_words(params.noise, pair).z;
    ///                 let low = bf16_low(p[pair]) - step(i);
    ///                 let high = bf16_high(p[pair]) - step(i + 1u);
    ///                 p[pair] = bf16_pair(low, high, halves, params.noise.rounding);
    ///             }
    ///         }
    ///     ") [256], (g, gate) -> (mut p),
    ///     /// Scalars of a step.
    ///     struct PlainParams {
    ///         /// Elements.
    ///         n: u32,
    ///         /// η.
    ///         rate: f32,
    ///         /// Source of the rounding.
    ///         noise: Noise,
    ///     } varying,
    ///     twin |[g, gate], [p], s| {
    ///         let Some(factor) = Gate::factor(gate) else { return };
    ///         for (i, g) in g.floats().iter().enumerate() {
    ///             s.noise.write(p, i, s.n as usize, |p| p - s.rate * factor * g);
    ///         }
    ///     }
    /// }
    ///
    /// #[derive(Debug)]
    /// struct Plain;
    ///
    /// impl Rule for Plain {
    ///     fn binds_gate(&self) -> bool {
    ///         true
    ///     }
    ///
    ///     fn layout(&self, _: &ParamInfo) -> Layout {
    ///         Layout::default()
    ///     }
    ///
    ///     fn step(&mut self, u: &Update<'_>, p: Buffer, g: Buffer, state: Vec<Buffer>) -> tabtune::Result<Stepped> {
    ///         let params = PlainParams { n: u.n(), rate: u.rate as f32, noise: u.noise };
    ///         let [p] = run(&PLAIN, [g, u.gate.clone()], [p], &params, u.groups(2))?;
    ///         Ok((p, state))
    ///     }
    /// }
    /// ```
    fn binds_gate(&self) -> bool {
        false
    }

    /// Steps `own`, the parameter of this rule, and `others`, whose rules have this rule's type; returns the results in that order. By default
    /// they are stepped one by one; a rule overrides this if it needs fewer launches for several.
    ///
    /// # Errors
    ///
    /// As [`Self::step`].
    #[doc(hidden)]
    fn step_many(
        &mut self,
        own: Member<'_>,
        others: Vec<(&mut dyn Rule, Member<'_>)>,
    ) -> Result<Vec<Stepped>> {
        let mut stepped = vec![own.step(self)?];
        for (rule, other) in others {
            stepped.push(other.step(rule)?);
        }
        Ok(stepped)
    }

    /// Returns true if the rule steps each element by itself, so that it can step some rows of a parameter that lies in parts.
    #[doc(hidden)]
    fn takes_parts(&self) -> bool {
        false
    }

    /// Returns true if the two tensors of the state of `parameter` lie side by side in one buffer, on devices with such buffers: kernels that step
    /// several parameters have few bindings for each.
    #[doc(hidden)]
    fn pairs_state(&self, parameter: &ParamInfo) -> bool {
        let _ = parameter;
        false
    }

    /// The number of bytes on the device that the rule keeps in addition to its state and does not save.
    #[doc(hidden)]
    fn side_bytes(&self, parameter: &ParamInfo) -> u64 {
        let _ = parameter;
        0
    }

    /// The number of bytes on the device that a step of `parameter` takes for its duration, in addition to the gradient.
    #[doc(hidden)]
    fn work_bytes(&self, parameter: &ParamInfo) -> u64 {
        let _ = parameter;
        0
    }

    /// Returns true if each step after the first allocates nothing and launches the same kernels, with other kernel parameters, on the parameter, its
    /// gradient and its state alone. The launches of such steps can be recorded.
    #[doc(hidden)]
    fn repeats(&self) -> bool {
        false
    }

    /// The faults of settings that cannot work at this peak rate. The settings of the crate's own rules are checked as configuration.
    #[doc(hidden)]
    fn faults(&self, rate: f64) -> Vec<Fault> {
        let _ = rate;
        Vec::new()
    }
}

/// A stepped parameter and its new state, in the order of its layout ([example](crate#any-burn-module)).
pub type Stepped = (Buffer, Vec<Buffer>);

/// A parameter in a step of several.
#[derive(Debug)]
pub struct Member<'a> {
    /// The parameters of its step.
    pub update: Update<'a>,
    /// The parameter.
    pub p: Buffer,
    /// Its gradient.
    pub grad: Buffer,
    /// Its state, in the order of the layout.
    pub state: Vec<Buffer>,
}

impl Member<'_> {
    /// Steps this parameter alone.
    ///
    /// # Errors
    ///
    /// As [`Rule::step`].
    pub fn step<R: Rule + ?Sized>(self, rule: &mut R) -> Result<Stepped> {
        rule.step(&self.update, self.p, self.grad, self.state)
    }
}

/// The layout of one parameter's state: name, shape and dtype of each tensor. Dtypes are F32, BF16, I32 and U32, and U8 for bytes, which a kernel
/// sees as words of four.
///
/// ```
/// use burn::tensor::DType;
/// use tabtune::optim::Layout;
///
/// let counts = Layout(vec![("signs", vec![10], DType::U8), ("length", vec![], DType::F32)]);
/// assert_eq!(counts.0[0].1, [10]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layout(pub Vec<(&'static str, Vec<usize>, DType)>);

impl Layout {
    /// Makes a layout with one tensor for each name, of the shape and dtype of the parameter.
    pub fn like(parameter: &ParamInfo, names: &[&'static str]) -> Self {
        Self(
            names
                .iter()
                .map(|&name| (name, parameter.shape.clone(), parameter.dtype))
                .collect(),
        )
    }

    /// Makes the layout of one of the crate's own rules from the table of optimizers. `rank` is that of the projection, if the parameter is
    /// projected.
    pub(super) fn of(kind: &OptimizerKind, parameter: &ParamInfo, rank: Option<usize>) -> Self {
        let shape: Vec<u64> = parameter.shape.iter().map(|&dim| dim as u64).collect();
        let own = kind
            .kept(&shape, rank.map(|rank| rank as u64))
            .filter(|(tensor, _)| tensor.kept != Kept::Elsewhere);
        let tensor = |(tensor, shape): (&KeptTensor, Vec<u64>)| {
            let dtype = if tensor.always_f32 {
                DType::F32
            } else {
                parameter.dtype
            };
            (
                tensor.word.text(),
                shape.into_iter().map(|dim| dim as usize).collect(),
                dtype,
            )
        };
        Self(own.map(tensor).collect())
    }

    /// The number of bytes of all tensors.
    #[doc(hidden)]
    pub fn bytes(&self) -> u64 {
        self.0
            .iter()
            .map(|(_, shape, dtype)| (shape.iter().product::<usize>() * dtype.size()) as u64)
            .sum()
    }

    /// The faults of tensors that cannot be saved under their names, or have another dtype.
    pub(super) fn faults(&self, parameter: &str) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (at, (name, _, dtype)) in self.0.iter().enumerate() {
            let key = format!("{parameter}:{name}");
            if name.is_empty()
                || *name == "step"
                || name.contains(':')
                || self.0[..at].iter().any(|(other, ..)| other == name)
            {
                faults.push(Fault::new(
                    &key,
                    "a name of its own without a colon, other than step",
                    name,
                ));
            }
            if !DTYPES.iter().any(|(own, _)| own == dtype) {
                let rule = format!("dtype {}", DTYPES.map(|(_, word)| word).join(", "));
                faults.push(Fault::new(&key, rule, format!("{dtype:?}")));
            }
        }
        faults
    }
}

/// Recorded randomness for one step.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    pub noise: Option<Buffer>,
    pub projector: Option<Buffer>,
}

#[doc(hidden)]
impl Optim {
    /// Gives the noise with which the next step of `name` rounds, instead of that of Philox: 16 bits in each word, element i of stream s (m, v, p; p
    /// alone where nothing else is rounded) in word s·n + i. For replaying recorded runs.
    pub fn give_noise(&mut self, name: &str, words: Tensor<1>) {
        self.recorded.entry(name.to_string()).or_default().noise = Some(words.into());
    }

    /// Gives the matrix `[dim, rank]`, flat, with which the next step of `name` projects, instead of the seeded one. For replaying recorded runs.
    pub fn give_projector(&mut self, name: &str, matrix: Tensor<1>) {
        self.recorded.entry(name.to_string()).or_default().projector = Some(matrix.into());
    }
}

/// The values on which one step of one parameter depends, in addition to the parameter, its gradient and its state.
#[derive(Debug)]
#[non_exhaustive]
pub struct Update<'a> {
    /// The parameter.
    pub parameter: &'a ParamInfo,
    /// The device of the parameter.
    #[doc(hidden)]
    pub device: &'a Device,
    /// The run's seed.
    pub seed: u64,
    /// t, the number of this step, counted from 1 over the parameter's own steps.
    pub step: u64,
    /// η, the learning rate, with the group's scale.
    pub rate: f64,
    /// The gate, which decides if the step writes and has the factor of its gradient: two words that every kernel which writes the parameter or its
    /// state binds as `Gate` of [`COMMON`](crate::gpu::COMMON), for a rule that [binds it](Rule::binds_gate).
    pub gate: Buffer,
    /// Source of the rounding of the writes, a function of seed, parameter and step, for a rule that [binds the gate](Rule::binds_gate).
    pub noise: Noise,
    /// Noise from a buffer, for [`Rounding::Given`](crate::gpu::noise::Rounding::Given).
    pub(super) given: Buffer,
    /// A projector for this step instead of the rule's own.
    pub(super) projector: Option<Buffer>,
    /// One word, bound in place of a buffer that a kernel does not read.
    pub(super) unread: Buffer,
}

impl Update<'_> {
    /// The number of elements, which fits: that was checked when the optimizer was made.
    pub fn n(&self) -> u32 {
        self.parameter.elements() as u32
    }

    /// Returns 1 − ηλ.
    #[doc(hidden)]
    pub fn decay(&self, weight_decay: f64) -> f32 {
        (1.0 - self.rate * weight_decay) as f32
    }

    /// Returns α = η·√(1 − β2ᵗ)/(1 − β1ᵗ).
    #[doc(hidden)]
    pub fn alpha(&self, beta1: f64, beta2: f64) -> f32 {
        let t = self.step as f64;
        (self.rate * (1.0 - beta2.powf(t)).sqrt() / (1.0 - beta1.powf(t))) as f32
    }

    /// The number of workgroups of 256 threads, for `per_thread` elements per thread.
    pub fn groups(&self, per_thread: u32) -> u32 {
        self.n().div_ceil(per_thread).div_ceil(256)
    }

    /// The state as an array, for a rule whose layout has `N` tensors.
    ///
    /// # Errors
    ///
    /// `optim.state-mismatch` for another number of tensors.
    pub fn state<const N: usize>(&self, state: Vec<Buffer>) -> Result<[Buffer; N]> {
        state
            .try_into()
            .map_err(|state: Vec<Buffer>| another_state(&self.parameter.name, N, state.len()))
    }
}

/// The error of a state with another number of tensors than the rule keeps.
pub(super) fn another_state(parameter: &str, expected: usize, found: usize) -> Error {
    Error::StateMismatch(vec![Fault::new(
        parameter,
        format!("a state of {expected} tensors"),
        found,
    )])
}
