//! Operations and bytes in the GPU benchmark, compared with formulas.

use burn::tensor::DType;
use tabtune::measure::reference::{
    LINEAR_OF_STEP, Pass, Product, REFERENCE, SQUARE, Work, whole_flops,
};

#[test]
fn operations_and_bytes_are_those_of_the_formulas() {
    let square = Work::Linear(Product::Forward, SQUARE);
    assert_eq!(
        (square.flops(1), square.flops(2)),
        (Some(17_179_869_184.0), Some(2_147_483_648.0))
    );
    assert_eq!(square.bytes(1), (3 * 4 * 2048 * 2048) as f64);
    // q kᵀ and weights times v: 2 · 9 · 64 · T (T + 1) / 2 multiply-adds.
    assert_eq!(
        Work::Attention(Pass::Forward, 4).flops(1),
        Some((2 * 2 * 9 * 64 * 4 * 5 / 2) as f64)
    );
    assert_eq!(
        Work::Attention(Pass::Backward, 4).flops(1),
        Some((2 * 5 * 9 * 64 * 4 * 5 / 2) as f64)
    );
    assert_eq!(
        (
            Work::Adamw(DType::F32, 1).bytes(1),
            Work::Adamw(DType::BF16, 1).bytes(1)
        ),
        (28.0 * 2048.0, 16.0 * 2048.0)
    );
}

#[test]
fn shapes_stay_multiples_of_four_and_fit_a_binding_of_128_mib() {
    for of in REFERENCE.iter().chain(LINEAR_OF_STEP) {
        for divisor in of.work.divisors() {
            if let Work::Linear(_, dims) = of.work {
                assert!(
                    dims.iter().all(|dim| dim % (4 * divisor) == 0),
                    "{} / {divisor}",
                    of.name
                );
                let [n, k, m] = dims.map(|dim| dim / divisor);
                assert!(
                    [n * k, m * k, n * m]
                        .iter()
                        .all(|words| 4 * words <= 128 << 20),
                    "{}",
                    of.name
                );
            }
        }
        // A copy of as many bytes reads half of them.
        assert!(
            of.work.flops(1).is_some() || of.work.bytes(1) / 2.0 <= f64::from(128 << 20),
            "{}",
            of.name
        );
    }
}

#[test]
fn products_of_a_step_are_six_operations_a_weight_and_token() {
    let flops: f64 = LINEAR_OF_STEP
        .iter()
        .map(|of| of.in_step as f64 * whole_flops(of.name))
        .sum();
    // 30 blocks of 3,538,944 weights in matrices, and the tied table as the head.
    assert_eq!(flops, 6.0 * 512.0 * (30 * 3_538_944 + 49_152 * 576) as f64);
}
