use tabtune::kernels::elementwise::{self, BiasParams, Params};
use tabtune::kernels::{Access, Kernel};
use tabtune_tests::kernels::{Case, check, floats, noise, poisoned, words};

/// f32 exp (3 + 2·abs(x) ulp) and division against f64, relative to the RMS of the outputs.
const BOUND: f64 = 1e-5;

fn case(kernel: &'static Kernel, n: usize) -> Case {
    let buffers = kernel.bindings.iter().zip(1..).map(|(binding, seed)| match binding.access {
        Access::Write => poisoned(n),
        _ => words(&noise(n, seed).iter().map(|v| v * 4.0).collect::<Vec<_>>()),
    });
    Case { kernel, buffers: buffers.collect(), params: Params { n: n as u32 }.words(), groups: (n as u32).div_ceil(64) }
}

fn sizes(kernel: &'static Kernel) -> Vec<Case> {
    [1, 255, 256, 257, 4099, 65_536 * 64 + 7].map(|n| case(kernel, n)).into()
}

fn wide_sizes(kernel: &'static Kernel) -> Vec<Case> {
    let wide = |n: usize| Case { groups: (n as u32 / 4).div_ceil(64), ..case(kernel, n) };
    [4, 252, 256, 260, 4100, 65_536 * 256 + 8].map(wide).into()
}

#[test]
fn swiglu_gates() {
    check(&sizes(&elementwise::SWIGLU_FORWARD), BOUND, ("min(-x", "min(x"));
    check(&sizes(&elementwise::SWIGLU_BACKWARD), BOUND, ("1.0 - s", "1.0 + s"));
    check(&wide_sizes(&elementwise::SWIGLU_FORWARD_WIDE), BOUND, ("min(-x", "min(x"));
    check(&wide_sizes(&elementwise::SWIGLU_BACKWARD_WIDE), BOUND, ("1.0 - s", "1.0 + s"));
}

#[test]
fn gelu_is_the_tanh_form() {
    check(&sizes(&elementwise::GELU_FORWARD), BOUND, ("0.044715 * z", "0.044815 * z"));
    check(&sizes(&elementwise::GELU_BACKWARD), BOUND, ("(1.0 - h)", "(1.0 + h)"));
}

#[test]
fn residual_add_adds() {
    check(&sizes(&elementwise::RESIDUAL_ADD), 1e-7, ("x[i] + y[i]", "x[i] - y[i]"));
}

#[test]
fn bias_add_adds_one_bias_per_column() {
    let case = |(n, width): (usize, usize)| Case {
        kernel: &elementwise::BIAS_ADD,
        buffers: vec![words(&noise(n * width, 1)), words(&noise(width, 2))],
        params: BiasParams { n: n as u32, width: width as u32 }.words(),
        groups: ((n * width) as u32).div_ceil(64),
    };
    check(&[(1, 1), (3, 255), (5, 257), (4099, 3)].map(case), 1e-7, ("% params.width", "/ params.width"));
}

#[test]
fn finite_inputs_give_finite_outputs() {
    let extremes = [0.0, 1e-40, 1e-7, 10.0, 13.0, 13.5, 44.0, 88.7, 89.0, 100.0, 1e30];
    let inputs: Vec<f32> = extremes.iter().chain(&[12.0]).flat_map(|&v| [v, -v]).collect();
    let n = inputs.len();
    let Some(gpu) = tabtune_tests::gpu() else { return };
    let gelu = [&elementwise::GELU_FORWARD, &elementwise::GELU_BACKWARD];
    let swiglu = [&elementwise::SWIGLU_FORWARD, &elementwise::SWIGLU_BACKWARD];
    let wide = [&elementwise::SWIGLU_FORWARD_WIDE, &elementwise::SWIGLU_BACKWARD_WIDE];
    for kernel in gelu.into_iter().chain(swiglu).chain(wide) {
        let mut case = case(kernel, n);
        case.buffers[0] = words(&inputs);
        for found in [case.twin(), case.device(kernel, &gpu.inner())] {
            assert!(found.iter().all(|buffer| floats(buffer).iter().all(|v| v.is_finite())), "{}: {found:x?}", kernel.name);
        }
        let difference = case.difference(kernel, &gpu.inner());
        assert!(difference <= 1e-5, "{}: {difference:e}", kernel.name);
    }
}
