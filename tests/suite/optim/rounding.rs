//! Stochastic rounding (`optimizers.md` §15, 1–7). Each test is shown to fail for truncation and for nearest.

use burn::tensor::{DType, Tensor};
use serde_json::json;
use tabtune::config::TrainConfig;
use tabtune::device::Device;
use tabtune::kernels::noise::{self, STOCHASTIC_ROUNDING, Stream, round_nearest, round_stochastic, widen};
use tabtune::optim::{Optim, ParamInfo};
use tabtune_tests::{block_on, cpu, gpu};

use super::{rule, upload};

type Round = fn(f32, u32) -> u16;

fn truncate(x: f32, _: u32) -> u16 {
    (x.to_bits() >> 16) as u16
}

fn nearest(x: f32, _: u32) -> u16 {
    round_nearest(x)
}

fn holds_for_stochastic_alone(test: fn(Round) -> bool) {
    assert!(test(round_stochastic));
    assert!(!test(truncate), "truncation passed");
    assert!(!test(nearest), "nearest passed");
}

/// Both signs × frac 0, 1, 0x8000, 0xFFFF and others × one, a binade edge, a subnormal, a small and a large value.
fn chosen() -> Vec<u32> {
    let mut values = Vec::new();
    for high in [0x3F80u32, 0x3FFF, 0x0001, 0x0080, 0x2B17, 0x7F7E, 0x7F7F] {
        for frac in [0, 1, 0x7FFF, 0x8000, 0xFFFF] {
            values.extend([high << 16 | frac, (high | 0x8000) << 16 | frac]);
        }
    }
    values
}

#[test]
fn every_noise_value_gives_exactly_frac_roundings_away() {
    assert!(chosen().len() >= 64);
    holds_for_stochastic_alone(|round| {
        chosen().into_iter().all(|bits| {
            let (low, saturated) = ((bits >> 16) as u16, bits >> 16 & 0x7FFF == 0x7F7F);
            let away = (0..=0xFFFF).filter(|&n| round(f32::from_bits(bits), n) == low + 1).count() as u32;
            away == if saturated { 0 } else { bits & 0xFFFF }
        })
    });
}

#[test]
fn a_million_random_patterns_land_on_a_neighbour() {
    let mut away = 0u32;
    for i in 0..1_000_000u64 {
        let [bits, n, ..] = noise::words([1, 2], i, 0);
        if bits & 0x7F80_0000 == 0x7F80_0000 {
            continue;
        }
        let (low, found) = ((bits >> 16) as u16, round_stochastic(f32::from_bits(bits), n & 0xFFFF));
        let up = if low & 0x7FFF == 0x7F7F { low } else { low + 1 };
        assert!(found == low || found == up, "{bits:08x}");
        away += u32::from(found != low);
    }
    assert!((450_000..550_000).contains(&away));
}

#[test]
fn bf16_values_are_fixed_points_and_classes_stay() {
    for high in 0..=0xFFFFu32 {
        let x = f32::from_bits(high << 16);
        if !x.is_nan() {
            for n in [0, 1, 0xFFFF] {
                assert_eq!(u32::from(round_stochastic(x, n)), high);
            }
        }
    }
    for bits in [0x7F80_0001u32, 0x7FC0_0000, 0x7FFF_FFFF, 0xFFFF_FFFF, 0xFFC0_0001] {
        for n in [0, 0x8000, 0xFFFF] {
            assert_eq!(round_stochastic(f32::from_bits(bits), n), (bits >> 16) as u16 & 0x8000 | 0x7FC0);
        }
    }
    assert_eq!(round_stochastic(f32::MAX, 0), 0x7F7F);
    assert_eq!(round_stochastic(f32::MIN, 0), 0xFF7F);
    // Each class goes wrong for truncation or nearest somewhere.
    assert!(widen(truncate(f32::from_bits(0x7F80_0001), 0)).is_infinite());
    assert!(widen(nearest(f32::MAX, 0)).is_infinite());
}

#[test]
fn sampled_frequencies_are_the_fractions() {
    holds_for_stochastic_alone(|round| {
        [0x3F80_1234u32, 0x3DCC_9C40, 0x4680_F001, 0x0001_8000].into_iter().all(|bits| {
            let (count, key) = (1u64 << 20, noise::key(STOCHASTIC_ROUNDING, 5, "frequencies"));
            let (low, q) = ((bits >> 16) as u16, f64::from(bits & 0xFFFF) / 65_536.0);
            let mut away = 0u64;
            for i in 0..count {
                let n = noise::noise(key, Stream::P, i, 1);
                let up = round(f32::from_bits(bits), n) != low;
                if (round(-f32::from_bits(bits), n) != low | 0x8000) != up {
                    return false;
                }
                away += u64::from(up);
            }
            let n = count as f64;
            (away as f64 - n * q).abs() < 5.0 * (n * q * (1.0 - q)).sqrt()
        })
    });
}

