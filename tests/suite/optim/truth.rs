//! Every optimizer compared with float64 arithmetic written from its paper, over random configurations, shapes and gradients.
//!
//! The formulas here are those of the papers: bias-corrected moments, sums and norms in f64, nothing fused or rounded. Three definitions are
//! tabtune's own: the gradient bound of 1e15, ε added to the uncorrected √v, and APOLLO's seeded projector and limiter start
//! (shaders/README.md, "Update rules").

use burn::tensor::{DType, Tensor};
use serde_json::json;
use tabtune::config::{
    AdafactorConfig, AdamwConfig, ApolloConfig, ApolloScale, OptimizerConfig, ProjectorKind,
    SgdConfig, TrainConfig,
};
use tabtune::device::Device;
use tabtune::gpu::read_f32;
use tabtune::optim::apollo::project as apollo_project;
use tabtune::optim::{Gate, Optim, ParamInfo, orthogonal};
use tabtune::random;
use tabtune_tests::{as_a_gpu, block_on, cpu, devices, gpu, in_full};

use super::{rule, upload};

const STEPS: u64 = 100;
const NAME: &str = "model.layers.0.weight";

/// Random choices of one configuration (splitmix64).
struct Dice(u64);

impl Dice {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    fn log(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.unit() * n as f64) as usize
    }
}

/// A parameter with its statistics, all f64.
struct Truth {
    shape: Vec<usize>,
    seed: u64,
    t: u64,
    p: Vec<f64>,
    first: Vec<f64>,
    second: Vec<f64>,
    norm: f64,
    /// R [rank, channels] of this step as a device projected it, instead of an exact one.
    projected: Option<Vec<f64>>,
}

fn squares(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|x| x * x).sum()
}

impl Truth {
    /// Returns (A, B): the product of the leading dimensions, and the last.
    fn matrix(&self) -> Option<(usize, usize)> {
        let last = *self.shape.last()?;
        (self.shape.len() > 1).then(|| (self.p.len() / last, last))
    }

    fn step(&mut self, rule: &OptimizerConfig, rate: f64, g: &[f64]) {
        self.t += 1;
        match rule {
            OptimizerConfig::Adamw(c) => self.adamw(c, rate, g),
            OptimizerConfig::Adafactor(c) => self.adafactor(c, rate, g),
            OptimizerConfig::Apollo(c) => match self.matrix() {
                Some((a, b)) if a.min(b) > rank_of(c, a.min(b)) => self.apollo(c, rate, g, (a, b)),
                _ => {
                    let (beta1, beta2, eps, weight_decay) =
                        (c.beta1, c.beta2, c.eps, c.weight_decay);
                    let rate = rate * c.adamw_learning_rate_scale;
                    self.adamw(
                        &AdamwConfig {
                            beta1,
                            beta2,
                            eps,
                            weight_decay,
                            ..AdamwConfig::default()
                        },
                        rate,
                        g,
                    );
                }
            },
            OptimizerConfig::Sgd(c) => self.sgd(c, rate, g),
        }
    }

    /// Computes p ← (1 − ηλ)p − ηu.
    fn apply(&mut self, rate: f64, decay: f64, u: impl Iterator<Item = f64>) {
        self.p
            .iter_mut()
            .zip(u)
            .for_each(|(p, u)| *p = (1.0 - rate * decay) * *p - rate * u);
    }

    /// Applies arXiv:1711.05101, algorithm 2, with ε/√(1 − β2ᵗ) for its ε.
    fn adamw(&mut self, c: &AdamwConfig, rate: f64, g: &[f64]) {
        self.first = averaged(&self.first, g.iter().copied(), c.beta1);
        self.second = averaged(&self.second, g.iter().map(|g| g * g), c.beta2);
        let (c1, c2) = (
            1.0 - c.beta1.powf(self.t as f64),
            1.0 - c.beta2.powf(self.t as f64),
        );
        let u: Vec<f64> = self
            .first
            .iter()
            .zip(&self.second)
            .map(|(m, v)| (m / c1) / ((v / c2).sqrt() + c.eps / c2.sqrt()))
            .collect();
        self.apply(rate, c.weight_decay, u.into_iter());
    }

