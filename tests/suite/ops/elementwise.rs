use tabtune::gpu::{Access, Kernel, KernelParams};
use tabtune::ops::elementwise::{self, BiasParams};
use tabtune::ops::{packed_qkv, residual};
use tabtune_tests::kernels::{Case, check, floats, noise, poisoned, words};

/// f32 exp (3 + 2·abs(x) ulp) and division compared with f64, relative to the RMS of the outputs.
const BOUND: f64 = 1e-5;

fn case<P: KernelParams, const R: usize, const W: usize>(
    kernel: &'static Kernel<P, R, W>,
    n: usize,
) -> Case {
    let values = |place: usize| {
        words(
            &noise(n, place as u32 + 1)
                .iter()
                .map(|v| v * 4.0)
                .collect::<Vec<_>>(),
        )
    };
    let filled = |place: usize| kernel.any().bindings[place].access == Access::Write;
    let read = std::array::from_fn(values);
    let written = std::array::from_fn(|i| {
        if filled(R + i) {
            poisoned(n)
        } else {
            values(R + i)
        }
    });
    Case::new(
        kernel,
        read,
        written,
        &P::from_words(&[n as u32]),
        (n as u32).div_ceil(64),
    )
}

fn sizes<P: KernelParams, const R: usize, const W: usize>(
    kernel: &'static Kernel<P, R, W>,
) -> Vec<Case> {
    [1, 255, 256, 257, 4099, 65_536 * 64 + 7]
        .map(|n| case(kernel, n))
        .into()
}

fn wide_sizes<P: KernelParams, const R: usize, const W: usize>(
    kernel: &'static Kernel<P, R, W>,
) -> Vec<Case> {
    let wide = |n: usize| Case {
        groups: (n as u32 / 4).div_ceil(64),
        ..case(kernel, n)
    };
    [4, 252, 256, 260, 4100, 65_536 * 256 + 8].map(wide).into()
}

#[test]
fn swiglu_gates() {
    check(
        &sizes(&elementwise::SWIGLU_FORWARD),
        BOUND,
        ("min(-x", "min(x"),
    );
    check(
        &sizes(&elementwise::SWIGLU_BACKWARD),
        BOUND,
        ("1.0 - s", "1.0 + s"),
    );
    check(
        &wide_sizes(&elementwise::SWIGLU_FORWARD_WIDE),
        BOUND,
        ("min(-x", "min(x"),
    );
    check(
        &wide_sizes(&elementwise::SWIGLU_BACKWARD_WIDE),
        BOUND,
        ("1.0 - s", "1.0 + s"),
    );
}

#[test]
fn gelu_is_the_tanh_form() {
    check(
        &sizes(&elementwise::GELU_FORWARD),
        BOUND,
        ("0.044715 * z", "0.044815 * z"),
    );
    check(
        &sizes(&elementwise::GELU_BACKWARD),
        BOUND,
        ("(1.0 - h)", "(1.0 + h)"),
    );
}

#[test]
fn residual_add_adds() {
    check(
        &sizes(&residual::RESIDUAL_ADD),
        1e-7,
        ("x[i] + y[i]", "x[i] - y[i]"),
    );
}

#[test]
fn bias_add_adds_one_bias_per_column() {
    let case = |(n, width): (usize, usize)| {
        let params = BiasParams { n, width };
        let (b, x) = (words(&noise(width, 2)), words(&noise(n * width, 1)));
        Case::new(
            &elementwise::BIAS_ADD,
            [b],
            [x],
            &params,
            ((n * width) as u32).div_ceil(64),
        )
    };
    check(
        &[(1, 1), (3, 255), (5, 257), (4099, 3)].map(case),
        1e-7,
        ("% params.width", "/ params.width"),
    );
}

#[test]
fn gelu_bias_is_the_form_of_the_sum() {
    let case = |(n, width): (usize, usize)| {
        let params = BiasParams { n, width };
        let (b, x) = (words(&noise(width, 2)), words(&noise(n * width, 1)));
        let written = [x, poisoned(n * width)];
        Case::new(
            &elementwise::GELU_BIAS_FORWARD,
            [b],
            written,
            &params,
            ((n * width) as u32).div_ceil(64),
        )
    };
    check(
        &[(1, 1), (3, 255), (5, 257), (4099, 3)].map(case),
        BOUND,
        ("y[i] = v * half", "y[i] = x[i] + half"),
    );
    check(
        &[(1, 1), (3, 255), (5, 257), (4099, 3)].map(case),
        BOUND,
        ("% params.width", "/ params.width"),
    );
}

#[test]
fn packed_qkv_is_split_and_joined() {
    let (split, join) = (&packed_qkv::SPLIT, &packed_qkv::JOIN);
    let shapes = [(1, 1), (3, 85), (5, 257), (300, 4)];
    let params = |(n, width): (usize, usize)| {
        (
            packed_qkv::Params { n, width },
            ((3 * n * width) as u32).div_ceil(64),
        )
    };
    let apart = |s: (usize, usize)| {
        let ((params, groups), n) = (params(s), s.0 * s.1);
        let read = [words(&noise(3 * n, 1)), words(&noise(3 * s.1, 2))];
        Case::new(split, read, [(); 3].map(|()| poisoned(n)), &params, groups)
    };
    check(&shapes.map(apart), 1e-7, ("b[column]", "b[column % width]"));
    let together = |s: (usize, usize)| {
        let ((params, groups), n) = (params(s), s.0 * s.1);
        Case::new(
            join,
            [1, 2, 3].map(|seed| words(&noise(n, seed))),
            [poisoned(3 * n)],
            &params,
            groups,
        )
    };
    check(
        &shapes.map(together),
        0.0,
        ("switch column / width", "switch (column + 1u) / width"),
    );
}

#[test]
fn finite_inputs_give_finite_outputs() {
    let extremes = [
        0.0, 1e-40, 1e-7, 10.0, 13.0, 13.5, 44.0, 88.7, 89.0, 100.0, 1e30,
    ];
    let inputs: Vec<f32> = extremes
        .iter()
        .chain(&[12.0])
        .flat_map(|&v| [v, -v])
        .collect();
    let n = inputs.len();
    let Some(gpu) = tabtune_tests::gpu() else {
        return;
    };
    // Each with the index of the input that is extreme: x, or the gate.
    let cases = [
        (case(&elementwise::GELU_FORWARD, n), 0),
        (case(&elementwise::GELU_BACKWARD, n), 1),
        (case(&elementwise::SWIGLU_FORWARD, n), 0),
        (case(&elementwise::SWIGLU_BACKWARD, n), 1),
        (case(&elementwise::SWIGLU_FORWARD_WIDE, n), 0),
        (case(&elementwise::SWIGLU_BACKWARD_WIDE, n), 1),
    ];
    for (mut case, extreme) in cases {
        let kernel = case.kernel;
        case.buffers[extreme] = words(&inputs);
        for found in [case.twin(), case.device(kernel, &gpu.inner())] {
            assert!(
                found
                    .iter()
                    .all(|buffer| floats(buffer).iter().all(|v| v.is_finite())),
                "{}: {found:x?}",
                kernel.name
            );
        }
        let difference = case.difference(kernel, &gpu.inner());
        assert!(difference <= 1e-5, "{}: {difference:e}", kernel.name);
    }
}
