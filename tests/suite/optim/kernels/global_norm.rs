use tabtune::optim::norm::{blocks as global_norm, tree as sum_tree};
use tabtune_tests::kernels::{Case, check, noise, poisoned, words};

/// A device's sum may differ from its twin by 2e-6 relative (shaders/README.md, "Block tree").
const BOUND: f64 = 2e-6;

fn squares(n: usize) -> Case {
    let blocks = n.div_ceil(256);
    let params = global_norm::Params { n, first: 3 };
    let groups = n.div_ceil(global_norm::ELEMENTS) as u32;
    Case::new(
        &global_norm::KERNEL,
        [words(&noise(n, 1))],
        [poisoned(blocks + 5)],
        &params,
        groups,
    )
}

/// Makes a launch with six gradients, whose partials are written one after another.
fn six(lengths: [usize; 6]) -> Case {
    let mut end = 2;
    let places = lengths.map(|n| {
        end += n.div_ceil(256);
        (n, end - n.div_ceil(256))
    });
    let groups = lengths
        .iter()
        .map(|n| n.div_ceil(global_norm::ELEMENTS) as u32)
        .sum();
    let mut seed = 0;
    let gradients = lengths.map(|n| {
        seed += 1;
        words(&noise(n, seed))
    });
    Case::new(
        &global_norm::SIX,
        gradients,
        [poisoned(end + 3)],
        &global_norm::SixParams::of(places),
        groups,
    )
}

fn tree(n: usize) -> Case {
    let outputs = n.div_ceil(sum_tree::VALUES);
    let x = noise(n, 1).into_iter().map(f32::abs).collect::<Vec<f32>>();
    let params = sum_tree::Params { n };
    Case::new(
        &sum_tree::KERNEL,
        [words(&x)],
        [poisoned(outputs)],
        &params,
        outputs as u32,
    )
}

#[test]
fn global_norm_sums_blocks_and_leaves_other_partials() {
    let cases: Vec<Case> = [1, 255, 256, 257, 4099, 1_000_003].map(squares).into();
    check(&cases, BOUND, ("return x * x", "return x"));
    check(&cases, BOUND, ("share.first + block", "block"));
}

#[test]
fn global_norm_sums_six_at_once() {
    let cases = [
        [1, 2, 3, 4, 5, 6],
        [256, 257, 2048, 2049, 1, 4099],
        [70_001, 1, 4096, 5000, 255, 12_000],
    ]
    .map(six);
    check(
        &cases,
        BOUND,
        (
            "Share(3u, params.n3, params.first3",
            "Share(3u, params.n3, params.first2",
        ),
    );
    check(&cases, BOUND, ("return g5[i]", "return 2.0 * g5[i]"));
    // The same as for one gradient alone: the norm does not depend on the kernel that a gradient was in.
    let Some(device) = tabtune_tests::gpu() else {
        return;
    };
    let case = six([70_001, 1, 4096, 5000, 255, 12_000]);
    let [whole] = &case.device(case.kernel, &device.inner())[..] else {
        panic!("one buffer is written")
    };
    let alone = Case::new(
        &global_norm::KERNEL,
        [case.buffers[0].clone()],
        [poisoned(276)],
        &global_norm::Params {
            n: 70_001,
            first: 2,
        },
        70_001usize.div_ceil(global_norm::ELEMENTS) as u32,
    );
    assert_eq!(
        alone.device(alone.kernel, &device.inner())[0][2..],
        whole[2..276]
    );
}

#[test]
fn global_norm_shows_a_single_nan_or_infinity() {
    let with = |value: f32| {
        let mut case = squares(70_000);
        case.buffers[0][69_000] = value.to_bits();
        case
    };
    check(
        &[with(f32::NAN), with(f32::INFINITY), with(1e30)],
        BOUND,
        (
            "bounded(value(share.gradient, i))",
            "value(share.gradient, i)",
        ),
    );
}

#[test]
fn sum_tree_sums() {
    let cases: Vec<Case> = [1, 255, 256, 257, 4099, 65_536, 65_537, 1_000_003]
        .map(tree)
        .into();
    check(&cases, BOUND, ("fourth += pair", "fourth -= pair"));
}
