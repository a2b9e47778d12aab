//! Stochastic rounding (shaders/README.md, "Rounding to bf16" and "Noise"). Each property is shown to fail for truncation and for nearest,
//! or, if they have it by nature, for broken variants of them.

use burn::tensor::{DType, Tensor, TensorData};
use serde_json::json;
use tabtune::bf16::{round_nearest, round_stochastic, widen};
use tabtune::config::TrainConfig;
use tabtune::device::Device;
use tabtune::gpu::noise::{Noise, Rounding};
use tabtune::gpu::{Buffer, read_data, run};
use tabtune::ops::cast_bf16;
use tabtune::optim::arithmetic::lerp;
use tabtune::optim::{Gate, Optim, ParamInfo};
use tabtune::random::{self, STOCHASTIC_ROUNDING, Stream};
use tabtune_tests::{as_a_gpu, block_on, cpu, gpu};

use super::{rule, upload};

/// Rounds bit patterns with 16 bits of noise each. Returns the bf16 patterns.
type Round<'a> = &'a dyn Fn(&[u32], &[u32]) -> Vec<u16>;
/// Rounds one value.
type One = fn(u32, u32) -> u16;

const INFINITY: u32 = 0x7F80_0000;

fn stochastic(bits: u32, noise: u32) -> u16 {
    round_stochastic(f32::from_bits(bits), noise)
}

fn truncation(bits: u32, _: u32) -> u16 {
    (bits >> 16) as u16
}

fn nearest(bits: u32, _: u32) -> u16 {
    round_nearest(f32::from_bits(bits))
}

/// Rounds to nearest without a check for NaN.
fn nearest_by_addition(bits: u32, _: u32) -> u16 {
    (bits.wrapping_add(0x7FFF + (bits >> 16 & 1)) >> 16) as u16
}

/// Rounds stochastically without a check for NaN and for the largest finite value.
fn noise_by_addition(bits: u32, noise: u32) -> u16 {
    (bits.wrapping_add(noise) >> 16) as u16
}

/// Rounds stochastically without saturation.
fn unsaturated(bits: u32, noise: u32) -> u16 {
    (bits >> 16) as u16 + u16::from(noise < bits & 0xFFFF)
}

fn always_away(bits: u32, _: u32) -> u16 {
    (bits >> 16).wrapping_add(1) as u16
}

fn two_away(bits: u32, noise: u32) -> u16 {
    stochastic(bits, noise).wrapping_add(u16::from(noise < bits & 0xFFFF))
}

/// Truncates, and replaces Inf by a large value.
fn truncation_to_finite(bits: u32, _: u32) -> u16 {
    let high = (bits >> 16) as u16;
    if high & 0x7FFF == 0x7F80 {
        high - 1
    } else {
        high
    }
}

/// A property of stochastic rounding, and the other roundings that break it. Truncation and nearest are listed unless they have the property by
/// nature; then a broken variant of each is listed instead.
struct Property {
    name: &'static str,
    holds: fn(Round<'_>) -> bool,
    breaks: &'static [(&'static str, One)],
}

const PROPERTIES: [Property; 7] = [
    Property {
        name: "65,536 noise values give exactly frac roundings away",
        holds: exhaustive,
        breaks: &[
            ("truncation", truncation),
            ("nearest", nearest),
            ("two away", two_away),
            ("unsaturated", unsaturated),
        ],
    },
    Property {
        name: "a million random patterns land on a neighbour, on both",
        holds: neighbours,
        // Nearest overflows to Inf; truncation never reaches the upper neighbour.
        breaks: &[
            ("truncation", truncation),
            ("nearest", nearest),
            ("two away", two_away),
            ("noise by addition", noise_by_addition),
        ],
    },
    Property {
        name: "all 65,536 bf16 values are fixed",
        holds: fixed_points,
        // Both truncation and nearest keep them fixed by nature, except for NaN.
        breaks: &[
            ("always away", always_away),
            ("truncation to finite", truncation_to_finite),
        ],
    },
    Property {
        name: "NaN stays the quiet NaN of its sign for every payload class",
        holds: nan_stays,
        // Nearest by definition keeps NaN; by addition alone it does not.
        breaks: &[
            ("truncation", truncation),
            ("nearest by addition", nearest_by_addition),
            ("noise by addition", noise_by_addition),
        ],
    },
    Property {
        name: "Inf stays Inf",
        holds: infinity_stays,
        // Both truncation and nearest keep it by nature.
        breaks: &[
            ("always away", always_away),
            ("truncation to finite", truncation_to_finite),
        ],
    },
    Property {
        name: "a finite value never becomes Inf",
        holds: finite_stays,
        // Truncation makes nothing larger.
        breaks: &[
            ("nearest", nearest),
            ("unsaturated", unsaturated),
            ("always away", always_away),
        ],
    },
    Property {
        name: "frequencies over Philox noise are the fractions, of either sign",
        holds: frequencies,
        breaks: &[("truncation", truncation), ("nearest", nearest)],
    },
];

