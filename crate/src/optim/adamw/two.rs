//! AdamW on two tensors in one dispatch, in place: m and v of each are one buffer (`gpu/paired_buffer.rs`), since a kernel has at most eight buffers.
//! Their scalars are listed twice, because parameters are single words: two structs in them would have to start at 16 bytes each (shaders/README.md,
//! law 3), and the declared fields, the recordings and the browser's cases would have to know structs.

use burn::tensor::DType;

use super::{Adamw, kernel};
use crate::bf16::{get, put};
use crate::error::Result;
use crate::gpu::noise::{Noise, Rounding, Writes};
use crate::gpu::paired_buffer::distance;
use crate::gpu::{Buffer, Words, run};
use crate::optim::ParamInfo;
use crate::optim::gate::{factor, open};
use crate::optim::rule::{Member, Stepped, Update};
use crate::optim::state::persistent;
use crate::random::Stream;

crate::kernel! {
    /// Updates `p [n]` and the m and v of two tensors from `g [n]` of each, all f32; m and v lie side by side, and each n is a multiple of 4.
    pub KERNEL = "adamw_two" [256], (g0, g1, gate) -> (mut p0, mut s0, mut p1, mut s1),
    /// Scalars of a step of both tensors, computed in f64 and rounded once.
    struct Params {
        /// Number of elements of the first tensor.
        n: u32,
        /// Index of the vector of four elements at which its v begins.
        second: u32,
        /// 1 − β1.
        w1: f32,
        /// 1 − β2.
        w2: f32,
        /// 1 − ηλ.
        d: f32,
        /// η·√(1 − β2ᵗ)/(1 − β1ᵗ).
        alpha: f32,
        /// ε.
        eps: f32,
        /// Number of elements of the other tensor.
        other_n: u32,
        /// Index of the vector of four elements at which its v begins.
        other_second: u32,
        /// Its 1 − β1.
        other_w1: f32,
        /// Its 1 − β2.
        other_w2: f32,
        /// Its 1 − ηλ.
        other_d: f32,
        /// Its η·√(1 − β2ᵗ)/(1 − β1ᵗ).
        other_alpha: f32,
        /// Its ε.
        other_eps: f32,
    } varying,
    twin twin
}
crate::kernel! {
    /// Updates `p [n]` and the m and v of two tensors, packed bf16, from `g [n]` f32 of each; m and v lie side by side.
    pub PACKED = "adamw_bf16_two" [256], (g0, g1, gate) -> (mut p0, mut s0, mut p1, mut s1),
    /// Scalars of a step of both tensors, and the source of the rounding of their writes.
    struct PackedParams {
        /// Number of elements of the first tensor.
        n: u32,
        /// Index of the word at which its v begins.
        second: u32,
        /// 1 − β1.
        w1: f32,
        /// 1 − β2.
        w2: f32,
        /// 1 − ηλ.
        d: f32,
        /// η·√(1 − β2ᵗ)/(1 − β1ᵗ).
        alpha: f32,
        /// ε.
        eps: f32,
        /// Philox key of the tensor, low word.
        key_low: u32,
        /// Philox key of the tensor, high word.
        key_high: u32,
        /// Its step, low word.
        step_low: u32,
        /// Its step, high word.
        step_high: u32,
        /// Rounding of its writes.
        rounding: u32,
        /// Number of elements of the other tensor.
        other_n: u32,
        /// Index of the word at which its v begins.
        other_second: u32,
        /// Its 1 − β1.
        other_w1: f32,
        /// Its 1 − β2.
        other_w2: f32,
        /// Its 1 − ηλ.
        other_d: f32,
        /// Its η·√(1 − β2ᵗ)/(1 − β1ᵗ).
        other_alpha: f32,
        /// Its ε.
        other_eps: f32,
        /// Its Philox key, low word.
        other_key_low: u32,
        /// Its Philox key, high word.
        other_key_high: u32,
        /// Its step, low word.
        other_step_low: u32,
        /// Its step, high word.
        other_step_high: u32,
        /// Rounding of its writes.
        other_rounding: u32,
    } varying,
    twin packed_twin
}

/// One of two tensors for a twin: number of elements, word at which v begins, scalars.
type Part = (usize, usize, kernel::Params);

