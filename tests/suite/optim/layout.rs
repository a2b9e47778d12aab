//! The same bits whatever the workgroup size, the split of a dispatch, and the order of the tensors (`optimizers.md` §15, 8).

use burn::tensor::DType;
use tabtune::kernels::{
    Kernel, adafactor_apply, adafactor_norm, adafactor_sums, adamw_bf16, apollo_combine, apollo_project, global_norm, sum_tree,
};
use tabtune_tests::kernels::{Case, noise, packed, poisoned, words};
use tabtune_tests::{cpu, gpu};

use super::{Run, infos, rules};

/// The kernel with workgroups of `size`.
fn resized(kernel: &'static Kernel, size: u32) -> &'static Kernel {
    let constant = |size: u32| format!("const SIZE: u32 = {size}u;");
    let own = kernel.workgroup;
    let source = if kernel.source.contains(&constant(own)) {
        kernel.source.replace(&constant(own), &constant(size))
    } else {
        kernel
            .source
            .replace(&format!("@workgroup_size({own})"), &format!("@workgroup_size({size})"))
            .replace(&format!("lane, {own}u)"), &format!("lane, {size}u)"))
    };
    assert!(source != kernel.source, "{}", kernel.name);
    Box::leak(Box::new(Kernel { name: format!("{} by {size}", kernel.name).leak(), source: source.leak(), workgroup: size, ..*kernel }))
}

fn positive(n: usize, seed: u32) -> Vec<u32> {
    words(&noise(n, seed).into_iter().map(|x| x.abs() + 0.1).collect::<Vec<f32>>())
}

fn cases() -> Vec<Case> {
    let (rows, cols, n) = (300, 1100, 330_000);
    let lanes = 180;
    let sums = adafactor_sums::Params { rows, cols, scale: 0.5, eps1: 1e-30 };
    let norm = adafactor_norm::Params { rows, cols, lanes, scale: 0.5, relative_step: 1, packed: 0 };
    let apply = adafactor_apply::Params {
        rows,
        cols,
        lanes,
        scale: 0.5,
        rate: 0.01,
        decay: 0.1,
        d: 0.999,
        clip: 0.7,
        eps2: 1e-3,
        relative_step: 1,
        rounding: 2,
        key0: 7,
        key1: 11,
        step_low: 3,
        step_high: 1,
    };
    let project = apollo_project::Params {
        channels: cols,
        dim: rows,
        rank: 3,
        channel_stride: 1,
        dim_stride: cols,
        given: 0,
        sigma: 10.0,
        unit: apollo_project::unit(300),
        w1: 0.1,
        w2: 0.01,
        eps: 1e-6,
        scale: 0.5,
        key0: 7,
        key1: 11,
        refresh_low: 2,
        refresh_high: 0,
    };
    let combine = apollo_combine::Params { channels: cols, mini: 1, front: 2.0, threshold: 0.5, gamma: 1.01 };
    let g = words(&noise(n, 1));
    vec![
        Case {
            kernel: &global_norm::KERNEL,
            buffers: vec![g.clone(), poisoned(1290)],
            params: global_norm::Params { n: n as u32, first: 0 }.words(),
            groups: 162,
        },
        Case { kernel: &sum_tree::KERNEL, buffers: vec![g.clone(), poisoned(6)], params: vec![n as u32], groups: 6 },
        Case {
            kernel: &adafactor_sums::KERNEL,
            buffers: vec![g.clone(), poisoned(300 * 18), poisoned(10 * 1100)],
            params: sums.words(),
            groups: 23,
        },
        Case {
            kernel: &adafactor_norm::KERNEL,
            buffers: vec![g.clone(), g.clone(), positive(300, 2), positive(1100, 3), poisoned(540)],
            params: norm.words(),
            groups: 180,
        },
        Case {
            kernel: &adafactor_apply::KERNEL,
            buffers: vec![g.clone(), positive(300, 2), positive(1100, 3), positive(540, 4), vec![0], packed(&noise(n, 5)).0],
            params: apply.words(),
            groups: 81,
        },
        Case {
            kernel: &apollo_project::KERNEL,
            buffers: vec![g, vec![0], words(&noise(3300, 2)), positive(3300, 3), poisoned(4400)],
            params: project.words(),
            groups: 18,
        },
        Case {
            kernel: &apollo_combine::KERNEL,
            buffers: vec![positive(4400, 1), vec![0x3f80_0000], poisoned(2)],
            params: combine.words(),
            groups: 1,
        },
        adamw(0, 100_001),
    ]
}

/// AdamW on elements `first` … `first + n` of a larger tensor; `first` is even.
fn adamw(first: usize, n: usize) -> Case {
    let params = adamw_bf16::Params {
        n: n as u32,
        w1: 0.1,
        w2: 1e-3,
        d: 0.999,
        alpha: 1e-2,
        eps: 1e-6,
        scale: 0.75,
        rounding: 2,
        key0: 7,
        key1: 11,
        step_low: 3,
        step_high: 0,
        first_pair_low: first as u32 / 2,
        first_pair_high: 0,
    };
    let part = |seed| noise(200_002, seed)[first..first + n].to_vec();
    let v = part(4).into_iter().map(f32::abs).collect::<Vec<f32>>();
    let buffers = vec![packed(&part(1)).0, words(&part(2)), packed(&part(3)).0, packed(&v).0, vec![0]];
    Case { kernel: &adamw_bf16::KERNEL, buffers, params: params.words(), groups: (n as u32).div_ceil(128) }
}

#[test]
fn workgroup_size_does_not_show() {
    let Some(device) = gpu() else { return };
    for case in cases() {
        let expected = case.device(case.kernel, &device.inner());
        for size in [64, 128, 256].into_iter().filter(|&size| size != case.kernel.workgroup) {
            assert!(case.device(resized(case.kernel, size), &device.inner()) == expected, "{} by {size}", case.kernel.name);
        }
    }
}

#[test]
fn a_split_dispatch_gives_the_same_bits() {
    let whole = adamw(0, 100_000).twin();
    let (a, b) = (adamw(0, 33_334), adamw(33_334, 66_666));
    let joined = |a: Vec<Vec<u32>>, b: Vec<Vec<u32>>| a.into_iter().zip(b).map(|(a, b)| [a, b].concat()).collect::<Vec<_>>();
    assert!(joined(a.twin(), b.twin()) == whole);
    let Some(device) = gpu() else { return };
    assert!(joined(a.device(a.kernel, &device.inner()), b.device(b.kernel, &device.inner())) == whole);
    // Without the first pair the second half would repeat the first half's noise.
    let mut wrong = adamw(33_334, 66_666);
    wrong.params[12] = 0;
    assert!(wrong.twin() != adamw(33_334, 66_666).twin());
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
