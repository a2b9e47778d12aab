use tabtune::ops::loss::cross_entropy::{self, BackwardParams, ForwardParams, SumParams};
use tabtune_tests::kernels::{Case, check, noise, poisoned, words};

/// f32 exp and log against f64.
const BOUND: f64 = 3e-6;

/// (n, V, parts)
const SHAPES: [(usize, usize, usize); 5] = [(1, 1, 1), (255, 2, 1), (3, 257, 2), (4099, 5, 1), (2, 49_157, 64)];

/// Elements beside the columns of a row, here and there.
fn stride(vocab: usize) -> usize {
    if vocab % 3 == 2 { vocab.next_multiple_of(4) } else { vocab }
}

fn logits(n: usize, vocab: usize) -> Vec<u32> {
    words(&noise(n * stride(vocab), 1).iter().map(|v| v * 12.0).collect::<Vec<_>>())
}

fn targets(n: usize, vocab: usize) -> Vec<u32> {
    (0..n).map(|r| if r % 5 == 4 { -100_i32 as u32 } else { (r * 7) as u32 % vocab as u32 }).collect()
}

fn partials((n, vocab, parts): (usize, usize, usize)) -> Case {
    let params = ForwardParams { n: n as u32, vocab: vocab as u32, parts: parts as u32, stride: stride(vocab) as u32 };
    let written = [poisoned(n * parts * 2)];
    Case::new(&cross_entropy::PARTIALS, [logits(n, vocab)], written, &params, ((n * parts) as u32).div_ceil(64))
}

fn forward((n, vocab, parts): (usize, usize, usize)) -> Case {
    let partials = partials((n, vocab, parts)).twin().remove(0);
    let params = ForwardParams { n: n as u32, vocab: vocab as u32, parts: parts as u32, stride: stride(vocab) as u32 };
    let read = [logits(n, vocab), targets(n, vocab), partials];
    Case::new(&cross_entropy::FORWARD, read, [poisoned(n * 2)], &params, (n as u32).div_ceil(64))
}

#[test]
fn cross_entropy_partials_sum_exponentials() {
    check(&SHAPES.map(partials), BOUND, ("- top)", "+ top)"));
}

#[test]
fn cross_entropy_forward_is_minus_log_probability() {
    check(&SHAPES.map(forward), BOUND, ("lse - logits", "lse + logits"));
}

#[test]
fn loss_sum_adds_losses() {
    let case = |n: usize| {
        let stats = words(&noise(2 * n, 1).iter().map(|v| v + 1.0).collect::<Vec<_>>());
        Case::new(&cross_entropy::LOSS_SUM, [stats], [poisoned(1)], &SumParams { n: n as u32 }, 1)
    };
    check(&[1, 255, 256, 257, 4099].map(case), BOUND, ("lane + half", "lane"));
}

#[test]
fn cross_entropy_backward_is_softmax_minus_onehot() {
    let case = |s: (usize, usize, usize)| {
        let (n, vocab, _) = s;
        let stats = forward(s).twin().remove(0);
        let params = BackwardParams { n: n as u32, vocab: vocab as u32, stride: stride(vocab) as u32 };
        let read = [targets(n, vocab), stats];
        Case::new(&cross_entropy::BACKWARD, read, [logits(n, vocab)], &params, ((n * stride(vocab)) as u32).div_ceil(64))
    };
    // The exponent of up to 24 carries its own rounding: relative 24 · 2⁻²⁴ · a few.
    check(&SHAPES.map(case), 2e-5, ("- hit;", "+ hit;"));
    check(&SHAPES.map(case), 2e-5, ("|| column >= vocab", ""));
}
