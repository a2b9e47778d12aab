use tabtune::gpu::fma::{KERNEL, Params};
use tabtune_tests::kernels::{Case, check, noise, poisoned, words};

fn chains(n: usize, rounds: u32) -> Case {
    let params = Params::of(n, rounds);
    Case::new(
        &KERNEL,
        [words(&noise(n, 5))],
        [poisoned(n)],
        &params,
        KERNEL.groups(n),
    )
}

#[test]
fn fma_runs_every_link_of_every_chain() {
    // The last size needs more workgroups than one dimension of a dispatch has.
    let cases = [
        (1, 1),
        (255, 1),
        (256, 2),
        (257, 3),
        (4099, 3),
        (65_536 * 64 + 3, 0),
    ]
    .map(|(n, rounds)| chains(n, rounds));
    // 24 links, each rounded once or twice, of chains that hardly shrink; one link more or less changes the sum by its whole size.
    const TOLERANCE: f64 = 2e-5;
    check(&cases, TOLERANCE, ("round < rounds", "round <= rounds"));
    // Only the cheap sizes: no mutant below concerns the grid.
    for flip in [
        ("c0 = fma(a, c0, b)", "c0 = fma(a, c0, -b)"),
        ("c0 + vec4<f32>(0.75)", "c0 - vec4<f32>(0.75)"),
        ("(c2 + c3)", "(c2 - c3)"),
    ] {
        check(&cases[..5], TOLERANCE, flip);
    }
}

#[test]
fn fma_counts_two_operations_a_link() {
    assert_eq!(Params::of(3, 5).flops(), (3 * 5 * 8 * 16 * 2) as f64);
}
