//! AdamW on two tensors in one dispatch, in place: m and v of each are one buffer (`gpu/paired_buffer.rs`), since a kernel has at most eight buffers.
//! Their scalars are listed twice, because parameters are single words: two structs in them would have to start at 16 bytes each (shaders/README.md,
//! law 3), and the declared fields, the recordings and the browser's cases would have to know structs.

use burn::tensor::DType;

use super::{Adamw, kernel};
use crate::bf16::{get, put};
use crate::error::Result;
use crate::gpu::noise::{Noise, Rounding, Writes, long};
use crate::gpu::paired_buffer::distance;
use crate::gpu::{Buffer, KernelParams, Words, run};
use crate::optim::ParamInfo;
use crate::optim::gate::{factor, open};
use crate::optim::rule::{Member, Stepped, Update};
use crate::optim::state::persistent;
use crate::parameters::part_of;
use crate::random::Stream;

crate::kernel! {
    /// Updates `p [n]` and the m and v of two tensors from `g [n]` of each, all f32; m and v lie side by side, and each n is a multiple of 4.
    pub KERNEL = "adamw_two" [256], (g0, g1, gate) -> (mut p0, mut s0, mut p1, mut s1),
    /// Scalars of a step of both tensors, computed in f64 and rounded once.
    struct Params {
        /// Number of elements of the first tensor.
        n: usize,
        /// Index of the vector of four elements at which its v begins.
        second: usize,
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
        other_n: usize,
        /// Index of the vector of four elements at which its v begins.
        other_second: usize,
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
        n: usize,
        /// Index of the word at which its v begins.
        second: usize,
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
        other_n: usize,
        /// Index of the word at which its v begins.
        other_second: usize,
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

crate::kernel! {
    /// The scalars of one of two tensors.
    struct TensorScalars {
        /// Number of elements.
        n: usize,
        /// Place at which its v begins.
        second: usize,
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
    } varying
}

crate::kernel! {
    /// The source of the rounding of a tensor's writes, which follows its [`TensorScalars`] if it is packed.
    struct NoiseWords {
        /// Philox key, low word.
        key_low: u32,
        /// Philox key, high word.
        key_high: u32,
        /// Step, low word.
        step_low: u32,
        /// Step, high word.
        step_high: u32,
        /// Rounding of the writes.
        rounding: u32,
    } varying
}

impl TensorScalars {
    fn new(rule: kernel::Params, second: usize) -> Self {
        let kernel::Params {
            n,
            w1,
            w2,
            d,
            alpha,
            eps,
        } = rule;
        Self {
            n,
            second,
            w1,
            w2,
            d,
            alpha,
            eps,
        }
    }

    fn rule(self) -> kernel::Params {
        let Self {
            n,
            w1,
            w2,
            d,
            alpha,
            eps,
            ..
        } = self;
        kernel::Params {
            n,
            w1,
            w2,
            d,
            alpha,
            eps,
        }
    }
}

impl NoiseWords {
    fn new(noise: Noise) -> Self {
        Self {
            key_low: noise.key[0],
            key_high: noise.key[1],
            step_low: noise.step as u32,
            step_high: (noise.step >> 32) as u32,
            rounding: noise.rounding.word(),
        }
    }

    fn noise(self) -> Noise {
        Noise {
            key: [self.key_low, self.key_high],
            step: long([self.step_low, self.step_high]),
            rounding: Rounding::from_word(self.rounding),
            first_pair: 0,
        }
    }
}

/// The parameters of the first tensor and of the other one, as words.
fn halves(params: &impl KernelParams) -> [Vec<u32>; 2] {
    let mut first = params.words();
    let other = first.split_off(first.len() / 2);
    [first, other]
}

fn twin([g0, g1, gate]: [&[u32]; 3], [p0, s0, p1, s1]: [&mut [u32]; 4], s: &Params) {
    if !open(gate) {
        return;
    }
    for (words, (g, p, moments)) in halves(s).into_iter().zip([(g0, p0, s0), (g1, p1, s1)]) {
        let own = TensorScalars::from_words(&words);
        let (p, moments, rule) = (p.floats_mut(), moments.floats_mut(), own.rule());
        for i in 0..own.n {
            let v = 4 * own.second + i;
            (p[i], moments[i], moments[v]) = kernel::element(
                &rule,
                factor(gate),
                [p[i], g.floats()[i], moments[i], moments[v]],
            );
        }
    }
}

fn packed_twin([g0, g1, gate]: [&[u32]; 3], [p0, s0, p1, s1]: [&mut [u32]; 4], s: &PackedParams) {
    if !open(gate) {
        return;
    }
    for (words, (g, p, moments)) in halves(s).into_iter().zip([(g0, p0, s0), (g1, p1, s1)]) {
        let own = TensorScalars::from_words(&words);
        let noise = NoiseWords::from_words(&words[TensorScalars::FIELDS.len()..]).noise();
        let (n, rule, writes) = (own.n, own.rule(), Writes::new(noise));
        let (m, v) = moments.split_at_mut(own.second);
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

/// Returns true if m and v of a parameter can lie side by side on a GPU. Those of some rows of a parameter do not: their noise begins elsewhere.
pub fn fits(parameter: &ParamInfo) -> bool {
    let whole = part_of(&parameter.name).is_none();
    whole && (parameter.dtype == DType::BF16 || parameter.elements().is_multiple_of(4))
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
        let parameter = half.update.parameter;
        (
            half.rule.params(&half.update),
            distance(parameter.elements(), parameter.dtype),
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
                None => persistent(update.device, || Ok([(); 3].map(|()| g.floats_like([4]))))?,
            };
            (spare, None)
        }
    };
    let packed = update.parameter.dtype == DType::BF16;
    let (read, written) = ([g, g1.clone(), update.gate.clone()], [p, moments, p1, s1]);
    let threads = |n: usize| if packed { n.div_ceil(2) } else { n / 4 };
    let groups = KERNEL.groups(threads(a.0.n) + threads(b.0.n));
    let [p0, s0, p1, s1] = if packed {
        run(&PACKED, read, written, &packed_params([a, b]), groups)?
    } else {
        run(&KERNEL, read, written, &params([a, b]), groups)?
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
/// The scalars of one tensor: those of its rule, the word at which its v begins, and its noise.
type Scalars = (kernel::Params, usize, Noise);

fn params(both: [Scalars; 2]) -> Params {
    let words = both.map(|(rule, second, _)| TensorScalars::new(rule, second / 4).words());
    Params::from_words(&words.concat())
}

fn packed_params(both: [Scalars; 2]) -> PackedParams {
    let words = |(rule, second, noise)| {
        [
            TensorScalars::new(rule, second).words(),
            NoiseWords::new(noise).words(),
        ]
        .concat()
    };
    PackedParams::from_words(&both.map(words).concat())
}
