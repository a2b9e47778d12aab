use tabtune::gpu::copy::{KERNEL, Params};
use tabtune_tests::kernels::{Case, check};

/// Copies `n` words of a buffer with `before` and `after` words around them into a buffer with other contents.
fn part(n: usize, before: usize, after: usize) -> Case {
    let made = |len: usize, factor: u32| {
        (0..len as u32)
            .map(|i| i.wrapping_mul(factor) & 0x7f7f_ffff)
            .collect()
    };
    let x = made(before + n + after, 2_654_435_761);
    let y = made(after + n + before, 2_246_822_519);
    let params = Params {
        n,
        x_start: before,
        y_start: after,
    };
    Case::new(&KERNEL, [x], [y], &params, (n as u32).div_ceil(256))
}

#[test]
fn u32_copy_copies_every_word_and_leaves_the_rest() {
    let whole = [1, 255, 256, 257, 4099].map(|n| part(n, 0, 0));
    let parts = [
        (1, 1, 0),
        (1, 0, 1),
        (255, 256, 3),
        (256, 7, 4099),
        (257, 4099, 257),
        (4099, 1, 1),
    ];
    let cases: Vec<Case> = whole
        .into_iter()
        .chain(parts.map(|(n, before, after)| part(n, before, after)))
        .collect();
    for flip in [
        ("x[params.x_start + i]", "x[i]"),
        ("y[params.y_start + i]", "y[i]"),
        ("i < params.n", "i <= params.n"),
    ] {
        check(&cases, 0.0, flip);
    }
    // More workgroups than one dimension of a dispatch has.
    let large = part(65_536 * 256 + 3, 0, 0);
    check(
        &[large],
        0.0,
        ("= x[params.x_start + i]", "= x[params.x_start + i] ^ 1u"),
    );
}