/// Returns both signs × frac 0, 1, 0x8000, 0xFFFF and others × one, a binade edge, subnormals, a small and large values.
fn chosen() -> Vec<u32> {
    let mut values = Vec::new();
    for high in [0x3F80u32, 0x3FFF, 0x0001, 0x0080, 0x2B17, 0x7F7E, 0x7F7F] {
        for frac in [0, 1, 0x7FFF, 0x8000, 0xFFFF] {
            values.extend([high << 16 | frac, (high | 0x8000) << 16 | frac]);
        }
    }
    values
}

fn exhaustive(round: Round<'_>) -> bool {
    let all: Vec<u32> = (0..=0xFFFF).collect();
    assert!(chosen().len() >= 64);
    chosen().into_iter().all(|bits| {
        let (low, saturated) = ((bits >> 16) as u16, bits >> 16 & 0x7FFF == 0x7F7F);
        let found = round(&vec![bits; all.len()], &all);
        let away = found.iter().filter(|&&found| found == low + 1).count() as u32;
        found.iter().all(|&found| found == low || found == low + 1)
            && away == if saturated { 0 } else { bits & 0xFFFF }
    })
}

fn neighbours(round: Round<'_>) -> bool {
    let words: Vec<[u32; 4]> = (0..1_000_000u64)
        .map(|i| random::words([1, 2], i, 0))
        .collect();
    let bits: Vec<u32> = words
        .iter()
        .map(|w| w[0])
        .map(|b| {
            if b & INFINITY == INFINITY {
                b & !0x4000_0000
            } else {
                b
            }
        })
        .collect();
    let given: Vec<u32> = words.iter().map(|w| w[1] & 0xFFFF).collect();
    let found = round(&bits, &given);
    let away = found
        .iter()
        .zip(&bits)
        .filter(|(found, bits)| u32::from(**found) != **bits >> 16)
        .count();
    let on_neighbour = |(found, bits): (&u16, &u32)| {
        let low = (bits >> 16) as u16;
        *found == low || (*found == low + 1 && low & 0x7FFF != 0x7F7F)
    };
    found.iter().zip(&bits).all(on_neighbour) && (490_000..510_000).contains(&away)
}

/// Returns each value with each of several noise values.
fn with_noise(values: impl Iterator<Item = u32>) -> (Vec<u32>, Vec<u32>) {
    values
        .flat_map(|value| [0, 1, 0x7FFF, 0x8000, 0xFFFF].map(|noise| (value, noise)))
        .unzip()
}

fn fixed_points(round: Round<'_>) -> bool {
    let (bits, given) = with_noise(
        (0..=0xFFFFu32)
            .map(|high| high << 16)
            .filter(|bits| !f32::from_bits(*bits).is_nan()),
    );
    round(&bits, &given)
        .iter()
        .zip(&bits)
        .all(|(found, bits)| u32::from(*found) == bits >> 16)
}

fn nan_stays(round: Round<'_>) -> bool {
    // Every payload of a low half with an empty high half, every high half with an empty, a single-bit and a full low half; of both signs.
    let low = (1..=0xFFFFu32).map(|low| INFINITY | low);
    let high = (1..=0x7Fu32).flat_map(|high| [0, 1, 0xFFFF].map(|low| INFINITY | high << 16 | low));
    let (bits, given) = with_noise(low.chain(high).flat_map(|bits| [bits, bits | 0x8000_0000]));
    round(&bits, &given)
        .iter()
        .zip(&bits)
        .all(|(found, bits)| u32::from(*found) == bits >> 16 & 0x8000 | 0x7FC0)
}

