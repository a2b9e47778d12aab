//! SGD: one dispatch (shaders/README.md, "SGD"). State: momentum as the parameter, if μ > 0.

use super::update::{Update, tensors};
use crate::config::SgdConfig;
use crate::error::Result;
use crate::kernels::{Buffer, run, sgd, sgd_momentum};

/// The new parameter and state.
pub(super) fn step(rule: &SgdConfig, u: &Update<'_>, p: Buffer, g: Buffer, state: Vec<Buffer>) -> Result<(Buffer, Vec<Buffer>)> {
    let (n, rate, d, scale) = (u.n(), u.rate as f32, u.decay(rule.weight_decay), u.scale);
    let ([key0, key1], [step_low, step_high]) = (u.key, u.step_words());
    let rounding = u.rounding.word();
    let (first_pair_low, first_pair_high) = (0, 0);
    if rule.momentum == 0.0 {
        let params = sgd::Params { n, rate, d, scale, rounding, key0, key1, step_low, step_high, first_pair_low, first_pair_high };
        let [p] = run(&sgd::KERNEL, [g], [p], &params, u.groups(2))?;
        return Ok((p, Vec::new()));
    }
    let (momentum, nesterov) = (rule.momentum as f32, u32::from(rule.nesterov));
    let params = sgd_momentum::Params {
        n,
        rate,
        d,
        scale,
        momentum,
        nesterov,
        rounding,
        key0,
        key1,
        step_low,
        step_high,
        first_pair_low,
        first_pair_high,
    };
    let [buf] = tensors(state);
    let [p, momentum] = run(&sgd_momentum::KERNEL, [g], [p, buf], &params, u.groups(2))?;
    Ok((p, vec![momentum]))
}
