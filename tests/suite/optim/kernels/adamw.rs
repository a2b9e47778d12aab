use super::gate::open;
use tabtune::optim::adamw::{kernel as adamw, packed as adamw_bf16};
use tabtune_tests::kernels::{Case, check, noise, packed, place, words};

/// Sums of two products in f32: a driver may contract or divide within 2.5 ulp.
const BOUND: f64 = 1e-6;

pub(super) fn case(n: usize) -> Case {
    let params = adamw::Params { n: n as u32, w1: 0.1, w2: 1e-3, d: 0.999, alpha: 1e-2, eps: 1e-6 };
    let v = noise(n, 4).into_iter().map(f32::abs).collect::<Vec<f32>>();
    let mut g = noise(n, 2);
    // Past the bound, and so small that g² vanishes.
    g[0] = 1e30;
    g[n / 2] = -1e-30;
    let written = [words(&noise(n, 1)), words(&noise(n, 3)), words(&v)];
    Case::new(&adamw::KERNEL, [words(&g), open(0.75)], written, &params, (n as u32).div_ceil(256))
}

pub(super) fn wide_case(n: usize) -> Case {
    Case { kernel: adamw::WIDE.any(), groups: (n as u32 / 4).div_ceil(256), ..case(n) }
}

pub(super) fn packed_case(n: usize, rounding: u32) -> Case {
    let params = adamw_bf16::Params { n: n as u32, w1: 0.1, w2: 1e-3, d: 0.999, alpha: 1e-2, eps: 1e-6, noise: place(rounding) };
    let v = noise(n, 4).into_iter().map(f32::abs).collect::<Vec<f32>>();
    let given = (0..3 * n as u32).map(|i| i.wrapping_mul(40_503) & 0xFFFF).collect();
    let written = [packed(&noise(n, 1)).0, packed(&noise(n, 3)).0, packed(&v).0];
    Case::new(&adamw_bf16::KERNEL, [words(&noise(n, 2)), given, open(0.75)], written, &params, (n as u32).div_ceil(512))
}

#[test]
fn adamw_equals_its_twin() {
    let cases: Vec<Case> = [1, 255, 256, 257, 4099, 65_536 * 256 + 3].map(case).into();
    check(&cases, BOUND, ("params.d - params.alpha", "params.d + params.alpha"));
    let wide: Vec<Case> = [4, 1020, 1024, 1028, 4100, 65_536 * 256 + 4].map(wide_case).into();
    check(&wide, BOUND, ("bounded(raw.z)", "bounded(raw.y)"));
}

#[test]
fn adamw_keeps_nan_and_bounds_large_gradients() {
    let mut nan = case(4);
    nan.buffers[0] = vec![f32::NAN.to_bits(), f32::INFINITY.to_bits(), 1e20f32.to_bits(), 0];
    let [p, _, v] = nan.twin().try_into().unwrap();
    assert!(f32::from_bits(p[0]).is_nan() && f32::from_bits(v[1]).is_infinite());
    assert!(f32::from_bits(v[2]).is_finite() && f32::from_bits(v[2]) > 1e26);
    check(&[nan], BOUND, ("bounded(g[i])", "g[i]"));
}

#[test]
fn adamw_bf16_equals_its_twin_bit_for_bit() {
    let sizes = [1, 255, 256, 257, 4099];
    let cases: Vec<Case> = sizes.into_iter().flat_map(|n| [1, 2, 3].map(|rounding| packed_case(n, rounding))).collect();
    check(&cases, 0.0, ("noise_words(params.noise, pair)", "noise_words(params.noise, 0u)"));
    check(&cases, 0.0, ("s * params.n + 2u", "2u"));
    check(&cases, 0.0, ("bf16_pair(low.y, high.y, bits.y", "bf16_pair(low.y, high.y, bits.x"));
}