#[test]
fn streams_lags_steps_names_and_seeds_are_independent() {
    let count = 1usize << 18;
    let draw = |seed: u64, name: &str, stream: Stream, t: u64| -> Vec<f64> {
        let key = noise::key(STOCHASTIC_ROUNDING, seed, name);
        (0..count as u64 + 16).map(|i| f64::from(noise::noise(key, stream, i, t)) - 32_767.5).collect()
    };
    let correlation =
        |a: &[f64], b: &[f64]| a.iter().zip(b).take(count).map(|(a, b)| a * b).sum::<f64>() / count as f64 / (65_536f64.powi(2) / 12.0);
    let base = draw(1, "a", Stream::P, 1);
    let mut pairs: Vec<(String, f64)> = (1..=16).map(|lag| (format!("lag {lag}"), correlation(&base, &base[lag..]))).collect();
    for (what, other) in [
        ("m", draw(1, "a", Stream::M, 1)),
        ("v", draw(1, "a", Stream::V, 1)),
        ("next step", draw(1, "a", Stream::P, 2)),
        ("name", draw(1, "b", Stream::P, 1)),
        ("seed", draw(2, "a", Stream::P, 1)),
    ] {
        pairs.push((what.into(), correlation(&base, &other)));
    }
    for (what, r) in pairs {
        assert!(r.abs() < 5.0 / (count as f64).sqrt(), "{what}: {r}");
    }
    assert!(correlation(&base, &base) > 0.99);
}

/// Mean of v after 3000 AdamW steps with g = 1 on 4096 bf16 elements.
fn drift(device: &Device, stochastic: bool) -> f64 {
    let optimizer = rule(json!({"type": "adamw", "stochastic_rounding": stochastic}));
    let info = ParamInfo { name: "w".into(), shape: vec![4096], dtype: DType::BF16 };
    let mut optim = Optim::new(&TrainConfig { optimizer, ..TrainConfig::default() }, &[info]).unwrap();
    let mut p = upload(&vec![0.5; 4096], DType::BF16, device);
    let g = Tensor::<1>::ones([4096], &device.inner());
    for _ in 0..3000 {
        p = optim.step_param("w", p, Some(g.clone()), 1e-6, 1.0).unwrap();
    }
    let (_, v) = optim.state_tensors().into_iter().find(|(name, _)| name == "w:v").unwrap();
    let bytes = block_on(v.bytes()).unwrap();
    bytes.chunks_exact(2).map(|b| f64::from(widen(u16::from_le_bytes([b[0], b[1]])))).sum::<f64>() / 4096.0
}

fn v_reaches_its_mean(device: &Device) {
    let (mean, stuck) = (drift(device, true), drift(device, false));
    assert!((mean - 0.9503).abs() < 0.01, "{mean}");
    assert!((stuck - 0.25).abs() < 0.01, "nearest: {stuck}");
}

#[test]
fn drift_of_v_is_unbiased_on_the_cpu() {
    v_reaches_its_mean(&cpu());
}

#[test]
fn drift_of_v_is_unbiased_on_the_gpu() {
    if let Some(device) = gpu() {
        v_reaches_its_mean(&device);
    }
}

#[test]
fn updates_far_below_an_ulp_creep() {
    // 2^-17 is 1/1024 of bf16's ulp in [1, 2).
    let (elements, steps, update) = (64u64, 100_000u64, 2f32.powi(-17));
    let mean = |round: Round| {
        let key = noise::key(STOCHASTIC_ROUNDING, 3, "creep");
        let total: f64 = (0..elements)
            .map(|i| {
                let mut p = 1.0f32;
                for t in 0..steps {
                    p = widen(round(p + update, noise::noise(key, Stream::P, i, t)));
                }
                f64::from(p) - 1.0
            })
            .sum();
        total / elements as f64
    };
    let expected = steps as f64 * f64::from(update);
    let sigma = (steps as f64 / 1024.0 / elements as f64).sqrt() * 2f64.powi(-7);
    let found = mean(round_stochastic);
    assert!((found - expected).abs() < 5.0 * sigma, "{found}, expected {expected} ± {sigma}");
    assert_eq!(mean(nearest), 0.0);
    assert_eq!(mean(truncate), 0.0);
}