fn parts(s: &Params) -> [Part; 2] {
    let rule = |n, w1, w2, d, alpha, eps| kernel::Params {
        n,
        w1,
        w2,
        d,
        alpha,
        eps,
    };
    [
        (
            s.n as usize,
            4 * s.second as usize,
            rule(s.n, s.w1, s.w2, s.d, s.alpha, s.eps),
        ),
        (
            s.other_n as usize,
            4 * s.other_second as usize,
            rule(
                s.other_n,
                s.other_w1,
                s.other_w2,
                s.other_d,
                s.other_alpha,
                s.other_eps,
            ),
        ),
    ]
}

fn twin([g0, g1, gate]: [&[u32]; 3], [p0, s0, p1, s1]: [&mut [u32]; 4], s: &Params) {
    if !open(gate) {
        return;
    }
    for ((n, second, rule), (g, p, moments)) in
        parts(s).into_iter().zip([(g0, p0, s0), (g1, p1, s1)])
    {
        let (p, moments) = (p.floats_mut(), moments.floats_mut());
        for i in 0..n {
            (p[i], moments[i], moments[second + i]) = kernel::element(
                &rule,
                factor(gate),
                [p[i], g.floats()[i], moments[i], moments[second + i]],
            );
        }
    }
}

fn packed_twin([g0, g1, gate]: [&[u32]; 3], [p0, s0, p1, s1]: [&mut [u32]; 4], s: &PackedParams) {
    if !open(gate) {
        return;
    }
    let rule = |n, w1, w2, d, alpha, eps| kernel::Params {
        n,
        w1,
        w2,
        d,
        alpha,
        eps,
    };
    let noise = |key, [low, high]: [u32; 2], rounding| Noise {
        key,
        step: u64::from(low) | u64::from(high) << 32,
        rounding: Rounding::from_word(rounding),
    };
    let first = (rule(s.n, s.w1, s.w2, s.d, s.alpha, s.eps), s.second);
    let other = (
        rule(
            s.other_n,
            s.other_w1,
            s.other_w2,
            s.other_d,
            s.other_alpha,
            s.other_eps,
        ),
        s.other_second,
    );
    let noises = [
        noise(
            [s.key_low, s.key_high],
            [s.step_low, s.step_high],
            s.rounding,
        ),
        noise(
            [s.other_key_low, s.other_key_high],
            [s.other_step_low, s.other_step_high],
            s.other_rounding,
        ),
    ];
    let buffers = [(g0, p0, s0), (g1, p1, s1)];
    for (((rule, second), noise), (g, p, moments)) in
        [first, other].into_iter().zip(noises).zip(buffers)
    {
        let (n, writes) = (rule.n as usize, Writes::new(noise));
        let (m, v) = moments.split_at_mut(second as usize);
        for i in 0..n {
            let (x, m1, v1) = kernel::element(
                &rule,
                factor(gate),
                [get(p, i), g.floats()[i], get(m, i), get(v, i)],
            );
            let words = writes.words(i);
            put(m, i, n, writes.round(m1, words, Stream::M, i, None));
            put(v, i, n, writes.round(v1, words, Stream::V, i, None));
            put(p, i, n, writes.round(x, words, Stream::P, i, None));
        }
    }
}

/// Returns true if m and v of a parameter can lie side by side on a GPU.
pub fn fits(parameter: &ParamInfo) -> bool {
    parameter.dtype == DType::BF16 || parameter.elements().is_multiple_of(4)
}

/// A parameter in a step of two: its rule, its step, itself, its gradient, and its m and v side by side.
struct Half<'a, 'u> {
    rule: &'a mut Adamw,
    update: Update<'u>,
    p: Buffer,
    g: Buffer,
    moments: Buffer,
}

/// Buffers of a few words that are bound in place of a second tensor where there is none.
pub(super) type Spare = [Buffer; 3];

