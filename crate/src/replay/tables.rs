//! Checks tables of noise, rounding and projectors, on the twin and through the device's kernel.

use burn::tensor::DType;
use serde_json::Value;

use super::Errors;
use super::values::{Recorded, hex, words};
use crate::bf16;
use crate::device::Device;
use crate::error::Result;
use crate::gpu::noise::{Noise, Rounding};
use crate::gpu::{Buffer, read_data, run};
use crate::ops::cast_bf16;
use crate::optim::apollo::project as apollo_project;
use crate::optim::orthogonal;
use crate::random::{self, Stream};

/// Runs `cast_bf16` on f32 bit patterns. Returns the bf16 patterns.
async fn cast(
    x: &[u32],
    given: &[u32],
    params: cast_bf16::Params,
    device: &Device,
) -> Result<Vec<u16>> {
    let tensors = device.inner();
    let x = Buffer::from(words(x, &tensors));
    let y = x.empty_like([params.n], DType::BF16);
    let [y] = run(
        &cast_bf16::KERNEL,
        [x, words(given, &tensors).into()],
        [y],
        &params,
        params.n.div_ceil(512) as u32,
    )?;
    let data = read_data(y.float::<1>()).await?;
    Ok(data
        .as_bytes()
        .chunks_exact(2)
        .map(|b| u16::from_le_bytes([b[0], b[1]]))
        .collect())
}

fn plain(n: usize, rounding: Rounding) -> cast_bf16::Params {
    let noise = Noise {
        key: [0; 2],
        step: 0,
        rounding,
        first_pair: 0,
    };
    cast_bf16::Params {
        n,
        stream: 2,
        first_pair_low: 0,
        first_pair_high: 0,
        noise,
    }
}

/// Returns whether the bits are equal, or both are ±0 on a device that flushes subnormals.
fn same(x: u32, found: u16, expected: u16, twin: bool) -> bool {
    found == expected
        || (!twin
            && x & 0x7F80_0000 == 0
            && found & 0x7FFF == 0
            && found & 0x8000 == expected & 0x8000)
}

/// Replays `stochastic_round_bf16_expected`: pairs of value and noise, and values rounded to nearest.
pub(super) async fn rounding(
    root: &Value,
    device: &Device,
    errors: &mut Errors,
) -> Result<Option<()>> {
    let rows = |key: &str, field: &str| -> Option<Vec<u32>> {
        root[key]
            .as_array()?
            .iter()
            .map(|row| row[field].as_u64().map(|x| x as u32))
            .collect()
    };
    let twin = device.info().backend == "cpu";
    let (Some(x), Some(given), Some(expected)) = (
        rows("cases", "f32_bits"),
        rows("cases", "noise"),
        rows("cases", "bf16_bits"),
    ) else {
        return Ok(None);
    };
    let found = cast(&x, &given, plain(x.len(), Rounding::Given), device).await?;
    for (i, &x) in x.iter().enumerate() {
        let ours = bf16::round_stochastic(f32::from_bits(x), given[i]);
        let right = u32::from(ours) == expected[i] && same(x, found[i], expected[i] as u16, twin);
        errors.equal(
            || {
                format!(
                    "{x:08x} with noise {}: expected {:04x}, found {:04x}",
                    given[i], expected[i], found[i]
                )
            },
            u32::from(!right),
        );
    }
    let (Some(x), Some(expected)) = (rows("nearest", "f32_bits"), rows("nearest", "bf16_bits"))
    else {
        return Ok(None);
    };
    let found = cast(&x, &[0], plain(x.len(), Rounding::Nearest), device).await?;
    for (i, &x) in x.iter().enumerate() {
        let right = u32::from(bf16::round_nearest(f32::from_bits(x))) == expected[i]
            && same(x, found[i], expected[i] as u16, twin);
        errors.equal(
            || {
                format!(
                    "{x:08x} to nearest: expected {:04x}, found {:04x}",
                    expected[i], found[i]
                )
            },
            u32::from(!right),
        );
    }
    Ok(Some(()))
}