    /// Applies arXiv:1804.04235, algorithms 4 and 5, with row and column sums.
    fn adafactor(&mut self, c: &AdafactorConfig, rate: f64, g: &[f64]) {
        let beta = 1.0 - (self.t as f64).powf(c.decay_rate).max(1.0 - c.beta2_cap);
        let q: Vec<f64> = g.iter().map(|g| g * g + c.eps1).collect();
        let mut u: Vec<f64> = match self.matrix() {
            None => {
                self.first = averaged(&self.first, q.into_iter(), beta);
                g.iter()
                    .zip(&self.first)
                    .map(|(g, v)| g / v.sqrt())
                    .collect()
            }
            Some((_, b)) => {
                self.first = averaged(&self.first, q.chunks(b).map(|row| row.iter().sum()), beta);
                self.second = averaged(
                    &self.second,
                    (0..b).map(|j| q.iter().skip(j).step_by(b).sum()),
                    beta,
                );
                let total: f64 = self.first.iter().sum();
                let v = |i: usize| self.first[i / b] * self.second[i % b] / total;
                g.iter().enumerate().map(|(i, g)| g / v(i).sqrt()).collect()
            }
        };
        let n = u.len() as f64;
        let clip = ((squares(u.iter().copied()) / n).sqrt() / c.clip_threshold).max(1.0);
        u.iter_mut().for_each(|u| *u /= clip);
        let rms = (squares(self.p.iter().copied()) / n).sqrt();
        let rate = if c.relative_step {
            rate * rms.max(c.eps2)
        } else {
            rate
        };
        self.apply(rate, c.weight_decay, u.into_iter());
    }

    /// Applies arXiv:2412.05270, algorithm 1, with the growth limiter of arXiv:2410.01623 if there is one.
    fn apollo(&mut self, c: &ApolloConfig, rate: f64, g: &[f64], (a, b): (usize, usize)) {
        let (left, dim, channels) = if a < b { (true, a, b) } else { (false, b, a) };
        let rank = rank_of(c, dim);
        let of_g = |i: usize, channel: usize| {
            if left {
                g[i * b + channel]
            } else {
                g[channel * b + i]
            }
        };
        let (key, refresh) = (
            random::key(random::PROJECTOR, self.seed, NAME),
            (self.t - 1) / c.update_steps,
        );
        let projector = match c.projector {
            ProjectorKind::Normal => apollo_project::normal(key, refresh, dim, rank),
            ProjectorKind::Orthogonal => orthogonal(key, refresh, dim, rank),
        };
        let sigma = (dim as f64 / rank as f64).sqrt();
        let project = |j: usize, c: usize| {
            sigma * compensated((0..dim).map(|i| f64::from(projector[i * rank + j]) * of_g(i, c)))
        };
        let given = |j: usize, c: usize| {
            self.projected
                .as_ref()
                .map(|projected| projected[j * channels + c])
        };
        let entry = |at: usize| {
            given(at % rank, at / rank).unwrap_or_else(|| project(at % rank, at / rank))
        };
        let projected: Vec<f64> = (0..channels * rank).map(entry).collect();
        self.first = averaged(&self.first, projected.iter().copied(), c.beta1);
        self.second = averaged(&self.second, projected.iter().map(|r| r * r), c.beta2);
        let adapted: Vec<f64> = self
            .first
            .iter()
            .zip(&self.second)
            .map(|(m, v)| m / (v.sqrt() + c.eps))
            .collect();
        let size = |values: &[f64]| squares(values.iter().copied()).sqrt();
        let scales: Vec<f64> = if c.mini {
            vec![size(&adapted) / (size(&projected) + 1e-8); channels]
        } else {
            adapted
                .chunks(rank)
                .zip(projected.chunks(rank))
                .map(|(a, r)| size(a) / (size(r) + 1e-8))
                .collect()
        };
        let root = match c.scale {
            ApolloScale::Auto => dim as f64 / rank as f64,
            ApolloScale::Square(scale) => scale,
        }
        .sqrt();
        let (front, back) = if c.scale_front {
            (root, 1.0)
        } else {
            (1.0, root)
        };
        let mut u: Vec<f64> = (0..g.len())
            .map(|at| g[at] * scales[if left { at % b } else { at / b }] * front)
            .collect();
        let n = size(&u);
        let started = self.norm >= 0.01 * ((rank * channels) as f64).sqrt() * front;
        let limit = c
            .growth_limit
            .filter(|_| started)
            .map_or(1.0, |most| (n / (self.norm + 1e-8)).max(most) / most);
        self.norm = n / limit;
        let t = self.t as f64;
        let corrected = back / limit * (1.0 - c.beta2.powf(t)).sqrt() / (1.0 - c.beta1.powf(t));
        u.iter_mut().for_each(|u| *u *= corrected);
        self.apply(rate, c.weight_decay, u.into_iter());
    }

