//! AdamW: one dispatch (shaders/README.md, "AdamW"). State: m, v as the parameter.

use burn::tensor::DType;

use super::update::{Update, tensors};
use crate::config::AdamwConfig;
use crate::error::Result;
use crate::kernels::{Buffer, adamw, adamw_bf16, run};

/// The new parameter and state.
pub(super) fn step(rule: &AdamwConfig, u: &Update<'_>, p: Buffer, g: Buffer, state: Vec<Buffer>) -> Result<(Buffer, Vec<Buffer>)> {
    let (w1, w2) = ((1.0 - rule.beta1) as f32, (1.0 - rule.beta2) as f32);
    let (d, alpha, eps) = (u.decay(rule.weight_decay), u.alpha(rule.beta1, rule.beta2), rule.eps as f32);
    let (n, scale) = (u.n(), u.scale);
    let [m, v] = tensors(state);
    let [p, m, v] = if u.info.dtype == DType::BF16 {
        let ([key0, key1], [step_low, step_high]) = (u.key, u.step_words());
        let rounding = u.rounding.word();
        let (first_pair_low, first_pair_high) = (0, 0);
        let params = adamw_bf16::Params {
            n,
            w1,
            w2,
            d,
            alpha,
            eps,
            scale,
            rounding,
            key0,
            key1,
            step_low,
            step_high,
            first_pair_low,
            first_pair_high,
        };
        run(&adamw_bf16::KERNEL, [g, u.noise.clone()], [p, m, v], &params, u.groups(2))?
    } else {
        let params = adamw::Params { n, w1, w2, d, alpha, eps, scale };
        let (kernel, groups) = if n.is_multiple_of(4) { (&adamw::WIDE, u.groups(4)) } else { (&adamw::KERNEL, u.groups(1)) };
        run(kernel, [g], [p, m, v], &params, groups)?
    };
    Ok((p, vec![m, v]))
}
