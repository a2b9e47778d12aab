//! The same bits for every workgroup size, split of a dispatch, and order of the tensors (shaders/README.md, "Noise",
//! "Block tree").

use burn::tensor::{DType, Device as TensorDevice};
use tabtune::gpu::AnyKernel;
use tabtune::ops::cast_bf16;
use tabtune::optim::adafactor::moments as adafactor_moments;
use tabtune::optim::adamw::{kernel as adamw, packed as adamw_bf16};
use tabtune::optim::apollo::{
    apply as apollo_apply, combine as apollo_combine, project as apollo_project,
};
use tabtune::optim::norm::{blocks as global_norm, tree as sum_tree};
use tabtune::optim::sgd::{kernel as sgd, momentum as sgd_momentum};
use tabtune_tests::kernels::{Case, mutant, noise, packed, place, poisoned, words};
use tabtune_tests::{cpu, gpu};

use super::kernels::adafactor::{self, positive};
use super::kernels::gate::open;
use super::{Run, infos, rules};

/// Returns the kernel with workgroups of `size`.
fn resized(kernel: &'static AnyKernel, size: u32) -> &'static AnyKernel {
    let constant = |size: u32| format!("const SIZE: u32 = {size}u;");
    let own = kernel.workgroup;
    let resized = |text: &'static str| -> &'static str {
        let text = text.replace(&constant(own), &constant(size)).replace(
            &format!("@workgroup_size({own})"),
            &format!("@workgroup_size({size})"),
        );
        text.replace(&format!("lane, {own}u)"), &format!("lane, {size}u)"))
            .leak()
    };
    let (source, entry) = (resized(kernel.source), kernel.entry.map(resized));
    assert!(
        source != kernel.source || entry != kernel.entry,
        "{}",
        kernel.name
    );
    Box::leak(Box::new(AnyKernel {
        name: format!("{} by {size}", kernel.name).leak(),
        source,
        entry,
        workgroup: size,
        ..*kernel
    }))
}

/// Makes cases of kernels whose workgroups share work.
fn shared_work() -> Vec<Case> {
    let (rows, cols, n) = (300, 1100, 330_000);
    let project = apollo_project::Params {
        channels: cols,
        dim: rows,
        rank: 3,
        channel_stride: 1,
        dim_stride: cols,
        given: false,
        sigma: 10.0,
        unit: apollo_project::unit(300),
        w1: 0.1,
        w2: 0.01,
        eps: 1e-6,
        key0: 7,
        key1: 11,
        refresh_low: 2,
        refresh_high: 0,
    };
    let combine = apollo_combine::Params {
        channels: cols,
        mini: true,
        front: 2.0,
        threshold: 0.5,
        gamma: 1.01,
    };
    let (shape, vector) = ((rows, cols), 100_001);
    let g = words(&noise(n, 1));
    vec![
        Case::new(
            &global_norm::KERNEL,
            [g.clone()],
            [poisoned(1290)],
            &global_norm::Params { n, first: 0 },
            162,
        ),
        Case::new(
            &sum_tree::KERNEL,
            [g.clone()],
            [poisoned(6)],
            &sum_tree::Params { n },
            6,
        ),
        adafactor::sums(shape),
        adafactor::norm(shape, false),
        adafactor::apply(shape, 2, true),
        adafactor::vector_moments(vector),
        adafactor::vector_apply(vector, 2),
        Case::new(
            &apollo_project::KERNEL,
            [g, vec![0], open(0.5)],
            [words(&noise(3300, 2)), positive(3300, 3), poisoned(4400)],
            &project,
            18,
        ),
        Case::new(
            &apollo_combine::KERNEL,
            [positive(4400, 1), open(1.0)],
            [vec![0x3f80_0000], poisoned(2)],
            &combine,
            1,
        ),
    ]
}

/// Number of elements in the tensor that the parts below are cut from.
const WHOLE: usize = 280_004;

fn part(first: usize, n: usize, seed: u32) -> Vec<f32> {
    noise(WHOLE, seed)[first..first + n].to_vec()
}

fn roots(first: usize, n: usize) -> Vec<f32> {
    part(first, n, 4).into_iter().map(f32::abs).collect()
}

fn adamw_pairs(n: usize) -> Case {
    let noise = place(2);
    let params = adamw_bf16::Params {
        n,
        w1: 0.1,
        w2: 1e-3,
        d: 0.999,
        alpha: 1e-2,
        eps: 1e-6,
        noise,
    };
    let [p, m] = [1, 3].map(|seed| packed(&part(0, n, seed)).0);
    let (read, written) = (
        [words(&part(0, n, 2)), vec![0], open(0.75)],
        [p, m, packed(&roots(0, n)).0],
    );
    Case::new(
        &adamw_bf16::KERNEL,
        read,
        written,
        &params,
        (n as u32).div_ceil(2),
    )
}

fn sgd_pairs(n: usize) -> Case {
    let params = sgd::Params {
        n,
        rate: 0.05,
        d: 0.99,
        noise: place(2),
    };
    Case::new(
        &sgd::KERNEL,
        [words(&part(0, n, 2)), open(0.5)],
        [packed(&part(0, n, 1)).0],
        &params,
        (n as u32).div_ceil(2),
    )
}

fn momentum_pairs(n: usize) -> Case {
    let (rate, d, momentum) = (0.05, 0.99, 0.9);
    let params = sgd_momentum::Params {
        n,
        rate,
        d,
        momentum,
        nesterov: true,
        noise: place(2),
    };
    let [p, momentum] = [1, 3].map(|seed| packed(&part(0, n, seed)).0);
    Case::new(
        &sgd_momentum::KERNEL,
        [words(&part(0, n, 2)), open(0.5)],
        [p, momentum],
        &params,
        (n as u32).div_ceil(2),
    )
}

/// Makes a launch for elements `first` … `first + n` of a larger tensor; `first` is even. Its noise starts at the pair of `first`.
fn cast_pairs(first: usize, n: usize) -> Case {
    let params = cast_bf16::Params {
        n,
        stream: 2,
        first_pair_low: first as u32 / 2,
        first_pair_high: 0,
        noise: place(2),
    };
    let (read, written) = (
        [words(&part(first, n, 1)), vec![0]],
        [poisoned(n.div_ceil(2))],
    );
    Case::new(
        &cast_bf16::KERNEL,
        read,
        written,
        &params,
        (n as u32).div_ceil(2),
    )
}

/// Runs the case's threads, one per group of the case, in workgroups of the kernel's size.
fn spread(case: &Case, kernel: &'static AnyKernel, device: &TensorDevice) -> Vec<Vec<u32>> {
    let (buffers, params) = (case.buffers.clone(), case.params.clone());
    Case {
        kernel,
        buffers,
        params,
        groups: case.groups.div_ceil(kernel.workgroup),
    }
    .device(kernel, device)
}

/// Makes cases of kernels whose threads are independent, for [`spread`].
fn alone() -> Vec<Case> {
    let n = 200_000;
    let adamw = |kernel, n: usize| {
        let params = adamw::Params {
            n,
            w1: 0.1,
            w2: 1e-3,
            d: 0.999,
            alpha: 1e-2,
            eps: 1e-6,
        };
        let [p, g, m] = [1, 2, 3].map(|seed| words(&part(0, n, seed)));
        Case::new(
            kernel,
            [g, open(0.75)],
            [p, m, words(&roots(0, n))],
            &params,
            n as u32,
        )
    };
    let (rows, cols, channels) = (500, 400, 500);
    let apply = apollo_apply::Params {
        n,
        cols,
        channels_are_rows: true,
        mini: false,
        front: 2.0,
        back: 3.0,
        d: 0.999,
        alpha: 0.01,
        noise: place(2),
    };
    // Statistics of two rows, so long that a tree of blocks adds their parts, and of as many columns.
    let moments = adafactor_moments::Params {
        rows: 2,
        cols: 70_000,
        w: 0.3,
    };
    let (across, down) = (70_000usize.div_ceil(64), 1);
    assert_eq!(rows * cols, n);
    let mut cases = vec![
        adamw_pairs(n),
        sgd_pairs(n),
        momentum_pairs(n),
        cast_pairs(0, n),
    ];
    cases.extend([
        adamw(&adamw::KERNEL, 70_003),
        Case {
            groups: 70_001,
            ..adamw(&adamw::WIDE, 280_004)
        },
        Case::new(
            &apollo_apply::KERNEL,
            [
                words(&part(0, n, 1)),
                positive(4 * channels, 3),
                words(&[0.7, 1.25]),
                open(0.5),
            ],
            [packed(&part(0, n, 2)).0],
            &apply,
            n as u32 / 2,
        ),
        Case::new(
            &adafactor_moments::KERNEL,
            [
                positive(2 * across, 1),
                positive(down * 70_000, 2),
                open(1.0),
            ],
            [positive(2, 3), positive(70_000, 4)],
            &moments,
            70_002,
        ),
    ]);
    cases
}

#[test]
fn workgroup_size_does_not_show() {
    let Some(device) = gpu().map(|device| device.inner()) else {
        return;
    };
    let same = |kernel: &'static AnyKernel, bits: &dyn Fn(&'static AnyKernel) -> Vec<Vec<u32>>| {
        let expected = bits(kernel);
        for size in [64, 128, 256]
            .into_iter()
            .filter(|&size| size != kernel.workgroup)
        {
            assert!(
                bits(resized(kernel, size)) == expected,
                "{} by {size}",
                kernel.name
            );
        }
    };
    shared_work()
        .iter()
        .for_each(|case| same(case.kernel, &|kernel| case.device(kernel, &device)));
    alone()
        .iter()
        .for_each(|case| same(case.kernel, &|kernel| spread(case, kernel, &device)));
}

