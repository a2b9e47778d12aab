//! Operations on packed matrices compared with the same operations on decoded weights: equal bits, values and gradients.

use burn::tensor::{Device, Int, Tensor, TensorData};
use tabtune::gpu::StorageType::{self, F16, Q4K, Q6K, Q8_0};
use tabtune::gpu::transfer::PIECE_BYTES;
use tabtune::gpu::{PackedUpload, StoredMatrix, read_data};
use tabtune::interrupt::Interrupt;
use tabtune::ops::{self, PackedMatrix};
use tabtune_tests::kernels::noise;
use tabtune_tests::packed::{PACKED, blocks, decoded, small_blocks, words};
use tabtune_tests::{block_on, cpu, devices, gpu};

fn matrix(storage: StorageType, shape: [usize; 2], device: &Device) -> PackedMatrix {
    let form = StoredMatrix::new(storage, shape).unwrap();
    block_on(PackedMatrix::upload(
        &small_blocks(storage, form.blocks(), 5),
        form,
        device,
    ))
    .unwrap()
}

fn bits<const D: usize>(tensor: Tensor<D>) -> Vec<u32> {
    let data = block_on(read_data(tensor)).unwrap();
    data.as_bytes()
        .as_chunks()
        .0
        .iter()
        .map(|bytes| u32::from_le_bytes(*bytes))
        .collect()
}

/// Returns the bits of an operation on x [n, k], and of its gradient for x.
fn with_gradient(
    device: &Device,
    shape: [usize; 2],
    op: impl Fn(Tensor<2>) -> Tensor<2>,
) -> [Vec<u32>; 2] {
    let made = |shape: [usize; 2], seed| {
        Tensor::<2>::from_data(
            TensorData::new(noise(shape[0] * shape[1], seed), shape),
            device,
        )
    };
    let x = made(shape, 1).require_grad();
    let y = op(x.clone());
    let gradients = (y.clone() * made(y.dims(), 2)).sum().backward();
    [
        bits(y.inner()),
        bits(x.grad(&gradients).expect("x has a gradient")),
    ]
}

#[test]
fn packed_products_have_the_bits_of_the_decoded_weights() {
    for device in devices() {
        // Every type on the device that compiles nothing; elsewhere the stems have their own test.
        let types = if device.inner() == cpu().inner() {
            PACKED.to_vec()
        } else {
            vec![Q8_0, Q4K]
        };
        for storage in types {
            for (n, m) in [(1, 40), (3, 40), (33, 256), (7, 37)] {
                let w = matrix(storage, [m, 256], &device.inner());
                let dense = Tensor::from_inner(w.decoded());
                let on = device.autodiff();
                let name = format!(
                    "{} [{m}, 256], {n} rows, on {}",
                    storage.name(),
                    device.info().adapter
                );
                let found = with_gradient(&on, [n, 256], |x| ops::packed_linear(x, &w));
                assert!(
                    found == with_gradient(&on, [n, 256], |x| ops::linear(x, dense.clone())),
                    "linear {name}"
                );
                let found = with_gradient(&on, [n, m], |x| ops::packed_conv1d(x, &w));
                assert!(
                    found == with_gradient(&on, [n, m], |x| ops::conv1d(x, dense.clone())),
                    "conv1d {name}"
                );
                let ids = |n: usize| (0..n as i32).map(|r| r * r % m as i32).collect::<Vec<_>>();
                let targets = Tensor::<1, Int>::from_data(TensorData::new(ids(n), [n]), &on);
                let loss = |loss: Tensor<1>| loss.reshape([1, 1]);
                let found = with_gradient(&on, [n, 256], |x| {
                    loss(ops::packed_head_loss(x, &w, targets.clone(), 2, None))
                });
                let expected = with_gradient(&on, [n, 256], |x| {
                    loss(ops::head_loss(x, dense.clone(), targets.clone(), 2, None))
                });
                assert!(found == expected, "head_loss {name}");
            }
        }
    }
}

#[test]
fn packed_rows_are_those_of_the_decoders() {
    for device in devices() {
        for storage in PACKED {
            let form = StoredMatrix::new(storage, [7, 512]).unwrap();
            let blocks = blocks(storage, form.blocks(), 3);
            let w = block_on(PackedMatrix::upload(&blocks, form, &device.inner())).unwrap();
            let expected = decoded(storage, &blocks);
            assert!(
                bits(w.decoded()) == expected,
                "{} on {}",
                storage.name(),
                device.info().adapter
            );
            assert!(
                w.bytes() <= blocks.len() + 8,
                "{}: {} bytes for {}",
                storage.name(),
                w.bytes(),
                blocks.len()
            );
            // Ids of a training batch, one of which is not a token.
            let ids = Tensor::<1, Int>::from_data([2, 6, 2, -100, 7], &device.autodiff());
            let rows = bits(ops::packed_embedding(&w, ids).inner());
            let row = |id: usize| expected[512 * id..][..512].to_vec();
            assert!(
                rows == [row(2), row(6), row(2), vec![0; 512], vec![0; 512]].concat(),
                "{}",
                storage.name()
            );
        }
    }
}

/// Uploads more than a piece, an odd number of blocks, and runs that end inside a block.
fn goes_up_by_pieces(device: &Device) {
    for (storage, shape) in [
        (Q8_0, [257, 32 * 1021]),
        (Q6K, [3, 256 * 20_001]),
        (F16, [5, 7]),
        (F16, [1025, 4099]),
        (Q8_0, [1, 32]),
    ] {
        let form = StoredMatrix::new(storage, shape).unwrap();
        let blocks = blocks(storage, form.blocks(), 11);
        assert!(blocks.len() < 100 || blocks.len() > PIECE_BYTES);
        let mut upload = PackedUpload::new(form, device);
        for run in blocks.chunks(999_983) {
            upload.put_bytes(run).unwrap();
            block_on(upload.settle(&Interrupt::none())).unwrap();
        }
        let w = PackedMatrix::of(upload).unwrap();
        assert_eq!((w.shape(), w.words().dims()), (shape, [form.words()]));
        assert!(
            bits(w.words()) == words(storage, &blocks),
            "{} {shape:?}",
            storage.name()
        );
    }
}

#[test]
fn packed_matrices_go_up_by_pieces() {
    goes_up_by_pieces(&cpu().inner());
    if let Some(device) = gpu() {
        goes_up_by_pieces(&device.inner());
    }
}

#[test]
fn packed_rows_end_with_a_block() {
    assert_eq!(StoredMatrix::new(Q4K, [3, 128]), None);
    assert_eq!(StorageType::of_ggml(8), Some(Q8_0));
    assert_eq!(StorageType::of_ggml(10), None, "Q2_K has no chunk");
    let form = StoredMatrix::new(Q8_0, [3, 64]).unwrap();
    assert_eq!((form.blocks(), form.words(), form.plane()), (6, 51, 48));
    let form = StoredMatrix::new(Q4K, [3, 256]).unwrap();
    assert_eq!((form.blocks(), form.words(), form.plane()), (3, 108, 0));
}
