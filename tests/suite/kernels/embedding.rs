use tabtune::kernels::embedding::{self, BackwardParams, ForwardParams, LinksParams};
use tabtune_tests::kernels::{Case, check, noise, packed, poisoned, words};

/// (n, V, C), with ids that repeat, some never used, and two that are no ids.
const SHAPES: [(usize, usize, usize); 5] = [(1, 1, 1), (255, 7, 3), (257, 300, 5), (64, 4099, 16), (700, 3, 6100)];

fn ids(n: usize, vocab: usize) -> Vec<u32> {
    let mut ids: Vec<u32> = (0..n).map(|r| (r * r + r / 3) as u32 % vocab as u32).collect();
    if n > 200 {
        ids[100] = -100_i32 as u32;
        ids[200] = vocab as u32;
    }
    ids
}

fn links(n: usize, vocab: usize) -> Case {
    Case {
        kernel: &embedding::LINKS,
        buffers: vec![ids(n, vocab), poisoned(n + vocab)],
        params: LinksParams { n: n as u32, vocab: vocab as u32 }.words(),
        groups: ((n + vocab) as u32).div_ceil(64),
    }
}

#[test]
fn embedding_forward_gathers_rows() {
    let case = |(n, vocab, width): (usize, usize, usize), bf16: bool| {
        let table = noise(vocab * width, 1);
        Case {
            kernel: &embedding::FORWARD,
            buffers: vec![if bf16 { packed(&table).0 } else { words(&table) }, ids(n, vocab), poisoned(n * width)],
            params: ForwardParams { n: n as u32, vocab: vocab as u32, width: width as u32, packed: u32::from(bf16) }.words(),
            groups: ((n * width) as u32).div_ceil(64),
        }
    };
    check(&SHAPES.map(|s| case(s, false)), 0.0, ("id * width + i % width", "id * width + i / width"));
    check(&SHAPES.map(|s| case(s, true)), 0.0, ("bf16_low(word), bf16_high(word)", "bf16_high(word), bf16_low(word)"));
}

#[test]
fn embedding_links_chain_equal_ids() {
    let mutant = tabtune_tests::kernels::mutant(&embedding::LINKS, "== wanted", "!= wanted");
    tabtune_tests::record::record(&SHAPES.map(|(n, vocab, _)| links(n, vocab)), 0.0, mutant);
    // Compared as integers: small words are denormal floats.
    let Some(gpu) = tabtune_tests::gpu() else { return };
    let cases = SHAPES.map(|(n, vocab, _)| links(n, vocab));
    for case in &cases {
        assert_eq!(case.device(case.kernel, &gpu.inner()), case.twin());
    }
    assert_ne!(cases[1].device(mutant, &gpu.inner()), cases[1].twin());
}

#[test]
fn embedding_backward_sums_the_rows_of_an_id() {
    let case = |(n, vocab, width): (usize, usize, usize)| Case {
        kernel: &embedding::BACKWARD,
        buffers: vec![links(n, vocab).twin().remove(0), words(&noise(n * width, 1)), poisoned(vocab * width)],
        params: BackwardParams { n: n as u32, vocab: vocab as u32, width: width as u32 }.words(),
        groups: ((vocab * width) as u32).div_ceil(64),
    };
    // Up to 233 terms in f32 against f64.
    check(&SHAPES.map(case), 1e-5, ("sum +=", "sum -="));
}