/// More than 65,535 workgroups are arranged in rows: here of one thread each, so that small tensors need them.
#[test]
fn a_folded_dispatch_gives_the_same_bits() {
    let Some(device) = gpu().map(|device| device.inner()) else {
        return;
    };
    for case in alone() {
        let name = case.kernel.name;
        assert!(case.groups > 65_535, "{name} is not folded");
        let expected = spread(&case, case.kernel, &device);
        let single = resized(case.kernel, 1);
        assert!(spread(&case, single, &device) == expected, "{name}");
        let flat = mutant(
            single,
            "grid_index(group, ",
            "grid_index(group * vec3<u32>(1u, 0u, 0u), ",
        );
        assert!(
            spread(&case, flat, &device) != expected,
            "{name}: nothing lies in the second row"
        );
    }
}

#[test]
fn a_split_dispatch_gives_the_same_bits() {
    let joined = |a: Vec<Vec<u32>>, b: Vec<Vec<u32>>| {
        a.into_iter()
            .zip(b)
            .map(|(a, b)| [a, b].concat())
            .collect::<Vec<_>>()
    };
    let whole = cast_pairs(0, 100_000).twin();
    let (a, b) = (cast_pairs(0, 33_334), cast_pairs(33_334, 66_666));
    assert!(joined(a.twin(), b.twin()) == whole);
    // Without the first pair the second half would repeat the first half's noise.
    let mut wrong = cast_pairs(33_334, 66_666);
    assert_eq!(wrong.params[2], 33_334 / 2);
    wrong.params[2] = 0;
    assert!(wrong.twin() != b.twin());
    let Some(device) = gpu().map(|device| device.inner()) else {
        return;
    };
    assert!(joined(spread(&a, a.kernel, &device), spread(&b, b.kernel, &device)) == whole);
    assert!(spread(&wrong, wrong.kernel, &device) != b.twin());
}

#[test]
fn order_of_tensors_does_not_show() {
    for rule in rules() {
        let run = |reverse: bool| {
            let mut infos = infos(DType::BF16);
            if reverse {
                infos.reverse();
            }
            let mut run = Run::new(&rule, infos, &cpu());
            (1..=3).for_each(|t| run.step(t));
            run.bytes()
        };
        assert_eq!(run(false), run(true), "{rule:?}");
    }
}
