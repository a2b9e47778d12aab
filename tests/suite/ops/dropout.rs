use tabtune::ops::dropout::{KERNEL, Params};
use tabtune_tests::kernels::{Case, check, noise, poisoned, words};

/// Makes a launch that drops a quarter of the values.
fn case(n: usize) -> Case {
    let params = Params {
        n,
        threshold: 1 << 30,
        scale: 4.0 / 3.0,
        micro_batch: 2,
        key_low: 0x1234_5678,
        key_high: 0x9ABC_DEF0,
        step_low: 7,
        step_high: 1,
    };
    Case::new(
        &KERNEL,
        [words(&noise(n, 1))],
        [poisoned(n)],
        &params,
        (n as u32).div_ceil(64),
    )
}

#[test]
fn dropout_takes_values_by_their_noise_and_scales_the_others() {
    check(
        &[1, 63, 64, 65, 4099, 65_536 * 64 + 3].map(case),
        0.0,
        ("params.micro_batch, params.step_low", "0u, params.step_low"),
    );
    let found = case(40_000).twin();
    let gone = found[0].iter().filter(|bits| **bits == 0).count();
    // Four standard deviations of 40,000 draws with probability 1/4.
    assert!((9_653..=10_347).contains(&gone), "{gone}");
}