    /// Applies the momentum of Sutskever et al. 2013 without dampening, with decoupled decay.
    fn sgd(&mut self, c: &SgdConfig, rate: f64, g: &[f64]) {
        self.first.resize(g.len(), 0.0);
        self.first
            .iter_mut()
            .zip(g)
            .for_each(|(b, g)| *b = c.momentum * *b + g);
        let u: Vec<f64> = self
            .first
            .iter()
            .zip(g)
            .map(|(b, g)| if c.nesterov { g + c.momentum * b } else { *b })
            .collect();
        self.apply(rate, c.weight_decay, u.into_iter());
    }
}

/// Returns the rank for a matrix with this shorter side.
fn rank_of(c: &ApolloConfig, side: usize) -> usize {
    let share = if c.mini { 1 } else { (side / 4).clamp(1, 128) };
    c.rank.map_or(share, |rank| rank as usize)
}

/// Returns the new average.
fn averaged(state: &[f64], new: impl Iterator<Item = f64>, beta: f64) -> Vec<f64> {
    let old = state.iter().copied().chain(std::iter::repeat(0.0));
    old.zip(new)
        .map(|(old, new)| beta * old + (1.0 - beta) * new)
        .collect()
}

/// Computes Neumaier's sum: otherwise gradients at their bound of 1e15 that cancel would leave no digit of the others in f64.
fn compensated(terms: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0f64, 0f64);
    for x in terms {
        let next = sum + x;
        lost += if sum.abs() >= x.abs() {
            (sum - next) + x
        } else {
            (x - next) + sum
        };
        sum = next;
    }
    sum + lost
}

