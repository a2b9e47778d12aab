//! SGD: one dispatch per parameter (shaders/README.md, "SGD"). Its state is the momentum, with the shape and dtype of the parameter, if μ > 0.

pub mod kernel;
pub mod momentum;

use crate::config::{SGD, SgdConfig};
use crate::error::Result;
use crate::gpu::{Buffer, Kernels, run};
use crate::optim::ParamInfo;
use crate::optim::rule::{Layout, Rule, Stepped, Update};

/// The kernels of this folder.
pub(crate) static KERNELS: Kernels = &[&kernel::KERNEL.all(), &momentum::KERNEL.all()];

/// SGD, with momentum if μ > 0.
#[derive(Debug)]
pub struct Sgd(SgdConfig);

impl Sgd {
    /// Makes the rule with these settings.
    pub fn new(config: SgdConfig) -> Self {
        Self(config)
    }
}

impl Rule for Sgd {
    fn binds_gate(&self) -> bool {
        true
    }

    fn layout(&self, parameter: &ParamInfo) -> Layout {
        if self.0.momentum > 0.0 {
            Layout::of(&SGD, parameter, None)
        } else {
            Layout::default()
        }
    }

    fn repeats(&self) -> bool {
        true
    }

    fn takes_parts(&self) -> bool {
        true
    }

    fn step(
        &mut self,
        u: &Update<'_>,
        p: Buffer,
        g: Buffer,
        state: Vec<Buffer>,
    ) -> Result<Stepped> {
        let n = u.parameter.elements();
        let (rate, d, noise) = (u.rate as f32, u.decay(self.0.weight_decay), u.noise);
        if self.0.momentum == 0.0 {
            let [] = u.state(state)?;
            let [p] = run(
                &kernel::KERNEL,
                [g, u.gate.clone()],
                [p],
                &kernel::Params { n, rate, d, noise },
                u.groups(2),
            )?;
            return Ok((p, Vec::new()));
        }
        let (momentum, nesterov) = (self.0.momentum as f32, self.0.nesterov);
        let params = momentum::Params {
            n,
            rate,
            d,
            momentum,
            nesterov,
            noise,
        };
        let [buf] = u.state(state)?;
        let [p, momentum] = run(
            &momentum::KERNEL,
            [g, u.gate.clone()],
            [p, buf],
            &params,
            u.groups(2),
        )?;
        Ok((p, vec![momentum]))
    }
}
