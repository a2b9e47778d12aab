use super::gate::open;
use burn::tensor::DType;
use tabtune::gpu::noise::Noise;
use tabtune::gpu::paired_buffer::distance;
use tabtune::optim::adamw::{kernel as adamw, packed as adamw_bf16, two};
use tabtune_tests::in_full;
use tabtune_tests::kernels::{Case, check, noise, packed, place, words};

/// Sums of two products in f32: a driver may contract or divide within 2.5 ulp.
const BOUND: f64 = 1e-6;

pub(super) fn case(n: usize) -> Case {
    let params = adamw::Params {
        n,
        w1: 0.1,
        w2: 1e-3,
        d: 0.999,
        alpha: 1e-2,
        eps: 1e-6,
    };
    let v = noise(n, 4).into_iter().map(f32::abs).collect::<Vec<f32>>();
    let mut g = noise(n, 2);
    // Beyond the bound, and so small that g² vanishes.
    g[0] = 1e30;
    g[n / 2] = -1e-30;
    let written = [words(&noise(n, 1)), words(&noise(n, 3)), words(&v)];
    Case::new(
        &adamw::KERNEL,
        [words(&g), open(0.75)],
        written,
        &params,
        (n as u32).div_ceil(256),
    )
}

pub(super) fn wide_case(n: usize) -> Case {
    Case {
        kernel: adamw::WIDE.any(),
        groups: (n as u32 / 4).div_ceil(256),
        ..case(n)
    }
}

pub(super) fn packed_case(n: usize, rounding: u32) -> Case {
    let params = adamw_bf16::Params {
        n,
        w1: 0.1,
        w2: 1e-3,
        d: 0.999,
        alpha: 1e-2,
        eps: 1e-6,
        noise: place(rounding),
    };
    let v = noise(n, 4).into_iter().map(f32::abs).collect::<Vec<f32>>();
    let given = (0..3 * n as u32)
        .map(|i| i.wrapping_mul(40_503) & 0xFFFF)
        .collect();
    let written = [packed(&noise(n, 1)).0, packed(&noise(n, 3)).0, packed(&v).0];
    Case::new(
        &adamw_bf16::KERNEL,
        [words(&noise(n, 2)), given, open(0.75)],
        written,
        &params,
        (n as u32).div_ceil(512),
    )
}

/// Makes the buffers of a tensor of this many elements: its gradient; the tensor; m and v next to each other, with noise between them.
fn half(
    n: usize,
    seed: u32,
    pack: impl Fn(&[f32]) -> Vec<u32>,
    dtype: DType,
) -> (Vec<u32>, [Vec<u32>; 2]) {
    let v = noise(n, seed + 4)
        .into_iter()
        .map(f32::abs)
        .collect::<Vec<f32>>();
    let mut g = noise(n, seed + 2);
    if dtype == DType::F32 && n > 0 {
        (g[0], g[n / 2]) = (1e30, -1e-30);
    }
    let mut moments = pack(&noise(n, seed + 3));
    let second = distance(n, dtype).max(1);
    moments.extend(words(&noise(second - moments.len(), seed + 6)));
    moments.extend(pack(&v));
    moments.resize(2 * second, 0x1234_5678);
    // A buffer that is bound in place of a second tensor must have some words too.
    let filled = |mut words: Vec<u32>| {
        words.resize(words.len().max(4), 7);
        words
    };
    (
        filled(words(&g)),
        [filled(pack(&noise(n, seed + 1))), filled(moments)],
    )
}

pub(super) fn two_case(n: usize, other: usize) -> Case {
    let params = two::Params {
        n,
        second: distance(n, DType::F32) / 4,
        w1: 0.1,
        w2: 1e-3,
        d: 0.999,
        alpha: 1e-2,
        eps: 1e-6,
        other_n: other,
        other_second: distance(other, DType::F32) / 4,
        other_w1: 0.2,
        other_w2: 2e-3,
        other_d: 0.998,
        other_alpha: 2e-2,
        other_eps: 1e-5,
    };
    let ((g0, [p0, s0]), (g1, [p1, s1])) = (
        half(n, 0, words, DType::F32),
        half(other, 10, words, DType::F32),
    );
    Case::new(
        &two::KERNEL,
        [g0, g1, open(0.75)],
        [p0, s0, p1, s1],
        &params,
        ((n + other) as u32 / 4).div_ceil(256),
    )
}

pub(super) fn packed_two_case(
    [n, other]: [usize; 2],
    [rounding, other_rounding]: [u32; 2],
) -> Case {
    let Noise { key, step, .. } = place(rounding);
    let params = two::PackedParams {
        n,
        second: distance(n, DType::BF16),
        w1: 0.1,
        w2: 1e-3,
        d: 0.999,
        alpha: 1e-2,
        eps: 1e-6,
        key_low: key[0],
        key_high: key[1],
        step_low: step as u32,
        step_high: (step >> 32) as u32,
        rounding,
        other_n: other,
        other_second: distance(other, DType::BF16),
        other_w1: 0.2,
        other_w2: 2e-3,
        other_d: 0.998,
        other_alpha: 2e-2,
        other_eps: 1e-5,
        other_key_low: 13,
        other_key_high: 17,
        other_step_low: 5,
        other_step_high: 2,
        other_rounding,
    };
    let pack = |values: &[f32]| packed(values).0;
    let ((g0, [p0, s0]), (g1, [p1, s1])) = (
        half(n, 0, pack, DType::BF16),
        half(other, 10, pack, DType::BF16),
    );
    let threads = (n.div_ceil(2) + other.div_ceil(2)) as u32;
    Case::new(
        &two::PACKED,
        [g0, g1, open(0.75)],
        [p0, s0, p1, s1],
        &params,
        threads.div_ceil(256),
    )
}

