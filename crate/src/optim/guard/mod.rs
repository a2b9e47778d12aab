//! The step of a rule that binds no gate (shaders/README.md, "A rule of another crate"): it sees f32 values and a clipped gradient, and what it
//! computes is written only while the gate is open, rounded as the crate's own rules round.

pub mod read;
pub mod write;

use burn::tensor::DType;

use super::rule::{Layout, Rule, Stepped, Update, another_state};
use crate::error::{Error, Fault, Result};
use crate::gpu::noise::{Noise, Rounding};
use crate::gpu::{Buffer, Kernels, run};
use crate::random;

/// The kernels of this folder.
pub(crate) static KERNELS: Kernels = &[&read::KERNEL.all(), &write::KERNEL.all()];

/// The bytes that a guarded step of a parameter takes for its duration: its clipped gradient, and copies of parameter and state.
pub(super) fn work_bytes(elements: usize, layout: &Layout) -> u64 {
    let state = layout.0.iter().map(|(_, shape, dtype)| {
        let elements: usize = shape.iter().product();
        let size = if *dtype == DType::BF16 {
            4
        } else {
            dtype.size()
        };
        (elements * size) as u64
    });
    8 * elements as u64 + state.sum::<u64>()
}

/// Steps a parameter by a rule that binds no gate.
pub(super) fn step(
    rule: &mut dyn Rule,
    layout: &Layout,
    u: &Update<'_>,
    [p, grad]: [Buffer; 2],
    state: Vec<Buffer>,
) -> Result<Stepped> {
    let parameter = u.parameter;
    let read = |x: Buffer, n: usize, packed: bool| {
        let y = x.floats_like([n]);
        let params = read::Params { n, packed };
        let groups = read::KERNEL.groups(n);
        run(&read::KERNEL, [x, u.gate.clone()], [y], &params, groups).map(|[y]| y)
    };
    // A shared buffer is copied before a kernel of the rule writes it.
    let seen = |x: &Buffer, n: usize, dtype: DType| match dtype {
        DType::BF16 => read(x.clone(), n, true),
        _ => Ok(x.clone()),
    };
    let n = parameter.elements();
    let shaped = |x: Buffer| x.reshaped(parameter.shape.clone());
    let (own, grad) = (seen(&p, n, parameter.dtype)?, read(grad, n, false)?);
    let kept = state.iter().zip(&layout.0);
    let kept = kept.map(|(x, (_, shape, dtype))| seen(x, shape.iter().product(), *dtype));
    let kept = kept.collect::<Result<_>>()?;
    let (new, found) = rule.step(u, shaped(own), shaped(grad), kept)?;
    if found.len() != layout.0.len() {
        let (expected, found) = (layout.0.len(), found.len());
        return Err(another_state(&parameter.name, expected, found));
    }

    let write = |name: &str, x: Buffer, p: Buffer, n: usize, noise: Noise| {
        if x.words() != n {
            let rule = format!("a buffer of {n} words");
            let fault = Fault::new(name, rule, x.words());
            return Err(Error::StateMismatch(vec![fault]));
        }
        let params = write::Params { n, noise };
        let groups = n.div_ceil(512) as u32;
        run(&write::KERNEL, [x, u.gate.clone()], [p], &params, groups).map(|[p]| p)
    };
    let p = write(&parameter.name, new, p, n, u.noise)?;
    let written = found.into_iter().zip(state).zip(&layout.0);
    let written = written.map(|((x, old), (key, shape, dtype))| {
        let name = format!("{}:{key}", parameter.name);
        let (n, rounding) = match (dtype, u.noise.rounding) {
            (DType::BF16, Rounding::Nearest) => (shape.iter().product(), Rounding::Nearest),
            (DType::BF16, _) => (shape.iter().product(), Rounding::Stochastic),
            _ => (old.words(), Rounding::None),
        };
        let key = random::key(random::STOCHASTIC_ROUNDING, u.seed, &name);
        let noise = Noise {
            key,
            rounding,
            ..u.noise
        };
        write(&name, x, old, n, noise)
    });
    Ok((p, written.collect::<Result<_>>()?))
}
