use burn::tensor::{DType, Device, Tensor, TensorData};
use half::bf16;
use tabtune::Error;
use tabtune::gpu::transfer::{PIECE_BYTES, Part, Upload, read_parts, zeros};
use tabtune::gpu::{Buffer, copy as u32_copy, read_data, run};
use tabtune::interrupt::Interrupt;
use tabtune_tests::{block_on, cpu, gpu};

/// Numbers of values before, at and behind the ends of pieces.
const SIZES: [usize; 9] = [
    1,
    255,
    256,
    257,
    PIECE_BYTES / 4 - 1,
    PIECE_BYTES / 4,
    PIECE_BYTES / 4 + 1,
    PIECE_BYTES / 2 + 1,
    2 * PIECE_BYTES / 2 + 255,
];

fn values(n: usize) -> Vec<f32> {
    (0..n)
        .map(|i| (i * 40_503 % 65_537) as f32 * 1.0001 - 30_000.0)
        .collect()
}

fn bytes(tensor: Tensor<1>) -> Vec<u8> {
    let len = tensor.dims()[0] * tensor.dtype().size();
    block_on(read_data(tensor)).unwrap().as_bytes()[..len].to_vec()
}

fn goes_up_and_comes_back(device: &Device) {
    for n in SIZES {
        let values = values(n);
        let packed: Vec<bf16> = values.iter().map(|&value| bf16::from_f32(value)).collect();
        for (dtype, expected) in [
            (DType::F32, bytemuck::cast_slice::<f32, u8>(&values)),
            (DType::BF16, bytemuck::cast_slice(&packed)),
        ] {
            // Runs of odd lengths, and all values at once.
            for run in [n, 99_999] {
                let mut upload = Upload::new(n, dtype, device);
                for run in values.chunks(run) {
                    upload.put(run).unwrap();
                    block_on(upload.settle(&Interrupt::none())).unwrap();
                }
                let tensor = upload.finish().unwrap();
                assert_eq!((tensor.dims(), tensor.dtype()), ([n], dtype));
                assert!(
                    bytes(tensor.clone()) == expected,
                    "{n} {dtype:?} in runs of {run}"
                );
                // Read back in parts, whose ends are at any byte; two at a time.
                let end = expected.len() as u64;
                let cuts = [0, (end / 3) | 1, end / 2, end].map(|at: u64| at.min(end));
                let parts: Vec<Part> = cuts
                    .windows(2)
                    .filter(|cut| cut[0] < cut[1])
                    .map(|cut| Part {
                        tensor: tensor.clone(),
                        bytes: cut[0]..cut[1],
                    })
                    .collect();
                assert!(
                    block_on(read_parts(&parts)).unwrap() == expected[..],
                    "{n} {dtype:?} by parts"
                );
            }
            assert!(
                bytes(zeros(n, dtype, device).unwrap())
                    .iter()
                    .all(|&byte| byte == 0),
                "{n} {dtype:?} zeros"
            );
        }
    }
}

#[test]
fn tensors_go_up_and_come_back_by_pieces_on_the_cpu() {
    goes_up_and_comes_back(&cpu().inner());
}

#[test]
fn tensors_go_up_and_come_back_by_pieces_on_the_gpu() {
    if let Some(device) = gpu() {
        goes_up_and_comes_back(&device.inner());
    }
}

#[test]
fn buffers_of_two_devices_in_one_launch_are_an_error_that_names_them() {
    let Some(gpu) = gpu() else { return };
    let on = |device: &Device| {
        Buffer::from(Tensor::<1>::from_data(
            TensorData::new(vec![1.0f32; 4], [4]),
            device,
        ))
    };
    let (here, there) = (cpu().inner(), gpu.inner());
    for (x, y) in [(&here, &there), (&there, &here)] {
        let found = run(
            &u32_copy::KERNEL,
            [on(x)],
            [on(y)],
            &u32_copy::Params::whole(4),
            1,
        );
        let Err(Error::MixedDevices { kernel, found }) = found.map(|_| ()) else {
            panic!("launched")
        };
        assert_eq!(kernel, "u32_copy");
        assert!(
            found[0].starts_with("x on the ")
                && found[1].starts_with("y on the ")
                && found.join(" ").contains("CPU"),
            "{found:?}"
        );
    }
}