/// Makes a random rule of this kind.
fn random_rule(kind: &str, rate: f64, dice: &mut Dice) -> OptimizerConfig {
    let betas = |dice: &mut Dice| (1.0 - dice.log(5e-3, 1.0), 1.0 - dice.log(5e-4, 0.5));
    // Decay of up to a hundredth of the parameter per step: beyond, the displacement is little else than the decay of the start.
    let decay = if dice.one_in(3) {
        0.0
    } else {
        dice.log(1e-3, 0.01 / rate)
    };
    let mut keys = json!({"type": kind, "weight_decay": decay});
    match kind {
        "adamw" => {
            let (beta1, beta2) = betas(dice);
            (keys["beta1"], keys["beta2"], keys["eps"]) =
                (json!(beta1), json!(beta2), json!(dice.log(1e-12, 1e-2)));
        }
        "adafactor" => {
            (keys["decay_rate"], keys["beta2_cap"]) = (
                json!(-dice.between(0.3, 1.5)),
                json!(1.0 - dice.log(1e-3, 0.5)),
            );
            let eps1 = if dice.one_in(2) {
                1e-30
            } else {
                dice.log(1e-30, 1e-6)
            };
            (keys["clip_threshold"], keys["eps1"], keys["eps2"]) = (
                json!(dice.log(0.1, 100.0)),
                json!(eps1),
                json!(dice.log(1e-4, 1e-1)),
            );
            // Its rate multiplies the parameter: a small rate moves it less than f32 can represent, and without clipping it grows beyond all bounds.
            keys["relative_step"] = json!(rate > 2e-2);
            if rate > 2e-2 {
                keys["clip_threshold"] = json!(dice.log(0.3, 1.0));
            }
        }
        "apollo" | PRODUCT => {
            let (beta1, beta2) = betas(dice);
            (keys["beta1"], keys["beta2"], keys["eps"]) =
                (json!(beta1), json!(beta2), json!(dice.log(1e-8, 1e-2)));
            (keys["mini"], keys["rank"]) = (json!(dice.one_in(3)), json!(1 + dice.below(4)));
            if kind == PRODUCT {
                (keys["type"], keys["rank"]) = (json!("apollo"), json!(8 + dice.below(8)));
            }
            (keys["scale"], keys["scale_front"]) =
                (json!(dice.log(0.1, 128.0)), json!(dice.one_in(2)));
            if dice.one_in(2) {
                keys["scale"] = json!("auto");
            }
            // Without a limit, with the default, or with another.
            if dice.one_in(2) {
                keys["growth_limit"] = if dice.one_in(2) {
                    json!(null)
                } else {
                    json!(1.0 + dice.log(1e-3, 1.0))
                };
            }
            keys["adamw_learning_rate_scale"] = json!(dice.log(0.1, 1.0));
            if dice.one_in(4) && kind != PRODUCT {
                // At most a quarter of a side of 16.
                keys["rank"] = json!(null);
            }
            keys["update_steps"] = json!(1 + dice.below(60));
            keys["projector"] = json!(if dice.one_in(2) {
                "normal"
            } else {
                "orthogonal"
            });
        }
        _ => {
            let momentum = if dice.one_in(3) {
                0.0
            } else {
                dice.between(0.1, 0.99)
            };
            (keys["momentum"], keys["nesterov"]) =
                (json!(momentum), json!(momentum > 0.0 && dice.one_in(2)));
        }
    }
    rule(keys)
}

/// Kind of an element's gradients.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Ordinary,
    Zero,
    Tiny,
    /// 1e30 now and then.
    Huge,
}

/// APOLLO from rank 8 on, which projects with an ordinary product.
const PRODUCT: &str = "apollo by a product";

/// Makes the same rule without averaging R over steps, so that m is the R of a step.
fn that_keeps_r(rule: &OptimizerConfig, config: &TrainConfig, info: &ParamInfo) -> Optim {
    let OptimizerConfig::Apollo(apollo) = rule else {
        panic!("APOLLO alone projects")
    };
    let optimizer = OptimizerConfig::Apollo(ApolloConfig {
        beta1: 0.0,
        ..apollo.clone()
    });
    Optim::new(
        &TrainConfig {
            optimizer,
            ..config.clone()
        },
        std::slice::from_ref(info),
    )
    .unwrap()
}

/// Returns R [rank, channels] of the last step.
fn kept(optim: &Optim) -> Vec<f64> {
    let (_, m) = optim
        .state_tensors()
        .into_iter()
        .find(|(name, _)| name.ends_with(":m"))
        .unwrap();
    let bytes = block_on(m.bytes()).unwrap();
    bytemuck::cast_slice::<u8, f32>(&bytes)
        .iter()
        .map(|&r| f64::from(r))
        .collect()
}

/// Result of one configuration.
struct Outcome {
    /// Largest error as a share of the farthest distance of the tensor from its start.
    error: f64,
    what: String,
}