/// Checks that the device's 16 bits of noise at this place are `expected`: a value with frac = noise stays, one with frac = noise + 1
/// grows.
async fn device_noise_is(
    expected: u32,
    odd: usize,
    params: cast_bf16::Params,
    device: &Device,
) -> Result<bool> {
    let one = 0x3F80_0000;
    let mut right = true;
    for (frac, grown) in [(expected, 0x3F80), (expected + 1, 0x3F81)] {
        if frac <= 0xFFFF {
            right &= cast(&[one | frac; 2], &[0], params, device).await?[odd] == grown;
        }
    }
    Ok(right)
}

/// Replays `philox_expected`: known answers of the generator, and triples of key, words, noise and rounding.
pub(super) async fn noise(
    root: &Value,
    device: &Device,
    errors: &mut Errors,
) -> Result<Option<()>> {
    let list = |value: &Value| -> Option<Vec<u32>> {
        value
            .as_array()?
            .iter()
            .map(|x| hex(x).map(|x| x as u32))
            .collect()
    };
    let four = |value: &Value| list(value).and_then(|list| <[u32; 4]>::try_from(list).ok());
    let two = |value: &Value| list(value).and_then(|list| <[u32; 2]>::try_from(list).ok());
    let place = |c: [u32; 4], k: [u32; 2], stream: u32| {
        let noise = Noise {
            key: k,
            step: u64::from(c[2]) | u64::from(c[3]) << 32,
            rounding: Rounding::Stochastic,
            first_pair: 0,
        };
        cast_bf16::Params {
            n: 2,
            stream,
            first_pair_low: c[0],
            first_pair_high: c[1],
            noise,
        }
    };
    let (Some(answers), Some(triples)) =
        (root["known_answers"].as_array(), root["triples"].as_array())
    else {
        return Ok(None);
    };
    for row in answers {
        let (Some(counter), Some(key), Some(words)) =
            (four(&row["counter"]), two(&row["key"]), four(&row["words"]))
        else {
            return Ok(None);
        };
        let mut right = random::philox(counter, key) == words;
        for stream in 0..3u32 {
            for odd in 0..2 {
                let expected = words[stream as usize] >> (16 * odd) & 0xFFFF;
                right &=
                    device_noise_is(expected, odd as usize, place(counter, key, stream), device)
                        .await?;
            }
        }
        errors.equal(|| format!("counter {counter:08x?}"), u32::from(!right));
    }
    for row in triples {
        let (Some(seed), Some(name), Some(t)) = (
            hex(&row["seed"]),
            row["name"].as_str(),
            row["step"].as_u64(),
        ) else {
            return Ok(None);
        };
        let (Some(i), Some(counter), Some(words)) = (
            row["element"].as_u64(),
            four(&row["counter"]),
            four(&row["words"]),
        ) else {
            return Ok(None);
        };
        let (Some(x), Some(rounded)) = (hex(&row["f32_bits"]), hex(&row["bf16_bits_with_noise_p"]))
        else {
            return Ok(None);
        };
        let key = random::key(random::STOCHASTIC_ROUNDING, seed, name);
        let mut right = Some(key) == two(&row["key"]) && random::words(key, i >> 1, t) == words;
        for (stream, field) in [
            (Stream::M, "noise_m"),
            (Stream::V, "noise_v"),
            (Stream::P, "noise_p"),
        ] {
            let expected = random::noise(key, stream, i, t);
            right &= row[field].as_u64() == Some(u64::from(expected));
            right &= device_noise_is(
                expected,
                (i & 1) as usize,
                place(counter, key, stream as u32),
                device,
            )
            .await?;
        }
        let x = x as u32;
        let found = cast(&[x; 2], &[0], place(counter, key, 2), device).await?[(i & 1) as usize];
        let twin = bf16::round_stochastic(f32::from_bits(x), random::noise(key, Stream::P, i, t));
        right &= u64::from(twin) == rounded
            && same(x, found, rounded as u16, device.info().backend == "cpu");
        errors.equal(
            || format!("{name} at step {t}, element {i}"),
            u32::from(!right),
        );
    }
    Ok(Some(()))
}

