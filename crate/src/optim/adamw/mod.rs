//! AdamW (shaders/README.md, "AdamW"): on a GPU one dispatch for two parameters, whose m and v lie side by side, elsewhere one for each. Its state
//! is m and v, with the shape and dtype of the parameter.

pub mod kernel;
pub mod packed;
pub mod two;

use std::any::Any;

use burn::tensor::DType;

use crate::config::{ADAMW, AdamwConfig};
use crate::error::Result;
use crate::gpu::{Buffer, Kernels, run};
use crate::optim::ParamInfo;
use crate::optim::rule::{Layout, Member, Rule, Stepped, Update};

/// The kernels of this folder.
pub(crate) static KERNELS: Kernels = &[
    &kernel::KERNEL.all(),
    &kernel::WIDE.all(),
    &packed::KERNEL.all(),
    &two::KERNEL.all(),
    &two::PACKED.all(),
];

/// AdamW (arXiv:1711.05101).
#[derive(Debug)]
pub struct Adamw {
    config: AdamwConfig,
    /// The buffers that a launch for two parameters binds for the second one, where this parameter is stepped without another.
    spare: Option<two::Spare>,
}

impl Adamw {
    /// Makes the rule with these settings.
    pub fn new(config: AdamwConfig) -> Self {
        Self {
            config,
            spare: None,
        }
    }

    /// The scalars of a step.
    fn params(&self, u: &Update<'_>) -> kernel::Params {
        let AdamwConfig {
            beta1,
            beta2,
            eps,
            weight_decay,
            ..
        } = self.config;
        let (w1, w2) = ((1.0 - beta1) as f32, (1.0 - beta2) as f32);
        kernel::Params {
            n: u.parameter.elements(),
            w1,
            w2,
            d: u.decay(weight_decay),
            alpha: u.alpha(beta1, beta2),
            eps: eps as f32,
        }
    }
}

impl Rule for Adamw {
    fn binds_gate(&self) -> bool {
        true
    }

    fn layout(&self, parameter: &ParamInfo) -> Layout {
        Layout::of(&ADAMW, parameter, None)
    }

    fn repeats(&self) -> bool {
        true
    }

    fn takes_parts(&self) -> bool {
        true
    }

    fn pairs_state(&self, parameter: &ParamInfo) -> bool {
        two::fits(parameter)
    }

    fn step_many(
        &mut self,
        own: Member<'_>,
        others: Vec<(&mut dyn Rule, Member<'_>)>,
    ) -> Result<Vec<Stepped>> {
        let others = others.into_iter().map(|(rule, member)| {
            let rule: &mut dyn Any = rule;
            (
                rule.downcast_mut()
                    .expect("rules of one type are stepped together"),
                member,
            )
        });
        two::step_all(std::iter::once((self, own)).chain(others).collect())
    }

    fn step(
        &mut self,
        u: &Update<'_>,
        p: Buffer,
        g: Buffer,
        state: Vec<Buffer>,
    ) -> Result<Stepped> {
        let params = self.params(u);
        let kernel::Params {
            n,
            w1,
            w2,
            d,
            alpha,
            eps,
        } = params;
        let [m, v] = u.state(state)?;
        let [p, m, v] = if u.parameter.dtype == DType::BF16 {
            let params = packed::Params {
                n,
                w1,
                w2,
                d,
                alpha,
                eps,
                noise: u.noise,
            };
            run(
                &packed::KERNEL,
                [g, u.given.clone(), u.gate.clone()],
                [p, m, v],
                &params,
                u.groups(2),
            )?
        } else {
            let (kernel, groups) = if n.is_multiple_of(4) {
                (&kernel::WIDE, u.groups(4))
            } else {
                (&kernel::KERNEL, u.groups(1))
            };
            run(kernel, [g, u.gate.clone()], [p, m, v], &params, groups)?
        };
        Ok((p, vec![m, v]))
    }
}
