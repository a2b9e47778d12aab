//! Packed weights: the values that the chunks read, and products with them.

use burn::tensor::Device;
use tabtune::gpu::StorageType::{self, F16, F32, Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q5K, Q6K, Q8_0};
use tabtune::gpu::StoredMatrix;
use tabtune::ops::embedding;
use tabtune::ops::linear::kernels;
use tabtune_tests::gpu;
use tabtune_tests::kernels::{Case, check, poisoned};
use tabtune_tests::packed::{PACKED, blocks, decoded, words};

use super::linear::{backward_input, block, forward, tile, transposed};
use super::low_rank;

tabtune::kernel! {
    /// Reads all weights, four at a time.
    READ4 = "read4" of weight4 text (r"
        struct Params { rows: u32, k4: u32, plane: u32 }
        @group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;
        @group(0) @binding(2) var<storage, read_write> params: Params;

        @compute @workgroup_size(64)
        fn main(
            @builtin(workgroup_id) group: vec3<u32>,
            @builtin(num_workgroups) groups: vec3<u32>,
            @builtin(local_invocation_index) lane: u32,
        ) {
            let i = grid_index(group, groups, lane, 64u);
            if (i < params.rows * params.k4) { y[i] = weight4(i / params.k4, i % params.k4); }
        }
    ") [64], (w) -> (y), struct Read4Params { rows: usize, k4: usize, plane: usize },
    twin |[w], [y], _p| y.copy_from_slice(&w[..y.len()])
}

tabtune::kernel! {
    /// Reads all weights, one at a time.
    READ1 = "read1" of weight1 text (r"
        struct Params { rows: u32, k: u32, plane: u32 }
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        @group(0) @binding(2) var<storage, read_write> params: Params;

        @compute @workgroup_size(64)
        fn main(
            @builtin(workgroup_id) group: vec3<u32>,
            @builtin(num_workgroups) groups: vec3<u32>,
            @builtin(local_invocation_index) lane: u32,
        ) {
            let i = grid_index(group, groups, lane, 64u);
            if (i < params.rows * params.k) { y[i] = weight1(i / params.k, i % params.k); }
        }
    ") [64], (w) -> (y), struct Read1Params { rows: usize, k: usize, plane: usize },
    twin |[w], [y], _p| y.copy_from_slice(&w[..y.len()])
}

/// Makes a matrix with this many blocks per row. Returns it with its bytes.
fn matrix(storage: StorageType, [rows, of_row]: [usize; 2], first: u32) -> (StoredMatrix, Vec<u8>) {
    // Rows of a plain type have a length that is a multiple of 4.
    let of_row = if storage == F16 { 4 * of_row } else { of_row };
    let form = StoredMatrix::new(storage, [rows, of_row * storage.block().0]).unwrap();
    (form, blocks(storage, form.blocks(), first))
}

fn read4(form: StoredMatrix, blocks: &[u8]) -> Case {
    let params = Read4Params {
        rows: form.rows,
        k4: form.columns / 4,
        plane: form.plane(),
    };
    let kernel = READ4.of(form.storage);
    let threads = form.rows * form.columns / 4;
    Case::new(
        kernel,
        [words(form.storage, blocks)],
        [poisoned(4 * threads)],
        &params,
        kernel.groups(threads),
    )
}

fn read1(form: StoredMatrix, blocks: &[u8]) -> Case {
    let params = Read1Params {
        rows: form.rows,
        k: form.columns,
        plane: form.plane(),
    };
    let kernel = READ1.of(form.storage);
    let threads = form.rows * form.columns;
    Case::new(
        kernel,
        [words(form.storage, blocks)],
        [poisoned(threads)],
        &params,
        kernel.groups(threads),
    )
}

/// A chunk reads the bits of the decoder for all bits of a block that holds finite values. 100,000 blocks of each type have each scale once or
/// twice; `TABTUNE_BLOCKS=1000000` is the long form.
#[test]
fn packed_chunks_read_the_bits_of_the_decoders() {
    let Some(device) = gpu() else { return };
    let count: usize = std::env::var("TABTUNE_BLOCKS").map_or(100_000, |count| {
        count.parse().expect("TABTUNE_BLOCKS is a number")
    });
    for storage in PACKED {
        let of_row = 64;
        let rows = if storage == F16 { 64 } else { 128 };
        for (run, first) in (0..count).step_by(rows * of_row).enumerate() {
            let (form, blocks) = matrix(storage, [rows, of_row], first as u32);
            let expected = decoded(storage, &blocks);
            // Single elements are read by the second kernel: in an eighth of the runs.
            for case in [
                Some(read4(form, &blocks)),
                (run % 8 == 0).then(|| read1(form, &blocks)),
            ]
            .into_iter()
            .flatten()
            {
                let found = case.device(case.kernel, &device.inner());
                let wrong = found[0]
                    .iter()
                    .zip(&expected)
                    .position(|(found, expected)| found != expected);
                assert!(
                    wrong.is_none() && found[0].len() == expected.len(),
                    "{}: element {wrong:?} from block {first}",
                    case.kernel.name
                );
            }
        }
    }
}

/// Makes odd numbers of blocks, rows that begin in the middle of a word of the second plane, and enough scales that some are subnormal.
fn shapes(storage: StorageType) -> Vec<(StoredMatrix, Vec<u8>)> {
    [[1, 1], [1, 2], [3, 5], [43, 3], [7, 31]]
        .map(|shape| matrix(storage, shape, 17))
        .to_vec()
}

/// One mutant for each text: its scale, minimum, order of bits, high bits, or a subnormal half that is read as zero.
#[test]
fn packed_chunks_have_mutants_that_fail() {
    for (storage, flip) in [
        (
            F16,
            (
                "f16_low(words.y)",
                "select(f16_low(words.y), 0.0, (words.y & 0x7c00u) == 0u)",
            ),
        ),
        (Q8_0, ("24u, 16u, 8u, 0u", "16u, 24u, 8u, 0u")),
        (Q8_0, ("block & 1u", "~block & 1u")),
        (Q4_0, (">> (at & 4u)", ">> (4u - (at & 4u))")),
        (Q4K, ("- scales.y", "+ scales.y")),
        (Q4K, ("run >= 4u", "run > 4u")),
        (
            Q6K,
            (
                "scale_of(block) * f32(s)",
                "select(scale_of(block), 0.0, abs(scale_of(block)) < 6.1e-5) * f32(s)",
            ),
        ),
        (Q4_1, ("+ scales.y", "- scales.y")),
        (Q5_0, ("high & vec4<u32>(1u)", "high & vec4<u32>(0u)")),
        (Q5_1, ("4u * (at % 8u)", "4u * (at % 4u)")),
        (Q5K, ("at % 8u] >> run", "at % 8u] >> (run / 2u)")),
        (Q5K, ("row * params.k4 + i", "row * params.k4")),
    ] {
        let cases: Vec<Case> = shapes(storage)
            .iter()
            .map(|(form, blocks)| read4(*form, blocks))
            .collect();
        check(&cases, 0.0, flip);
    }
    for (storage, flip) in [
        (F16, ("at & 1u", "~at & 1u")),
        (Q8_0, ("[at % 4u]", "[3u - at % 4u]")),
    ] {
        let cases: Vec<Case> = shapes(storage)
            .iter()
            .map(|(form, blocks)| read1(*form, blocks))
            .collect();
        check(&cases, 0.0, flip);
    }
}

#[test]
fn packed_halves_that_are_not_finite_stay_so() {
    let Some(device) = gpu() else { return };
    let form = StoredMatrix::new(F16, [1, 4]).unwrap();
    let blocks: Vec<u8> = [0x7c00u16, 0xfc00, 0x7e00, 0xfc01]
        .iter()
        .flat_map(|half| half.to_le_bytes())
        .collect();
    let case = read4(form, &blocks);
    let found: Vec<f32> = case.device(case.kernel, &device.inner())[0]
        .iter()
        .map(|&word| f32::from_bits(word))
        .collect();
    assert!(
        found[..2] == [f32::INFINITY, f32::NEG_INFINITY] && found[2].is_nan() && found[3].is_nan(),
        "{found:?}"
    );
}

type Shape = (usize, usize, usize);

type Stem<'a> = &'a dyn Fn(Shape, StorageType) -> Case;

/// Makes the same launch on the decoded weights, for which the plane, the last parameter, does not matter.
fn on_decoded(packed: &Case, dense: Case, storage: StorageType, weights: usize) -> Case {
    let mut buffers = packed.buffers.clone();
    buffers[0] = storage.decode(&packed.buffers[0]);
    buffers[0].truncate(weights);
    let mut params = packed.params.clone();
    if let Some(plane) = params.last_mut() {
        *plane = 0;
    }
    Case {
        kernel: dense.kernel,
        buffers,
        params,
        groups: packed.groups,
    }
}

fn same_bits(
    device: &Device,
    make: Stem<'_>,
    rows: &[usize],
    (m, k): (usize, usize),
    storage: StorageType,
) {
    for &n in rows {
        let packed = make((n, m, k), storage);
        let dense = on_decoded(&packed, make((n, m, k), F32), storage, m * k);
        let (found, expected) = (
            packed.device(packed.kernel, device),
            dense.device(dense.kernel, device),
        );
        assert!(
            found == expected,
            "{} of {n} rows: other bits than {}",
            packed.kernel.name,
            dense.kernel.name
        );
    }
}

/// Each stem gives the bits that it gives on the decoded weights. Stems that take long to compile use every third storage type here, each stem
/// another third; with `TABTUNE_BLOCKS` all of them.
#[test]
fn packed_stems_give_the_bits_of_the_decoded_weights() {
    let Some(device) = gpu() else { return };
    let rows = [1, 2, 3, 31, 64, 257];
    let short: [Stem<'_>; 3] = [
        &|s, t| forward(&kernels::FORWARD, s, t),
        &|s, t| forward(&kernels::ROW, s, t),
        &|s, t| backward_input(&kernels::BACKWARD_INPUT, s, t),
    ];
    let any: [Stem<'_>; 3] = [
        &|s, t| forward(&kernels::FORWARD_ANY, s, t),
        &|s, t| backward_input(&kernels::BACKWARD_INPUT_ANY, s, t),
        &lookup,
    ];
    let long: [(Stem<'_>, usize); 12] = [
        (&|s, t| block(s, t, false), 36),
        (&|s, t| forward(&kernels::FORWARD_TILE, s, t), 37),
        (&|(_, m, k), t| transposed([m, k], t), 36),
        (
            &|s, t| tile(&kernels::BACKWARD_TILE, s, t, [true, false], [false, false]),
            37,
        ),
        (
            &|(n, m, k), t| low_rank::forward(false, (n, m, k, 8), t, F32),
            36,
        ),
        (
            &|(n, m, k), t| low_rank::backward(false, (n, m, k, 8), t, F32, false),
            36,
        ),
        (&|s, t| forward(&kernels::FORWARD_TILE_SMALL, s, t), 36),
        (
            &|s, t| {
                tile(
                    &kernels::BACKWARD_TILE_SMALL,
                    s,
                    t,
                    [true, false],
                    [false, false],
                )
            },
            36,
        ),
        (
            &|(n, m, k), t| low_rank::forward(true, (n, m, k, 8), t, F32),
            36,
        ),
        (
            &|(n, m, k), t| low_rank::backward(true, (n, m, k, 8), t, F32, false),
            36,
        ),
        (&|s, t| forward(&kernels::FORWARD_ANY_BLOCK, s, t), 37),
        (
            &|s, t| backward_input(&kernels::BACKWARD_INPUT_ANY_BLOCK, s, t),
            37,
        ),
    ];
    let all = std::env::var_os("TABTUNE_BLOCKS").is_some();
    for (i, storage) in PACKED.into_iter().enumerate() {
        for (stems, m) in [(&short, 36), (&any, 37)] {
            stems
                .iter()
                .for_each(|stem| same_bits(&device.inner(), stem, &rows, (m, 256), storage));
        }
        for (j, (stem, m)) in long.into_iter().enumerate() {
            if all || i % 3 == j % 3 {
                same_bits(&device.inner(), stem, &rows, (m, 256), storage);
            }
        }
    }
    if all {
        // The vocabulary of GPT-2, whose sums for dx are cut into slices.
        any.iter()
            .for_each(|stem| same_bits(&device.inner(), stem, &[1, 3], (50_257, 64), Q8_0));
    }
    // Rows of halves that are not a multiple of 4.
    for stem in any {
        same_bits(&device.inner(), stem, &[1, 2, 31], (5, 7), F16);
    }
}

/// Makes a lookup of rows in a table [m, k].
fn lookup((n, m, k): Shape, storage: StorageType) -> Case {
    let (weights, plane) = super::linear::weights([m, k], storage);
    let ids = (0..n as u32).map(|r| r * r % (m as u32 + 1)).collect();
    let params = embedding::ForwardParams {
        n,
        vocab: m,
        k,
        plane,
        keep: false,
    };
    Case::new(
        embedding::FORWARD.of(storage),
        [weights, ids],
        [poisoned(n * k)],
        &params,
        ((n * k) as u32).div_ceil(64),
    )
}