/// Runs one configuration; the optimizer gets `off` times the rate that the reference uses.
fn outcome_of(kind: &str, seed: u64, device: &Device, off: f64) -> Outcome {
    let mut dice = Dice(seed);
    let shapes: [&[usize]; 9] = [
        &[],
        &[7],
        &[33],
        &[5, 3],
        &[3, 6],
        &[16, 24],
        &[24, 9],
        &[8, 8],
        &[2, 5, 4],
    ];
    let of_product: [&[usize]; 9] = [
        &[16, 24],
        &[24, 17],
        &[17, 40],
        &[33, 18],
        &[64, 20],
        &[2, 9, 36],
        &[16, 16],
        &[100, 21],
        &[19, 130],
    ];
    let shape =
        if kind == PRODUCT { of_product } else { shapes }[dice.below(shapes.len())].to_vec();
    let n: usize = shape.iter().product();
    let rate = dice.log(1e-4, 1e-1);
    let rule = random_rule(kind, rate, &mut dice);
    let grad_scale = if dice.one_in(2) {
        1.0
    } else {
        dice.between(0.01, 1.0) as f32
    };
    let size = dice.log(1e-3, 1e2);
    // Starts of the size of what a run moves: f32 cannot hold a displacement of less than 1e-2 of a parameter to 1e-5.
    let reach = if kind == "sgd" { rate * size } else { rate };
    let start: Vec<f32> = (0..n)
        .map(|_| (3.0 * reach * dice.between(-1.0, 1.0)) as f32)
        .collect();
    let mut kinds = |_| match dice.below(12) {
        0 => Kind::Zero,
        1 => Kind::Tiny,
        2 if n > 7 => Kind::Huge,
        _ => Kind::Ordinary,
    };
    let mut kinds: Vec<Kind> = (0..n).map(&mut kinds).collect();
    if shape.len() > 1 && dice.one_in(3) {
        // A row without gradients, as an embedding has.
        kinds[..shape[shape.len() - 1]].fill(Kind::Zero);
    }
    // Decay alone moves a tensor too little to be measured to 1e-5 in f32.
    kinds[n - 1] = Kind::Ordinary;
    let drift: Vec<f64> = (0..n).map(|_| dice.between(-1.0, 1.0)).collect();

    let optimizer = rule.clone();
    let config = TrainConfig {
        optimizer,
        seed,
        learning_rate: rate,
        ..TrainConfig::default()
    };
    let info = ParamInfo {
        name: NAME.into(),
        shape: shape.clone(),
        dtype: DType::F32,
        outside_blocks: false,
    };
    let mut beside = (kind == PRODUCT).then(|| that_keeps_r(&rule, &config, &info));
    let mut optim = Optim::new(&config, &[info]).unwrap();
    let mut p = upload(&start, DType::F32, device);
    let wide = start.iter().map(|&x| f64::from(x)).collect();
    let mut truth = Truth {
        shape: shape.clone(),
        seed,
        t: 0,
        p: wide,
        first: Vec::new(),
        second: Vec::new(),
        norm: 0.0,
        projected: None,
    };
    let mut farthest = vec![0f64; n];
    let gate = Gate::open(grad_scale, &device.inner());
    for step in 0..STEPS {
        if dice.one_in(10) {
            p = optim
                .step_param(NAME, p, None::<Tensor<1>>, rate, &gate)
                .unwrap();
            continue;
        }
        let silent = dice.one_in(20);
        let mut gradient = |i: usize| match kinds[i] {
            Kind::Zero => 0.0,
            _ if silent => 0.0,
            Kind::Tiny => 1e-30 * drift[i],
            Kind::Huge if dice.one_in(25) => 1e30 * drift[i].signum(),
            _ => size * (drift[i] + dice.between(-1.0, 1.0)),
        };
        let g: Vec<f32> = (0..n).map(|i| gradient(i) as f32).collect();
        // A varying schedule: the rate changes at every step.
        let now = rate * (1.0 - 0.5 * step as f64 / STEPS as f64);
        p = optim
            .step_param(
                NAME,
                p,
                Some(upload(&g, DType::F32, device)),
                off * now,
                &gate,
            )
            .unwrap();
        if let Some(beside) = &mut beside {
            let _ = beside
                .step_param(
                    NAME,
                    upload(&start, DType::F32, device),
                    Some(upload(&g, DType::F32, device)),
                    now,
                    &gate,
                )
                .unwrap();
            truth.projected = Some(kept(beside));
        }
        let g: Vec<f64> = g
            .iter()
            .map(|&g| f64::from(g).clamp(-1e15, 1e15) * f64::from(grad_scale))
            .collect();
        truth.step(&rule, now, &g);
        farthest
            .iter_mut()
            .zip(&truth.p)
            .zip(&start)
            .for_each(|((far, p), s)| *far = far.max((p - f64::from(*s)).abs()));
    }
    let found = block_on(read_f32(p)).unwrap();
    // The displacement by a gradient of 1e30 in SGD must not hide the others.
    let apart = |i: usize| kind == "sgd" && kinds[i] == Kind::Huge;
    let share = |values: &dyn Fn(usize) -> f64| {
        let largest = |huge: bool, value: &dyn Fn(usize) -> f64| {
            (0..n)
                .filter(|&i| apart(i) == huge)
                .map(value)
                .fold(
                    0.0,
                    |a: f64, b| if b.is_nan() { f64::INFINITY } else { a.max(b) },
                )
        };
        [false, true].map(|huge| {
            (
                largest(huge, &|i| (values(i) - truth.p[i]).abs()),
                largest(huge, &|i| farthest[i]),
            )
        })
    };
    let worst = |parts: [(f64, f64); 2]| {
        parts
            .into_iter()
            .filter(|(error, _)| *error > 0.0)
            .map(|(error, far)| error / far)
            .fold(0.0, f64::max)
    };
    Outcome {
        error: worst(share(&|i| f64::from(found[i]))),
        what: format!("seed {seed}, {shape:?}, rate {rate:.2e}, gradients {size:.2e}, {rule:?}"),
    }
}

