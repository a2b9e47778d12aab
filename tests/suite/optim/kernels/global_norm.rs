use tabtune::optim::norm::{blocks as global_norm, tree as sum_tree};
use tabtune_tests::kernels::{Case, check, noise, poisoned, words};

/// A device's sum may differ from its twin by 2e-6 relative (shaders/README.md, "Block tree").
const BOUND: f64 = 2e-6;

fn squares(n: usize) -> Case {
    let blocks = n.div_ceil(256);
    let params = global_norm::Params { n: n as u32, first: 3 };
    let groups = n.div_ceil(global_norm::ELEMENTS) as u32;
    Case::new(&global_norm::KERNEL, [words(&noise(n, 1))], [poisoned(blocks + 5)], &params, groups)
}

fn tree(n: usize) -> Case {
    let outputs = n.div_ceil(sum_tree::VALUES);
    let x = noise(n, 1).into_iter().map(f32::abs).collect::<Vec<f32>>();
    let params = sum_tree::Params { n: n as u32 };
    Case::new(&sum_tree::KERNEL, [words(&x)], [poisoned(outputs)], &params, outputs as u32)
}

#[test]
fn global_norm_sums_blocks_and_leaves_other_partials() {
    let cases: Vec<Case> = [1, 255, 256, 257, 4099, 1_000_003].map(squares).into();
    check(&cases, BOUND, ("return x * x", "return x"));
    check(&cases, BOUND, ("params.first + block", "block"));
}

#[test]
fn global_norm_shows_a_single_nan_or_infinity() {
    let with = |value: f32| {
        let mut case = squares(70_000);
        case.buffers[0][69_000] = value.to_bits();
        case
    };
    check(&[with(f32::NAN), with(f32::INFINITY), with(1e30)], BOUND, ("bounded(g[i])", "g[i]"));
}

#[test]
fn sum_tree_sums() {
    let cases: Vec<Case> = [1, 255, 256, 257, 4099, 65_536, 65_537, 1_000_003].map(tree).into();
    check(&cases, BOUND, ("block(k + 128u, done)", "block(k + 64u, done)"));
}