#[test]
fn adamw_of_two_equals_its_twin() {
    let sizes = [(4, 4), (256, 1020), (1028, 64), (4100, 4096), (260, 0)];
    let cases = sizes.map(|(n, other)| two_case(n, other));
    check(
        &cases,
        BOUND,
        (
            "params.other_second + i] = v",
            "params.other_second + i] = m",
        ),
    );
    check(&cases, BOUND, ("bounded(g.z)", "bounded(g.y)"));
    check(
        &cases,
        BOUND,
        (
            "params.second + i], g * g, params.w2",
            "i], g * g, params.w2",
        ),
    );
    let sizes = [[1, 1], [255, 512], [257, 255], [4099, 4098], [130, 0]];
    let cases = sizes
        .map(|sizes| [[1, 2], [2, 2], [2, 1]].map(|roundings| packed_two_case(sizes, roundings)))
        .into_iter()
        .flatten();
    let cases: Vec<Case> = cases.collect();
    check(&cases, 0.0, ("params.other_key_high", "params.key_high"));
    check(&cases, 0.0, ("params.other_step_low", "params.step_low"));
    check(&cases, 0.0, ("g.y = g1[2u * i + 1u]", "g.y = g1[2u * i]"));
    check(
        &cases,
        0.0,
        ("x.y, bits.z, rounding", "x.y, bits.y, rounding"),
    );
}

/// A step of two tensors together gives each the bits of a step alone.
#[test]
fn adamw_of_two_has_the_bits_of_each_alone() {
    let Some(device) = tabtune_tests::gpu() else {
        return;
    };
    let run = |case: &Case| case.device(case.kernel, &device.inner());
    let written = |case: &Case| case.buffers[3..].to_vec();
    let (n, other) = (1028, 260);
    let two = two_case(n, other);
    let found = run(&two);
    let second = distance(n, DType::F32);
    let start = written(&two);
    let alone = Case {
        buffers: [
            &two.buffers[..1],
            &two.buffers[2..3],
            &[
                start[0].clone(),
                start[1][..n].to_vec(),
                start[1][second..][..n].to_vec(),
            ],
        ]
        .concat(),
        ..wide_case(n)
    };
    let [p, m, v] = run(&alone).try_into().unwrap();
    assert!(found[0] == p && found[1][..n] == m[..] && found[1][second..][..n] == v[..]);
    let two = packed_two_case([n, other], [2, 2]);
    let (found, start) = (run(&two), written(&two));
    let (second, words) = (distance(n, DType::BF16), n / 2);
    let mut alone = packed_case(n, 2);
    alone.buffers[0] = two.buffers[0].clone();
    (alone.buffers[3], alone.buffers[4], alone.buffers[5]) = (
        start[0].clone(),
        start[1][..words].to_vec(),
        start[1][second..][..words].to_vec(),
    );
    let [p, m, v] = run(&alone).try_into().unwrap();
    assert!(found[0] == p && found[1][..words] == m[..] && found[1][second..][..words] == v[..]);
}

#[test]
fn adamw_equals_its_twin() {
    let cases: Vec<Case> = [1, 255, 256, 257, 4099, 65_536 * 256 + 3].map(case).into();
    check(
        &cases,
        BOUND,
        ("params.d - params.alpha", "params.d + params.alpha"),
    );
    let large = in_full().then_some(65_536 * 256 + 4);
    let wide: Vec<Case> = [4, 1020, 1024, 1028, 4100]
        .into_iter()
        .chain(large)
        .map(wide_case)
        .collect();
    check(&wide, BOUND, ("bounded(raw.z)", "bounded(raw.y)"));
}

#[test]
fn adamw_keeps_nan_and_bounds_large_gradients() {
    let mut nan = case(4);
    nan.buffers[0] = vec![
        f32::NAN.to_bits(),
        f32::INFINITY.to_bits(),
        1e20f32.to_bits(),
        0,
    ];
    let [p, _, v] = nan.twin().try_into().unwrap();
    assert!(f32::from_bits(p[0]).is_nan() && f32::from_bits(v[1]).is_infinite());
    assert!(f32::from_bits(v[2]).is_finite() && f32::from_bits(v[2]) > 1e26);
    check(&[nan], BOUND, ("bounded(g[i])", "g[i]"));
}

#[test]
fn adamw_bf16_equals_its_twin_bit_for_bit() {
    let sizes = [1, 255, 256, 257, 4099];
    let cases: Vec<Case> = sizes
        .into_iter()
        .flat_map(|n| [1, 2, 3].map(|rounding| packed_case(n, rounding)))
        .collect();
    check(
        &cases,
        0.0,
        (
            "noise_words(params.noise, pair)",
            "noise_words(params.noise, 0u)",
        ),
    );
    check(&cases, 0.0, ("s * params.n + 2u", "2u"));
    check(
        &cases,
        0.0,
        (
            "bf16_pair(low.y, high.y, bits.y",
            "bf16_pair(low.y, high.y, bits.x",
        ),
    );
}
