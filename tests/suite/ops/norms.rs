use tabtune::gpu::{Kernel, KernelParams};
use tabtune::ops::column_sum;
use tabtune::ops::norm::layer::BackwardParams;
use tabtune::ops::norm::rms::ForwardParams;
use tabtune::ops::norm::{layer as layer_norm, rms as rms_norm};
use tabtune_tests::kernels::{Case, check, noise, poisoned, words};

/// Sums of up to 4099 terms in f32 compared with f64.
const BOUND: f64 = 1e-5;

const SHAPES: [(usize, usize); 6] = [(1, 1), (255, 3), (256, 13), (257, 5), (2, 4099), (4099, 2)];

/// Widths that the `_wide` kernels accept.
const WIDE: [(usize, usize); 6] = [(1, 4), (255, 8), (256, 12), (257, 20), (2, 4100), (4099, 4)];

fn rows(n: usize, width: usize, seed: u32) -> Vec<u32> {
    words(
        &noise(n * width, seed)
            .iter()
            .map(|v| v + 0.3)
            .collect::<Vec<_>>(),
    )
}

fn forward_params((n, width): (usize, usize)) -> ForwardParams {
    ForwardParams {
        n,
        width,
        eps: 1e-5,
        offset: 0.75,
    }
}

fn backward_params((n, width): (usize, usize)) -> BackwardParams {
    BackwardParams { n, width }
}

fn rms(s: (usize, usize)) -> Case {
    let (read, written) = (
        [rows(s.0, s.1, 1), rows(1, s.1, 2)],
        [poisoned(s.0 * s.1), poisoned(s.0)],
    );
    let kernel = if s.1.is_multiple_of(4) {
        &rms_norm::FORWARD_WIDE
    } else {
        &rms_norm::FORWARD
    };
    Case::new(
        kernel,
        read,
        written,
        &forward_params(s),
        (s.0 as u32).div_ceil(64),
    )
}

fn layer(s: (usize, usize)) -> Case {
    let read = [rows(s.0, s.1, 1), rows(1, s.1, 2), rows(1, s.1, 3)];
    let written = [poisoned(s.0 * s.1), poisoned(s.0 * 2)];
    Case::new(
        &layer_norm::FORWARD,
        read,
        written,
        &layer_norm::ForwardParams {
            n: s.0,
            width: s.1,
            eps: 1e-5,
        },
        (s.0 as u32).div_ceil(64),
    )
}

#[test]
fn rms_norm_scales_rows_to_one() {
    check(
        &SHAPES.map(rms),
        BOUND,
        ("+ params.eps", "- params.eps * 1000.0"),
    );
    check(
        &WIDE.map(rms),
        BOUND,
        ("sums.z + sums.w", "sums.z - sums.w"),
    );
    check(&WIDE.map(rms), BOUND, ("w[c] + params.offset", "w[c]"));
}

fn add(s: (usize, usize)) -> Case {
    let written = [rows(s.0, s.1, 3), poisoned(s.0 * s.1), poisoned(s.0)];
    let kernel = if s.1.is_multiple_of(4) {
        &rms_norm::ADD_FORWARD_WIDE
    } else {
        &rms_norm::ADD_FORWARD
    };
    Case::new(
        kernel,
        [rows(s.0, s.1, 1), rows(1, s.1, 2)],
        written,
        &forward_params(s),
        (s.0 as u32).div_ceil(64),
    )
}

/// Makes the gradients; with `onto`, dx is added to the contents.
fn backward(s: (usize, usize), onto: bool) -> Case {
    let cut = column_sum::Params::cut(s.0, s.1);
    let dx = if onto {
        rows(s.0, s.1, 5)
    } else {
        poisoned(s.0 * s.1)
    };
    let scales = rms(s).twin().remove(1);
    let read = [
        rows(s.0, s.1, 1),
        rows(1, s.1, 2),
        scales,
        rows(s.0, s.1, 4),
    ];
    let (n, width) = s;
    let params = rms_norm::BackwardParams {
        n,
        width,
        rows: cut.rows,
        parts: cut.parts,
        add: onto,
        offset: 0.75,
    };
    let wide = s.1.is_multiple_of(4);
    let kernel = if wide {
        &rms_norm::BACKWARD_WIDE
    } else {
        &rms_norm::BACKWARD
    };
    let columns = cut.parts * width / if wide { 4 } else { 1 };
    let written = [dx, poisoned(cut.parts * s.1)];
    Case::new(
        kernel,
        read,
        written,
        &params,
        (n.div_ceil(64) + columns.div_ceil(64)) as u32,
    )
}