/// Steps parameters: those of one dtype whose m and v lie side by side two at a time, each of the others alone.
pub(super) fn step_all(members: Vec<(&mut Adamw, Member<'_>)>) -> Result<Vec<Stepped>> {
    let mut stepped: Vec<Option<Stepped>> = members.iter().map(|_| None).collect();
    let mut waiting = [None, None];
    for (at, (rule, member)) in members.into_iter().enumerate() {
        let moments = match member.state.as_slice() {
            [m, v] if member.update.noise.rounding != Rounding::Given => Buffer::whole(m, v),
            _ => None,
        };
        let Some(moments) = moments else {
            stepped[at] = Some(member.step(rule)?);
            continue;
        };
        let Member {
            update,
            p,
            grad,
            state,
        } = member;
        // Once these handles are dropped, the moments are uniquely owned and changed in place.
        drop(state);
        let place = &mut waiting[usize::from(update.parameter.dtype == DType::BF16)];
        let this = (
            at,
            Half {
                rule,
                update,
                p,
                g: grad,
                moments,
            },
        );
        match place.take() {
            Some(first) => step(first, Some(this), &mut stepped)?,
            None => *place = Some(this),
        }
    }
    for alone in waiting.into_iter().flatten() {
        step(alone, None, &mut stepped)?;
    }
    Ok(stepped
        .into_iter()
        .map(|each| each.expect("each was stepped"))
        .collect())
}

/// Launches a step of one or two parameters of one dtype, each with its place among the `stepped`.
fn step(
    (at, first): (usize, Half<'_, '_>),
    other: Option<(usize, Half<'_, '_>)>,
    stepped: &mut [Option<Stepped>],
) -> Result<()> {
    let of = |half: &Half<'_, '_>| {
        let (n, dtype) = (half.update.n(), half.update.parameter.dtype);
        (
            half.rule.params(&half.update),
            distance(n as usize, dtype) as u32,
            half.update.noise,
        )
    };
    let a = of(&first);
    let nothing = (kernel::Params { n: 0, ..a.0 }, 0, a.2);
    let b = other.as_ref().map_or(nothing, |(_, half)| of(half));
    let Half {
        rule,
        update,
        p,
        g,
        moments,
    } = first;
    let ([g1, p1, s1], other) = match other {
        Some((at, half)) => ([half.g, half.p, half.moments], Some((at, half.update))),
        None => {
            let spare = match rule.spare.take() {
                Some(spare) => spare,
                None => persistent(update.device, || {
                    Ok([(); 3].map(|()| g.empty_like([4], DType::F32)))
                })?,
            };
            (spare, None)
        }
    };
    let packed = update.parameter.dtype == DType::BF16;
    let (read, written) = ([g, g1.clone(), update.gate.clone()], [p, moments, p1, s1]);
    let threads = |n: u32| if packed { n.div_ceil(2) } else { n / 4 };
    let groups = (threads(a.0.n) + threads(b.0.n)).div_ceil(256);
    let [p0, s0, p1, s1] = if packed {
        run(&PACKED, read, written, &packed_params(a, b), groups)?
    } else {
        run(&KERNEL, read, written, &params(a, b), groups)?
    };
    let halves = |moments: Buffer, update: &Update<'_>| {
        moments
            .halves(update.parameter.elements(), update.parameter.dtype)
            .into()
    };
    stepped[at] = Some((p0, halves(s0, &update)));
    match other {
        Some((at, update)) => stepped[at] = Some((p1, halves(s1, &update))),
        None => rule.spare = Some([g1, p1, s1]),
    }
    Ok(())
}

/// The scalars of a tensor, the distance from its m to its v in words, and its noise.
type Scalars = (kernel::Params, u32, Noise);

fn params((a, second, _): Scalars, (b, other_second, _): Scalars) -> Params {
    Params {
        n: a.n,
        second: second / 4,
        w1: a.w1,
        w2: a.w2,
        d: a.d,
        alpha: a.alpha,
        eps: a.eps,
        other_n: b.n,
        other_second: other_second / 4,
        other_w1: b.w1,
        other_w2: b.w2,
        other_d: b.d,
        other_alpha: b.alpha,
        other_eps: b.eps,
    }
}

fn packed_params((a, second, noise): Scalars, (b, other_second, other): Scalars) -> PackedParams {
    let [[step_low, step_high], [other_step_low, other_step_high]] =
        [noise, other].map(|noise| [noise.step as u32, (noise.step >> 32) as u32]);
    PackedParams {
        n: a.n,
        second,
        w1: a.w1,
        w2: a.w2,
        d: a.d,
        alpha: a.alpha,
        eps: a.eps,
        key_low: noise.key[0],
        key_high: noise.key[1],
        step_low,
        step_high,
        rounding: noise.rounding.word(),
        other_n: b.n,
        other_second,
        other_w1: b.w1,
        other_w2: b.w2,
        other_d: b.d,
        other_alpha: b.alpha,
        other_eps: b.eps,
        other_key_low: other.key[0],
        other_key_high: other.key[1],
        other_step_low,
        other_step_high,
        other_rounding: other.rounding.word(),
    }
}