/// The projector `[dim, rank]` that `apollo_project` uses, from its product with the unit vectors, one per channel, with moments
/// that keep nothing. `given` is uploaded; without it the kernel generates the normal projector.
async fn projected(
    key: [u32; 2],
    refresh: u64,
    (dim, rank): (usize, usize),
    given: Option<&[f32]>,
    device: &Device,
) -> Result<Vec<f32>> {
    let tensors = device.inner();
    let upload = |values: Vec<f32>| {
        Buffer::from(words(
            &values.into_iter().map(f32::to_bits).collect::<Vec<_>>(),
            &tensors,
        ))
    };
    let params = apollo_project::Params {
        channels: dim,
        dim,
        rank,
        channel_stride: dim,
        dim_stride: 1,
        given: given.is_some(),
        sigma: 1.0,
        unit: apollo_project::unit(dim),
        w1: 1.0,
        w2: 1.0,
        eps: 1e-6,
        key0: key[0],
        key1: key[1],
        refresh_low: refresh as u32,
        refresh_high: (refresh >> 32) as u32,
    };
    let units = (0..dim * dim)
        .map(|e| f32::from(u8::from(e % (dim + 1) == 0)))
        .collect();
    let zeros = || upload(vec![0.0; rank * dim]);
    let gate = upload(vec![0.0, 1.0]);
    let (read, stats) = (
        [
            upload(units),
            upload(given.unwrap_or(&[0.0]).to_vec()),
            gate,
        ],
        upload(vec![0.0; 4 * dim]),
    );
    let [m, _, _] = run(
        &apollo_project::KERNEL,
        read,
        [zeros(), zeros(), stats],
        &params,
        apollo_project::KERNEL.groups(dim),
    )?;
    let data = read_data(m.float::<1>()).await?;
    // [rank, channels], one channel for each of the dim rows of P.
    let m: Vec<f32> = data
        .as_bytes()
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    Ok((0..dim * rank)
        .map(|e| m[e % rank * dim + e / rank])
        .collect())
}

/// Replays `apollo_projector_expected`: matrices of both kinds.
pub(super) async fn projectors(
    root: &Value,
    device: &Device,
    errors: &mut Errors,
) -> Result<Option<()>> {
    let Some(cases) = root["cases"].as_array() else {
        return Ok(None);
    };
    for case in cases {
        let (Some(seed), Some(name), Some(refresh)) = (
            hex(&case["seed"]),
            case["name"].as_str(),
            case["refresh"].as_u64(),
        ) else {
            return Ok(None);
        };
        let (Some(dim), Some(rank), Some(kind)) = (
            case["dim"].as_u64(),
            case["rank"].as_u64(),
            case["kind"].as_str(),
        ) else {
            return Ok(None);
        };
        let Some(expected) = Recorded::read(&case["P"]) else {
            return Ok(None);
        };
        let (key, dim, rank) = (
            random::key(random::PROJECTOR, seed, name),
            dim as usize,
            rank as usize,
        );
        let uploaded = (kind != "normal").then(|| orthogonal(key, refresh, dim, rank));
        let twin = uploaded
            .clone()
            .unwrap_or_else(|| apollo_project::normal(key, refresh, dim, rank));
        let kernel = projected(key, refresh, (dim, rank), uploaded.as_deref(), device).await?;
        for (by, made) in [("the twin", twin), ("the kernel", kernel)] {
            errors.require(made.len() == expected.values.len(), || {
                format!("{name}: {} entries by {by}", made.len())
            });
            for (e, (found, expected)) in made.iter().zip(&expected.values).enumerate() {
                let place = || {
                    format!(
                        "{name}, refresh {refresh}, entry {e} by {by}: expected {expected:e}, found {found:e}"
                    )
                };
                errors.equal(place, u32::from(found.to_bits() != expected.to_bits()));
            }
        }
    }
    Ok(Some(()))
}
