use burn::tensor::{Int, Tensor};
use tabtune::gpu::{self, Buffer, StorageType};
use tabtune::ops;
use tabtune::ops::embedding::{self, BackwardParams, ForwardParams, LinksParams};
use tabtune_tests::kernels::{Case, check, noise, packed, poisoned, words};

/// (n, V, C), with ids that repeat, some that are never used, and two that are not valid.
const SHAPES: [(usize, usize, usize); 5] = [
    (1, 1, 1),
    (255, 7, 3),
    (257, 300, 5),
    (64, 4099, 16),
    (700, 3, 6100),
];

fn ids(n: usize, vocab: usize) -> Vec<u32> {
    let mut ids: Vec<u32> = (0..n)
        .map(|r| (r * r + r / 3) as u32 % vocab as u32)
        .collect();
    if n > 200 {
        ids[100] = -100_i32 as u32;
        ids[200] = vocab as u32;
    }
    ids
}

fn links(n: usize, vocab: usize) -> Case {
    let params = LinksParams { n, vocab };
    Case::new(
        &embedding::LINKS,
        [ids(n, vocab)],
        [poisoned(n + vocab)],
        &params,
        ((n + vocab) as u32).div_ceil(64),
    )
}

#[test]
fn embedding_forward_gathers_rows() {
    let case = |(n, vocab, width): (usize, usize, usize), storage: StorageType| {
        let table = noise(vocab * width, 1);
        let table = if storage == StorageType::Bf16 {
            packed(&table).0
        } else {
            words(&table)
        };
        let params = ForwardParams {
            n,
            vocab,
            k: width,
            plane: 0,
            keep: width % 2 == 1,
        };
        let written = [words(&noise(n * width, 2))];
        Case::new(
            embedding::FORWARD.of(storage),
            [table, ids(n, vocab)],
            written,
            &params,
            ((n * width) as u32).div_ceil(64),
        )
    };
    check(
        &SHAPES.map(|s| case(s, StorageType::F32)),
        0.0,
        ("weight1(id, i % width)", "weight1(id, i / width)"),
    );
    check(
        &SHAPES.map(|s| case(s, StorageType::F32)),
        0.0,
        ("row * params.k", "row + params.k"),
    );
    check(
        &SHAPES.map(|s| case(s, StorageType::F32)),
        0.0,
        ("params.keep == 0u", "params.keep == 1u"),
    );
    check(
        &SHAPES.map(|s| case(s, StorageType::Bf16)),
        0.0,
        (
            "bf16_low(word), bf16_high(word)",
            "bf16_high(word), bf16_low(word)",
        ),
    );
}

#[test]
fn embedding_links_chain_equal_ids() {
    let mutant = tabtune_tests::kernels::mutant(embedding::LINKS.any(), "== wanted", "!= wanted");
    let cases = SHAPES.map(|(n, vocab, _)| links(n, vocab));
    let twins = cases.each_ref().map(Case::twin);
    tabtune_tests::record::record(&cases, &twins, 0.0, mutant, Some(1));
    // Compared as integers: small words are denormal floats.
    let Some(gpu) = tabtune_tests::gpu() else {
        return;
    };
    for (case, twin) in cases.iter().zip(&twins) {
        assert_eq!(&case.device(case.kernel, &gpu.inner()), twin);
    }
    assert_ne!(cases[1].device(mutant, &gpu.inner()), twins[1]);
}

#[test]
fn embedding_backward_adds_the_rows_of_an_id() {
    let case = |(n, vocab, width): (usize, usize, usize)| {
        let params = BackwardParams { n, vocab, width };
        let read = [
            links(n, vocab).twin().remove(0),
            words(&noise(n * width, 1)),
        ];
        let sum = words(&noise(vocab * width, 2));
        Case::new(
            &embedding::BACKWARD,
            read,
            [sum],
            &params,
            ((vocab * width) as u32).div_ceil(64),
        )
    };
    // Up to 233 terms in f32 compared with f64.
    check(&SHAPES.map(case), 1e-5, ("sum +=", "sum -="));
    check(&SHAPES.map(case), 1e-5, ("dw[i] +=", "dw[i] ="));
}

#[test]
fn embedding_backward_writes_over_the_sum() {
    let Some(gpu) = tabtune_tests::gpu() else {
        return;
    };
    let device = gpu.inner();
    let ids = Tensor::<1, Int>::from_data([2, 0, 2], &device);
    let dy = Tensor::<2>::from_data([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], &device);
    let sum = Tensor::<2>::from_data([[10.0, 20.0], [30.0, 40.0], [50.0, 60.0]], &device);
    let place = Buffer::from(sum.clone()).place();
    let added = ops::embedding_backward(sum, dy.clone(), ids.clone());
    assert_eq!(
        Buffer::from(added.clone()).place(),
        place,
        "a sum that nobody else holds is not copied"
    );
    let values = |tensor: Tensor<2>| {
        tabtune_tests::block_on(gpu::read_data(tensor))
            .unwrap()
            .try_to_vec::<f32>()
            .unwrap()
    };
    assert_eq!(values(added.clone()), [13.0, 24.0, 30.0, 40.0, 56.0, 68.0]);
    let again = ops::embedding_backward(added.clone(), dy, ids);
    assert_eq!(values(again), [16.0, 28.0, 30.0, 40.0, 62.0, 76.0]);
    assert_eq!(
        values(added),
        [13.0, 24.0, 30.0, 40.0, 56.0, 68.0],
        "one that somebody holds is left alone"
    );
}
