use tabtune::ops::cast_bf16;
use tabtune_tests::kernels::{Case, check, noise, place, poisoned, words};

fn case(n: usize, stream: u32, rounding: u32) -> Case {
    let (first_pair_low, first_pair_high) = (u32::MAX - 5, 1);
    let params = cast_bf16::Params {
        n,
        stream,
        first_pair_low,
        first_pair_high,
        noise: place(rounding),
    };
    let given = (0..n as u32)
        .map(|i| i.wrapping_mul(40_503) & 0xFFFF)
        .collect();
    Case::new(
        &cast_bf16::KERNEL,
        [words(&noise(n, 1)), given],
        [poisoned(n.div_ceil(2))],
        &params,
        (n as u32).div_ceil(512),
    )
}

#[test]
fn cast_bf16_equals_its_twin_bit_for_bit() {
    let sizes = [1, 255, 256, 257, 4099];
    let cases: Vec<Case> = sizes
        .into_iter()
        .flat_map(|n| {
            [
                case(n, 0, 1),
                case(n, 0, 2),
                case(n, 1, 2),
                case(n, 2, 2),
                case(n, 0, 3),
            ]
        })
        .collect();
    check(&cases, 0.0, ("words[params.stream]", "words[0]"));
    check(&cases, 0.0, ("low < pair", "low > pair"));
    check(
        &cases,
        0.0,
        ("noise[i + 1u] << 16u", "noise[i + 1u] << 15u"),
    );
}
