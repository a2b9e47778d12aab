use tabtune::ops::loss::cross_entropy::{self, BackwardParams, ForwardParams, SumParams};
use tabtune_tests::kernels::{Case, check, noise, poisoned, words};

/// f32 exp and log compared with f64.
const BOUND: f64 = 3e-6;

/// (n, V, parts)
const SHAPES: [(usize, usize, usize); 5] = [
    (1, 1, 1),
    (255, 2, 1),
    (3, 257, 2),
    (4099, 5, 1),
    (2, 49_157, 64),
];

/// Returns the distance of rows in elements, which is larger than the number of columns for some vocabularies.
fn stride(vocab: usize) -> usize {
    if vocab % 3 == 2 {
        vocab.next_multiple_of(4)
    } else {
        vocab
    }
}

fn logits(n: usize, vocab: usize) -> Vec<u32> {
    words(
        &noise(n * stride(vocab), 1)
            .iter()
            .map(|v| v * 12.0)
            .collect::<Vec<_>>(),
    )
}

fn targets(n: usize, vocab: usize) -> Vec<u32> {
    (0..n)
        .map(|r| {
            if r % 5 == 4 {
                -100_i32 as u32
            } else {
                (r * 7) as u32 % vocab as u32
            }
        })
        .collect()
}

fn partials((n, vocab, parts): (usize, usize, usize)) -> Case {
    let params = ForwardParams {
        n,
        vocab,
        parts,
        stride: stride(vocab),
    };
    let written = [poisoned(n * parts * 2)];
    Case::new(
        &cross_entropy::PARTIALS,
        [logits(n, vocab)],
        written,
        &params,
        ((n * parts) as u32).div_ceil(64),
    )
}

fn forward((n, vocab, parts): (usize, usize, usize)) -> Case {
    let partials = partials((n, vocab, parts)).twin().remove(0);
    let params = ForwardParams {
        n,
        vocab,
        parts,
        stride: stride(vocab),
    };
    let read = [logits(n, vocab), targets(n, vocab), partials];
    Case::new(
        &cross_entropy::FORWARD,
        read,
        [poisoned(n * 2)],
        &params,
        (n as u32).div_ceil(64),
    )
}

#[test]
fn cross_entropy_partials_sum_exponentials() {
    check(&SHAPES.map(partials), BOUND, ("- top)", "+ top)"));
}

#[test]
fn cross_entropy_forward_is_minus_log_probability() {
    check(
        &SHAPES.map(forward),
        BOUND,
        ("lse - logits", "lse + logits"),
    );
}

#[test]
fn loss_sum_adds_losses() {
    let case = |n: usize| {
        let stats = words(&noise(2 * n, 1).iter().map(|v| v + 1.0).collect::<Vec<_>>());
        Case::new(
            &cross_entropy::LOSS_SUM,
            [stats],
            [poisoned(1)],
            &SumParams { n },
            1,
        )
    };
    check(
        &[1, 255, 256, 257, 4099].map(case),
        BOUND,
        ("lane + half", "lane"),
    );
}

#[test]
fn cross_entropy_backward_is_softmax_minus_onehot() {
    let case = |s: (usize, usize, usize), cap: f32| {
        let (n, vocab, _) = s;
        let stats = forward(s).twin().remove(0);
        let params = BackwardParams {
            n,
            vocab,
            stride: stride(vocab),
            cap,
        };
        let read = [targets(n, vocab), stats];
        Case::new(
            &cross_entropy::BACKWARD,
            read,
            [logits(n, vocab)],
            &params,
            ((n * stride(vocab)) as u32).div_ceil(64),
        )
    };
    // The exponent of up to 24 carries its own rounding: relative 24 · 2⁻²⁴ · a few.
    for (cap, flip) in [
        (0.0, ("- hit)", "+ hit)")),
        (0.0, ("|| column >= vocab", "")),
        (30.0, ("slope = 1.0 - logit", "slope = 1.0 + logit")),
    ] {
        check(&SHAPES.map(|s| case(s, cap)), 2e-5, flip);
    }
}

/// Logits have few different values, so that several are the largest. A target is the first of them, a later one, or a smaller one.
#[test]
fn cross_entropy_hits_are_of_the_first_of_the_largest() {
    let case = |(n, vocab, parts): (usize, usize, usize)| {
        let stride = stride(vocab);
        let logits: Vec<f32> = noise(n * stride, 1)
            .iter()
            .map(|v| (v * 3.0).round())
            .collect();
        let largest = |r: usize| {
            let row = &logits[r * stride..][..vocab];
            let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            (0..vocab).filter(|&c| row[c] == top).collect::<Vec<_>>()
        };
        let target = |r: usize| match r % 5 {
            0 => largest(r)[0] as u32,
            1 => largest(r)[largest(r).len() - 1] as u32,
            4 => -100_i32 as u32,
            _ => (r * 7) as u32 % vocab as u32,
        };
        let params = ForwardParams {
            n,
            vocab,
            parts,
            stride,
        };
        let written = [poisoned(n * parts * 2)];
        let partials = Case::new(
            &cross_entropy::PARTIALS,
            [words(&logits)],
            written,
            &params,
            1,
        )
        .twin()
        .remove(0);
        let read = [words(&logits), (0..n).map(target).collect(), partials];
        Case::new(
            &cross_entropy::HITS,
            read,
            [poisoned(2 * n)],
            &params,
            n as u32,
        )
    };
    let shapes = [
        (1, 1, 1),
        (255, 2, 1),
        (64, 257, 2),
        (4099, 5, 1),
        (2, 49_157, 64),
        (70_000, 3, 1),
    ];
    check(&shapes.map(case), 0.0, ("select(0u, id, best)", "0u"));
    check(&shapes.map(case), 0.0, ("counts && own == top", "counts"));
    // Assertion on the twin itself: the first of the largest is a hit, a later one is not.
    let twin = case((4099, 5, 1)).twin().remove(0);
    let hit = |r: usize| f32::from_bits(twin[2 * r]);
    assert!(
        (0..4099).step_by(5).all(|r| hit(r) == 1.0) && (1..4099).step_by(5).any(|r| hit(r) == 0.0)
    );
    assert!(
        (4..4099)
            .step_by(5)
            .all(|r| [hit(r), f32::from_bits(twin[2 * r + 1])] == [0.0; 2])
    );
}