#[test]
fn rms_norm_add_forward_scales_the_sum() {
    check(
        &SHAPES.map(add),
        BOUND,
        ("x[row + c] + sum", "x[row + c] - sum"),
    );
    check(
        &WIDE.map(add),
        BOUND,
        ("x[row + c] + sum", "x[row + c] - sum"),
    );
}

#[test]
fn rms_norm_backward_is_its_gradient() {
    // With one column the gradient is a difference of nearly equal numbers.
    let wide = |onto| {
        SHAPES
            .into_iter()
            .filter(|s| s.1 > 1)
            .map(|s| backward(s, onto))
            .collect::<Vec<Case>>()
    };
    check(
        &wide(false),
        5e-5,
        ("- x[row + c] * mean", "+ x[row + c] * mean"),
    );
    check(&wide(true), 5e-5, ("params.add == 1u", "params.add == 2u"));
    check(
        &wide(false),
        5e-5,
        ("* x[r * width + column]", "* x[r * width]"),
    );
    check(
        &WIDE.map(|s| backward(s, false)),
        5e-5,
        ("- x[row + c] * mean", "+ x[row + c] * mean"),
    );
    check(
        &WIDE.map(|s| backward(s, true)),
        5e-5,
        ("params.add == 1u", "params.add == 2u"),
    );
    check(
        &WIDE.map(|s| backward(s, false)),
        5e-5,
        ("* x[r * quarters + column]", "* x[r * quarters]"),
    );
}

/// Makes the case of a `_wide` kernel for the kernel that uses one workgroup per row.
fn by_groups<P: KernelParams, const R: usize, const W: usize>(
    kernel: &'static Kernel<P, R, W>,
    case: Case,
    n: usize,
) -> Case {
    let groups = case.groups - (n as u32).div_ceil(64) + n as u32;
    Case {
        kernel: kernel.any(),
        groups,
        ..case
    }
}

#[test]
fn rms_norm_by_workgroups_agrees_with_the_definition() {
    let [sum, tree] = [
        ("sums.z + sums.w", "sums.z - sums.w"),
        ("lanes[lane + stride]", "lanes[lane]"),
    ];
    check(
        &WIDE.map(|s| by_groups(&rms_norm::FORWARD_GROUP, rms(s), s.0)),
        BOUND,
        sum,
    );
    check(
        &WIDE.map(|s| by_groups(&rms_norm::ADD_FORWARD_GROUP, add(s), s.0)),
        BOUND,
        tree,
    );
    for (onto, flip) in [
        (false, ("- x[at] * mean", "+ x[at] * mean")),
        (true, ("params.add == 1u", "params.add == 2u")),
    ] {
        check(
            &WIDE.map(|s| by_groups(&rms_norm::BACKWARD_GROUP, backward(s, onto), s.0)),
            5e-5,
            flip,
        );
    }
    let cases = WIDE.map(|s| by_groups(&rms_norm::BACKWARD_GROUP, backward(s, false), s.0));
    check(
        &cases,
        5e-5,
        ("* x[r * quarters + column]", "* x[r * quarters]"),
    );
}

#[test]
fn layer_norm_centres_and_scales_rows() {
    // One column has no variance: only eps remains.
    let wide: Vec<Case> = SHAPES.into_iter().filter(|s| s.1 > 1).map(layer).collect();
    check(&wide, 5e-5, ("+ b[c]", "- b[c]"));
}

#[test]
fn layer_norm_backward_is_its_gradient() {
    let input = |s: (usize, usize)| {
        let read = [
            rows(s.0, s.1, 1),
            rows(1, s.1, 2),
            layer(s).twin().remove(1),
            rows(s.0, s.1, 4),
        ];
        let written = [poisoned(s.0 * s.1)];
        Case::new(
            &layer_norm::BACKWARD_INPUT,
            read,
            written,
            &backward_params(s),
            (s.0 as u32).div_ceil(64),
        )
    };
    // Two columns cancel to eps; from three on the gradient is large enough to compare.
    let wide: Vec<Case> = SHAPES.into_iter().filter(|s| s.1 > 2).map(input).collect();
    check(&wide, 5e-5, ("- first", "+ first"));
    let weight = |s: (usize, usize)| {
        let params = column_sum::Params::cut(s.0, s.1);
        let parts = params.parts * s.1;
        let read = [
            rows(s.0, s.1, 1),
            layer(s).twin().remove(1),
            rows(s.0, s.1, 4),
        ];
        Case::new(
            &layer_norm::BACKWARD_WEIGHT,
            read,
            [poisoned(parts), poisoned(parts)],
            &params,
            params.groups(),
        )
    };
    let wide: Vec<Case> = SHAPES.into_iter().filter(|s| s.1 > 1).map(weight).collect();
    check(&wide, 5e-5, ("sum += d", "sum -= d"));
}