fn infinity_stays(round: Round<'_>) -> bool {
    let (bits, given) = with_noise([INFINITY, INFINITY | 0x8000_0000].into_iter());
    round(&bits, &given)
        .iter()
        .zip(&bits)
        .all(|(found, bits)| u32::from(*found) == bits >> 16)
}

fn finite_stays(round: Round<'_>) -> bool {
    // Every f32 of the last bf16 binade step, of both signs.
    let (bits, given) =
        with_noise((0x7F7F_0000..INFINITY).flat_map(|bits| [bits, bits | 0x8000_0000]));
    round(&bits, &given)
        .iter()
        .all(|found| found & 0x7F80 != 0x7F80)
}

fn frequencies(round: Round<'_>) -> bool {
    let (count, key) = (
        1u64 << 19,
        random::key(STOCHASTIC_ROUNDING, 5, "frequencies"),
    );
    let given: Vec<u32> = (0..count)
        .map(|i| random::noise(key, Stream::P, i, 1))
        .collect();
    [0x3F80_1234u32, 0x3DCC_9C40, 0x4680_F001, 0x0001_8000]
        .into_iter()
        .all(|bits| {
            let (low, q) = ((bits >> 16) as u16, f64::from(bits & 0xFFFF) / 65_536.0);
            let up = round(&vec![bits; given.len()], &given);
            let down = round(&vec![bits | 0x8000_0000; given.len()], &given);
            let away = up.iter().filter(|&&found| found != low).count() as f64;
            let n = count as f64;
            up.iter().zip(&down).all(|(up, down)| up | 0x8000 == *down)
                && (away - n * q).abs() < 5.0 * (n * q * (1.0 - q)).sqrt()
        })
}

fn each(one: One) -> impl Fn(&[u32], &[u32]) -> Vec<u16> {
    move |bits, noise| {
        bits.iter()
            .zip(noise)
            .map(|(&bits, &noise)| one(bits, noise))
            .collect()
    }
}

#[test]
fn properties_hold_for_stochastic_rounding_and_break_for_others() {
    for Property {
        name,
        holds,
        breaks,
    } in PROPERTIES
    {
        assert!(holds(&each(stochastic)), "{name}");
        for (other, one) in breaks {
            assert!(!holds(&each(*one)), "{name}: {other} passed");
        }
    }
}

/// Returns the kernel `cast_bf16` with this rounding and noise from a buffer.
fn cast(device: &Device, rounding: Rounding) -> impl Fn(&[u32], &[u32]) -> Vec<u16> {
    let tensors = device.inner();
    move |bits, noise| {
        let buffer = |words: &[u32]| {
            let bytes = bytemuck::cast_slice::<u32, u8>(words).to_vec();
            Buffer::from(Tensor::<1>::from_data(
                TensorData::from_bytes_vec(bytes, [words.len()], DType::F32),
                (&tensors, DType::F32),
            ))
        };
        let n = bits.len();
        let noise_of_none = Noise {
            key: [0; 2],
            step: 0,
            rounding,
            first_pair: 0,
        };
        let place = cast_bf16::Params {
            n,
            stream: 2,
            first_pair_low: 0,
            first_pair_high: 0,
            noise: noise_of_none,
        };
        let x = buffer(bits);
        let y = x.empty_like([bits.len()], DType::BF16);
        let [y] = run(
            &cast_bf16::KERNEL,
            [x, buffer(noise)],
            [y],
            &place,
            n.div_ceil(512) as u32,
        )
        .unwrap();
        let data = block_on(read_data(y.float::<1>())).unwrap();
        data.as_bytes()
            .chunks_exact(2)
            .map(|b| u16::from_le_bytes([b[0], b[1]]))
            .collect()
    }
}

fn properties_hold_in_the_kernel(device: &Device) {
    for Property {
        name,
        holds,
        breaks,
    } in PROPERTIES
    {
        assert!(
            holds(&cast(device, Rounding::Given)),
            "{name} on {}",
            device.info().adapter
        );
        if breaks.iter().any(|(other, _)| *other == "nearest") {
            assert!(
                !holds(&cast(device, Rounding::Nearest)),
                "{name} on {}: nearest passed",
                device.info().adapter
            );
        }
    }
}

#[test]
fn properties_hold_in_the_kernel_on_the_cpu() {
    properties_hold_in_the_kernel(&cpu());
}

#[test]
fn properties_hold_in_the_kernel_on_the_gpu() {
    [gpu(), as_a_gpu()]
        .into_iter()
        .flatten()
        .for_each(|device| properties_hold_in_the_kernel(&device));
}