/// PᵀP = 1 for short channels too, whose columns of signs may be in one line or plane.
#[test]
fn orthogonal_projectors_are_orthogonal() {
    let key = random::key(random::PROJECTOR, 7, NAME);
    for (dim, rank) in [(2, 1), (3, 2), (4, 3), (5, 4), (64, 16)] {
        for refresh in 0..5000 / dim as u64 {
            let p = orthogonal(key, refresh, dim, rank);
            for (a, b) in (0..rank).flat_map(|a| (0..rank).map(move |b| (a, b))) {
                let dot: f64 = (0..dim)
                    .map(|i| f64::from(p[i * rank + a]) * f64::from(p[i * rank + b]))
                    .sum();
                let found = (dot - f64::from(u8::from(a == b))).abs();
                // Entries are rounded to f32.
                assert!(
                    found < 3e-7,
                    "refresh {refresh} of [{dim}, {rank}], columns {a} and {b}: {found:e}"
                );
            }
        }
    }
}

/// Error relative to the displacement.
const BOUND: f64 = 1e-5;

fn follows_the_truth(kind: &str, device: &Device, seeds: std::ops::Range<u64>) {
    let mut outcomes: Vec<Outcome> = seeds
        .map(|seed| outcome_of(kind, seed, device, 1.0))
        .collect();
    outcomes.sort_by(|a, b| b.error.total_cmp(&a.error));
    let (count, largest, median) = (
        outcomes.len(),
        outcomes[0].error,
        outcomes[outcomes.len() / 2].error,
    );
    println!(
        "{kind} on {}: {count} configurations, largest error {largest:.1e}, median {median:.1e}",
        device.info().adapter
    );
    assert!(
        largest <= BOUND,
        "{kind} leaves the truth by {largest:.2e}: {}",
        outcomes[0].what
    );
}

#[test]
fn truth_is_left_by_a_rate_of_a_ten_thousandth_too_much() {
    for kind in ["adamw", "adafactor", "apollo", PRODUCT, "sgd"] {
        for seed in 0..10 {
            let Outcome { error, what } = outcome_of(kind, seed, &cpu(), 1.0001);
            assert!(error > BOUND, "{error:.1e}: {what}");
        }
    }
}

/// Runs some of the 200 configurations on each device, and all of them in the full form.
fn on_both(kind: &str) {
    follows_the_truth(kind, &cpu(), 0..if in_full() { 200 } else { 90 });
    if let Some(device) = gpu() {
        follows_the_truth(kind, &device, 0..if in_full() { 200 } else { 30 });
    }
}