/// Makes the gradients with one workgroup per row; with `onto`, dx is added to the contents.
fn layer_backward(s: (usize, usize), onto: bool) -> Case {
    let cut = column_sum::Params::cut(s.0, s.1);
    let dx = if onto {
        rows(s.0, s.1, 5)
    } else {
        poisoned(s.0 * s.1)
    };
    let read = [
        rows(s.0, s.1, 1),
        rows(1, s.1, 2),
        layer(s).twin().remove(1),
        rows(s.0, s.1, 4),
    ];
    let (n, width) = s;
    let params = layer_norm::GroupParams {
        n,
        width,
        rows: cut.rows,
        parts: cut.parts,
        add: onto,
    };
    let parts = cut.parts * s.1;
    Case::new(
        &layer_norm::BACKWARD_GROUP,
        read,
        [dx, poisoned(parts), poisoned(parts)],
        &params,
        (n + (cut.parts * width / 4).div_ceil(64)) as u32,
    )
}

#[test]
fn layer_norm_by_workgroups_agrees_with_the_definition() {
    let forward = WIDE.map(|s| by_groups(&layer_norm::FORWARD_GROUP, layer(s), s.0));
    for flip in [
        ("+ b[c]", "- b[c]"),
        ("let all = lanes[0];", "let all = lanes[1];"),
        ("squares += v * v", "squares += v"),
    ] {
        check(&forward, 5e-5, flip);
    }
    for (onto, flip) in [
        (false, ("- means.x", "+ means.x")),
        (false, ("* r * means.y", "* means.y")),
        (false, ("sum_b += d", "sum_b -= d")),
        (false, ("* stats[2u * r + 1u])", ")")),
        (true, ("params.add == 1u", "params.add == 2u")),
    ] {
        check(&WIDE.map(|s| layer_backward(s, onto)), 5e-5, flip);
    }
}

#[test]
fn column_sum_adds_rows() {
    let case = |s: (usize, usize)| {
        let params = column_sum::Params::cut(s.0, s.1);
        let written = [poisoned(params.parts * s.1)];
        Case::new(
            &column_sum::KERNEL,
            [rows(s.0, s.1, 1)],
            written,
            &params,
            params.groups(),
        )
    };
    check(&SHAPES.map(case), BOUND, ("r < end", "r + 1u < end"));
}

#[test]
fn column_sum_by_workgroups_agrees_with_the_definition() {
    let case = |s: (usize, usize)| {
        let params = column_sum::GroupParams { n: s.0, width: s.1 };
        Case::new(
            &column_sum::GROUP,
            [rows(s.0, s.1, 1)],
            [poisoned(s.1)],
            &params,
            (s.1 as u32).div_ceil(16),
        )
    };
    check(&SHAPES.map(case), BOUND, ("r += 16u", "r += 17u"));
    check(
        &SHAPES.map(case),
        BOUND,
        ("var stride = 8u", "var stride = 4u"),
    );
}

#[test]
fn layer_norm_of_a_sum_agrees_with_the_definition() {
    for biased in [false, true] {
        let case = |s: (usize, usize)| {
            let params = layer_norm::AddParams {
                n: s.0,
                width: s.1,
                eps: 1e-5,
                biased,
            };
            let read = [
                rows(s.0, s.1, 1),
                rows(1, s.1, 2),
                rows(1, s.1, 3),
                rows(1, s.1, 4),
            ];
            let written = [rows(s.0, s.1, 5), poisoned(s.0 * s.1), poisoned(s.0 * 2)];
            Case::new(
                &layer_norm::ADD_FORWARD_GROUP,
                read,
                written,
                &params,
                s.0 as u32,
            )
        };
        for flip in [
            ("squares += v * v", "squares += v"),
            (
                "x[row * quarters + c] + added",
                "x[row * quarters + c] - added",
            ),
        ] {
            check(&WIDE.map(case), 5e-5, flip);
        }
        check(
            &WIDE.map(case),
            5e-5,
            (
                "params.biased == 1u",
                if biased {
                    "params.biased == 0u"
                } else {
                    "params.biased != 1u"
                },
            ),
        );
    }
}
