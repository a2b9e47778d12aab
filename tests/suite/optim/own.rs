//! Rules of one's own that know of no gate (`crate::optim::guard`): what reaches them, what of theirs is written, and what is saved.

use burn::tensor::{DType, Tensor, TensorData};
use tabtune::bf16::{round_stochastic, widen};
use tabtune::config::{OptimizerConfig, SgdConfig, TrainConfig};
use tabtune::device::Device;
use tabtune::gpu::{Buffer, Words, run};
use tabtune::interrupt::Interrupt;
use tabtune::optim::{
    Gate, Layout, Optim, ParamInfo, Rule, SavedState, Stepped, Update, sum_of_squares,
};
use tabtune::random::{STOCHASTIC_ROUNDING, key, words};
use tabtune_tests::kernels::noise;
use tabtune_tests::{block_on, cpu, gpu};

use super::upload;

/// An odd number of elements: the last packed word is half empty.
const N: usize = 301;
const SEED: u64 = 42;
const RATE: f64 = 1e-3;

tabtune::kernel! {
    /// `p ← p − η·sign(g)`; m becomes the gradient, and each word of the other states one more.
    NOTING = "noting" text (r"
        struct Params { n: u32, words: u32, rate: f32 }
        @group(0) @binding(0) var<storage, read_write> g: array<f32>;
        @group(0) @binding(1) var<storage, read_write> p: array<f32>;
        @group(0) @binding(2) var<storage, read_write> m: array<f32>;
        @group(0) @binding(3) var<storage, read_write> count: array<u32>;
        @group(0) @binding(4) var<storage, read_write> bytes: array<u32>;
        @group(0) @binding(5) var<storage, read_write> params: Params;

        @compute @workgroup_size(64)
        fn main(
            @builtin(workgroup_id) group: vec3<u32>,
            @builtin(num_workgroups) groups: vec3<u32>,
            @builtin(local_invocation_index) lane: u32,
        ) {
            let i = grid_index(group, groups, lane, 64u);
            if (i >= params.n) { return; }
            p[i] -= params.rate * sign(g[i]);
            m[i] = g[i];
            if (i == 0u) { count[0] += 1u; }
            if (i < params.words) { bytes[i] += 0x7f800001u; }
        }
    ") [64], (g) -> (mut p, mut m, mut count, mut bytes),
    /// Scalars of a step.
    struct Noting {
        /// Elements.
        n: u32,
        /// Words of the bytes.
        words: u32,
        /// η.
        rate: f32,
    } varying,
    twin |[g], [p, m, count, bytes], s| {
        for (i, &g) in g.floats().iter().enumerate().take(s.n as usize) {
            p.floats_mut()[i] -= s.rate * if g == 0.0 { 0.0 } else { g.signum() };
            m.floats_mut()[i] = g;
        }
        count[0] += 1;
        bytes[..s.words as usize].iter_mut().for_each(|word| *word = word.wrapping_add(0x7f80_0001));
    }
}

/// signSGD that keeps the last gradient in bf16, a count, and seven bytes whose words are no numbers.
#[derive(Debug)]
struct Signs;

impl Rule for Signs {
    fn layout(&self, parameter: &ParamInfo) -> Layout {
        Layout(vec![
            ("last", parameter.shape.clone(), DType::BF16),
            ("count", vec![], DType::U32),
            ("bytes", vec![7], DType::U8),
        ])
    }

    fn step(
        &mut self,
        u: &Update<'_>,
        p: Buffer,
        g: Buffer,
        state: Vec<Buffer>,
    ) -> tabtune::Result<Stepped> {
        let [m, count, bytes] = u.state(state)?;
        let params = Noting {
            n: u.n(),
            words: 2,
            rate: u.rate as f32,
        };
        let groups = NOTING.groups(N);
        let [p, m, count, bytes] = run(&NOTING, [g], [p, m, count, bytes], &params, groups)?;
        Ok((p, vec![m, count, bytes]))
    }
}

fn each_device(test: impl Fn(&Device)) {
    test(&cpu());
    if let Some(device) = gpu() {
        test(&device);
    }
}

fn optim(dtype: DType) -> Optim {
    let config = TrainConfig {
        seed: SEED,
        optimizer: OptimizerConfig::Sgd(SgdConfig::default()),
        ..TrainConfig::default()
    };
    let info = ParamInfo {
        name: "p".into(),
        shape: vec![7, 43],
        dtype,
        outside_blocks: false,
    };
    let optim = Optim::new(&config, &[info]).unwrap();
    optim.with_rule("p", |_| Signs).unwrap()
}

/// The gradient of step `t`; some values are 0, one is beyond the bound of gradients.
fn gradient(t: u32) -> Vec<f32> {
    let mut values = noise(N, 100 + t);
    values[3] = 0.0;
    values[N - 1] = -1e30;
    values
}

fn step(optim: &mut Optim, p: Tensor<1>, t: u32, gate: &Gate) -> Tensor<1> {
    let grad = Tensor::from_data(TensorData::new(gradient(t), [N]), &p.device());
    optim.step_param("p", p, Some(grad), RATE, gate).unwrap()
}

fn stored(tensor: Tensor<1>) -> Vec<u8> {
    block_on(tensor.into_data_async()).unwrap().as_bytes()[..].to_vec()
}

/// The bytes of each state, by name.
fn states(optim: &Optim) -> Vec<(String, Vec<u8>)> {
    let entries = optim.state_tensors().into_iter();
    entries
        .map(|(name, entry)| (name, block_on(entry.bytes()).unwrap()))
        .collect()
}

/// bf16 halves as the crate's own rules round with stream p (shaders/README.md, "Noise").
fn rounded(name: &str, t: u64, values: impl Iterator<Item = f32>) -> Vec<u16> {
    let key = key(STOCHASTIC_ROUNDING, SEED, name);
    let round = |(i, value): (usize, f32)| {
        let word = words(key, i as u64 / 2, t)[2];
        round_stochastic(value, word >> (16 * (i & 1)) & 0xFFFF)
    };
    values.enumerate().map(round).collect()
}

fn halves(bytes: &[u8]) -> Vec<u16> {
    bytemuck::pod_collect_to_vec(&bytes[..2 * N])
}

#[test]
fn a_rule_sees_clipped_gradients_and_is_rounded_as_ours_are() {
    each_device(|device| {
        let gate = Gate::open(0.25, &device.inner());
        for dtype in [DType::F32, DType::BF16] {
            let mut optim = optim(dtype);
            let mut p = upload(&noise(N, 1), dtype, device);
            for t in 1..=3u64 {
                let before = stored(p.clone());
                p = step(&mut optim, p, t as u32, &gate);
                let clipped: Vec<f32> = gradient(t as u32)
                    .into_iter()
                    .map(|g| g.clamp(-1e15, 1e15) * 0.25)
                    .collect();
                let found = states(&optim);
                let last = rounded("p:last", t, clipped.iter().copied());
                let state = |name: &str| &found.iter().find(|(own, _)| own == name).unwrap().1;
                assert_eq!(halves(state("p:last")), last, "{dtype:?}: last at {t}");
                assert_eq!(state("p:count"), &(t as u32).to_le_bytes(), "{dtype:?}");
                let word = (t as u32).wrapping_mul(0x7f80_0001).to_le_bytes();
                let bytes = [word, word].concat();
                assert_eq!(state("p:bytes"), &bytes[..7], "{dtype:?}: bytes at {t}");
                let moved = |old: f32, i: usize| {
                    let sign = if clipped[i] == 0.0 {
                        0.0
                    } else {
                        clipped[i].signum()
                    };
                    old - RATE as f32 * sign
                };
                let after = stored(p.clone());
                if dtype == DType::BF16 {
                    let old = halves(&before).into_iter().map(widen).enumerate();
                    let expected = rounded("p", t, old.map(|(i, old)| moved(old, i)));
                    assert_eq!(halves(&after), expected, "p at {t}");
                } else {
                    let old: Vec<f32> = bytemuck::pod_collect_to_vec(&before);
                    let expected: Vec<f32> = old
                        .into_iter()
                        .enumerate()
                        .map(|(i, old)| moved(old, i))
                        .collect();
                    assert_eq!(
                        after,
                        bytemuck::cast_slice::<f32, u8>(&expected),
                        "p at {t}"
                    );
                }
            }
        }
    });
}

#[test]
fn a_step_that_is_not_finite_changes_neither_parameter_nor_state() {
    each_device(|device| {
        let inner = device.inner();
        for dtype in [DType::F32, DType::BF16] {
            let mut optim = optim(dtype);
            let p = upload(&noise(N, 1), dtype, device);
            let p = step(&mut optim, p, 1, &Gate::open(1.0, &inner));
            let before = (stored(p.clone()), states(&optim));
            // The gate closes on the device.
            let grads = Tensor::<1>::from_floats([1.0, f32::INFINITY], &inner);
            let squares = sum_of_squares(vec![(grads.into(), 2)]).unwrap().unwrap();
            let losses = Tensor::<1>::from_floats([1.0], &inner);
            let rows = Tensor::<1>::zeros([8], &inner).into();
            let gate = Gate::open(1.0, &inner).next(losses, squares, 1.0, rows, 0);
            let p = step(&mut optim, p, 2, &gate.unwrap().0);
            let after = states(&optim);
            for ((name, before), (_, after)) in before.1.iter().zip(&after) {
                // The trainer takes the count of steps back.
                assert!(before == after || name == "p:step", "{dtype:?}: {name}");
            }
            assert_eq!(before.0, stored(p), "{dtype:?}");
        }
    });
}

#[test]
fn a_state_of_any_dtype_is_saved_and_resumed() {
    each_device(|device| {
        let gate = Gate::open(0.5, &device.inner());
        let start = || upload(&noise(N, 1), DType::BF16, device);
        let mut straight = optim(DType::BF16);
        let half = (1..=2).fold(start(), |p, t| step(&mut straight, p, t, &gate));
        let weights = stored(half.clone());
        let mut entries = Vec::new();
        for (name, entry) in straight.state_tensors() {
            let bytes = block_on(entry.bytes()).unwrap();
            entries.push(SavedState::from_bytes(name, &entry, bytes));
        }
        let whole = (3..=4).fold(half, |p, t| step(&mut straight, p, t, &gate));

        let mut resumed = optim(DType::BF16);
        let with_state = vec!["p".to_string()];
        let (inner, never) = (device.inner(), Interrupt::none());
        let load = resumed.load_state(entries, &with_state, &inner, &never);
        block_on(load).unwrap();
        let data = TensorData::from_bytes_vec(weights[..2 * N].to_vec(), [N], DType::BF16);
        let p = Tensor::<1>::from_data(data, (&device.inner(), DType::BF16));
        let p = (3..=4).fold(p, |p, t| step(&mut resumed, p, t, &gate));
        assert_eq!(stored(whole), stored(p));
        assert_eq!(states(&straight), states(&resumed));
    });
}