#[test]
fn adamw_follows_its_paper_in_float64() {
    on_both("adamw");
    // A device treated as a GPU updates two parameters per dispatch.
    if let Some(device) = as_a_gpu() {
        follows_the_truth("adamw", &device, 0..if in_full() { 200 } else { 30 });
    }
}

#[test]
fn adafactor_follows_its_paper_in_float64() {
    on_both("adafactor");
}

#[test]
fn apollo_follows_its_paper_in_float64() {
    on_both("apollo");
}

#[test]
fn apollo_by_a_product_follows_its_paper_in_float64() {
    on_both(PRODUCT);
}

/// Each element of R is within the bound that any order of an ordinary sum keeps (Higham, Accuracy and Stability of Numerical Algorithms,
/// chapter 3): (dim + 4)·2⁻²⁴·σΣ|p||g|, whatever cancels. A matrix by rows and by columns, of widths that are multiples of 4 and others.
#[test]
fn apollo_projects_within_the_bound_of_a_sum() {
    for device in devices() {
        for (rows, cols, rank) in [
            (24, 17, 8),
            (17, 40, 9),
            (64, 48, 16),
            (40, 300, 32),
            (600, 132, 64),
        ] {
            for cancelling in [false, true] {
                let mut dice = Dice(rows as u64);
                let mut g: Vec<f32> = (0..rows * cols)
                    .map(|_| dice.between(-1.0, 1.0) as f32)
                    .collect();
                if cancelling {
                    // Pairs of the size of the bound on gradients, of both signs, next to each other by rows and by columns.
                    g.iter_mut()
                        .enumerate()
                        .filter(|(at, _)| at % 5 < 2)
                        .for_each(|(at, g)| {
                            *g = if (at / cols + at % cols) % 2 == 0 {
                                9e14
                            } else {
                                -9e14
                            };
                        });
                }
                let rule = rule(json!({"type": "apollo", "rank": rank, "beta1": 0.0}));
                let config = TrainConfig {
                    optimizer: rule.clone(),
                    seed: 5,
                    ..TrainConfig::default()
                };
                let info = ParamInfo {
                    name: NAME.into(),
                    shape: vec![rows, cols],
                    dtype: DType::F32,
                    outside_blocks: false,
                };
                let mut optim = that_keeps_r(&rule, &config, &info);
                let zeros = upload(&vec![0.0; rows * cols], DType::F32, &device);
                let _ = optim
                    .step_param(
                        NAME,
                        zeros,
                        Some(upload(&g, DType::F32, &device)),
                        1e-3,
                        &Gate::open(1.0, &device.inner()),
                    )
                    .unwrap();
                let (by_column, dim, channels) = if rows < cols {
                    (true, rows, cols)
                } else {
                    (false, cols, rows)
                };
                let p =
                    apollo_project::normal(random::key(random::PROJECTOR, 5, NAME), 0, dim, rank);
                let sigma = (dim as f64 / rank as f64).sqrt();
                for (at, found) in kept(&optim).into_iter().enumerate() {
                    let (j, c) = (at / channels, at % channels);
                    let entry = |i: usize| {
                        f64::from(if by_column {
                            g[i * cols + c]
                        } else {
                            g[c * cols + i]
                        })
                    };
                    let term = |i: usize| f64::from(p[i * rank + j]) * entry(i);
                    let truth = sigma * compensated((0..dim).map(term));
                    let bound = (dim + 4) as f64
                        * 2f64.powi(-24)
                        * sigma
                        * (0..dim).map(|i| term(i).abs()).sum::<f64>();
                    assert!(
                        (found - truth).abs() <= bound,
                        "[{rows}, {cols}] rank {rank}: {found:e} for {truth:e}, bound {bound:e}"
                    );
                }
            }
        }
    }
}

#[test]
fn sgd_follows_its_definition_in_float64() {
    on_both("sgd");
}