#[test]
fn streams_lags_steps_names_and_seeds_are_independent() {
    let count = 1usize << 18;
    let draw = |seed: u64, name: &str, stream: Stream, t: u64| -> Vec<f64> {
        let key = random::key(STOCHASTIC_ROUNDING, seed, name);
        (0..count as u64 + 16)
            .map(|i| f64::from(random::noise(key, stream, i, t)) - 32_767.5)
            .collect()
    };
    let correlation = |a: &[f64], b: &[f64]| {
        a.iter().zip(b).take(count).map(|(a, b)| a * b).sum::<f64>()
            / count as f64
            / (65_536f64.powi(2) / 12.0)
    };
    let base = draw(1, "a", Stream::P, 1);
    let mut pairs: Vec<(String, f64)> = (1..=16)
        .map(|lag| (format!("lag {lag}"), correlation(&base, &base[lag..])))
        .collect();
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

/// Returns the mean of v after 3000 AdamW steps with g = 1 on 4096 bf16 elements.
fn drift(device: &Device, stochastic: bool) -> f64 {
    let optimizer = rule(json!({"type": "adamw", "stochastic_rounding": stochastic}));
    let info = ParamInfo {
        name: "w".into(),
        shape: vec![4096],
        dtype: DType::BF16,
        outside_blocks: false,
    };
    let mut optim = Optim::new(
        &TrainConfig {
            optimizer,
            ..TrainConfig::default()
        },
        &[info],
    )
    .unwrap();
    let mut p = upload(&vec![0.5; 4096], DType::BF16, device);
    let g = Tensor::<1>::ones([4096], &device.inner());
    let gate = Gate::open(1.0, &device.inner());
    for _ in 0..3000 {
        p = optim
            .step_param("w", p, Some(g.clone()), 1e-6, &gate)
            .unwrap();
    }
    let (_, v) = optim
        .state_tensors()
        .into_iter()
        .find(|(name, _)| name == "w:v")
        .unwrap();
    let bytes = block_on(v.bytes()).unwrap();
    bytes
        .chunks_exact(2)
        .map(|b| f64::from(widen(u16::from_le_bytes([b[0], b[1]]))))
        .sum::<f64>()
        / 4096.0
}

fn v_reaches_its_mean(device: &Device) {
    let (mean, stuck) = (drift(device, true), drift(device, false));
    assert!((mean - 0.9503).abs() < 0.01, "{mean}");
    assert!((stuck - 0.25).abs() < 0.01, "nearest: {stuck}");
}

#[test]
fn drift_of_v_fails_for_truncation_and_nearest() {
    // v alone, as AdamW's kernel keeps it.
    let mean = |round: One| {
        let key = random::key(STOCHASTIC_ROUNDING, 3, "drift");
        let last = |i: u64| {
            (0..3000).fold(0.0f32, |v, t| {
                widen(round(
                    lerp(v, 1.0, 1e-3).to_bits(),
                    random::noise(key, Stream::V, i, t),
                ))
            })
        };
        (0..512).map(|i| f64::from(last(i))).sum::<f64>() / 512.0
    };
    let good = |mean: f64| (mean - 0.9503).abs() < 0.01;
    assert!(good(mean(stochastic)), "{}", mean(stochastic));
    assert!(
        !good(mean(nearest)) && !good(mean(truncation)),
        "{} {}",
        mean(nearest),
        mean(truncation)
    );
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
    let mean = |round: One| {
        let key = random::key(STOCHASTIC_ROUNDING, 3, "creep");
        let total: f64 = (0..elements)
            .map(|i| {
                let mut p = 1.0f32;
                for t in 0..steps {
                    p = widen(round(
                        (p + update).to_bits(),
                        random::noise(key, Stream::P, i, t),
                    ));
                }
                f64::from(p) - 1.0
            })
            .sum();
        total / elements as f64
    };
    let expected = steps as f64 * f64::from(update);
    let sigma = (steps as f64 / 1024.0 / elements as f64).sqrt() * 2f64.powi(-7);
    let found = mean(stochastic);
    assert!(
        (found - expected).abs() < 5.0 * sigma,
        "{found}, expected {expected} ± {sigma}"
    );
    assert_eq!(mean(nearest), 0.0);
    assert_eq!(mean(truncation), 0.0);
}
