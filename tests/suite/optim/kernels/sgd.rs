use super::gate::open;
use tabtune::gpu::noise::Noise;
use tabtune::optim::sgd::{kernel as sgd, momentum as sgd_momentum};
use tabtune_tests::kernels::{Case, check, noise, packed, place, words};

/// One or two multiply-adds, which a driver may contract.
const BOUND: f64 = 1e-6;

fn values(n: usize, seed: u32, rounding: u32) -> Vec<u32> {
    if rounding == 0 {
        words(&noise(n, seed))
    } else {
        packed(&noise(n, seed)).0
    }
}

pub(super) fn plain(n: usize, rounding: u32) -> Case {
    let (rate, d) = (0.05, 0.99);
    let params = sgd::Params {
        n,
        rate,
        d,
        // As in a tensor of some rows.
        noise: Noise {
            first_pair: 9,
            ..place(rounding)
        },
    };
    Case::new(
        &sgd::KERNEL,
        [words(&noise(n, 2)), open(0.5)],
        [values(n, 1, rounding)],
        &params,
        n.div_ceil(512) as u32,
    )
}

pub(super) fn momentum(n: usize, rounding: u32, nesterov: bool) -> Case {
    let (rate, d, momentum) = (0.05, 0.99, 0.9);
    let params = sgd_momentum::Params {
        n,
        rate,
        d,
        momentum,
        nesterov,
        // As in a tensor of some rows.
        noise: Noise {
            first_pair: 9,
            ..place(rounding)
        },
    };
    let written = [values(n, 1, rounding), values(n, 3, rounding)];
    Case::new(
        &sgd_momentum::KERNEL,
        [words(&noise(n, 2)), open(0.5)],
        written,
        &params,
        n.div_ceil(512) as u32,
    )
}

const SIZES: [usize; 6] = [1, 2, 255, 256, 257, 4099];

#[test]
fn sgd_equals_its_twin() {
    check(
        &SIZES.map(|n| plain(n, 0)),
        BOUND,
        ("params.d - params.rate", "params.d + params.rate"),
    );
    let cases: Vec<Case> = SIZES
        .into_iter()
        .flat_map(|n| [1, 2].map(|rounding| plain(n, rounding)))
        .collect();
    check(&cases, 0.0, ("words.z", "words.x"));
}

#[test]
fn sgd_momentum_equals_its_twin() {
    let cases: Vec<Case> = SIZES
        .into_iter()
        .flat_map(|n| [false, true].map(|nesterov| momentum(n, 0, nesterov)))
        .collect();
    check(
        &cases,
        BOUND,
        ("gi + params.momentum * b", "gi - params.momentum * b"),
    );
    let cases: Vec<Case> = SIZES
        .into_iter()
        .flat_map(|n| [1, 2].map(|rounding| momentum(n, rounding, true)))
        .collect();
    check(&cases, 0.0, ("r1.x, words.x", "r1.x, words.z"));
}
