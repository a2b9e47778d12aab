//! Not a test of speed but a way to measure it: `cargo test … speed -- --ignored --nocapture`.

use burn::tensor::{Distribution, Tensor};
use std::time::Instant;
use tabtune::kernels;
use tabtune_tests::{block_on, gpu};

fn wait(tensor: Tensor<2>) {
    block_on(tensor.slice([0..1, 0..1]).into_data_async()).unwrap();
}

#[test]
#[ignore = "a measurement"]
fn linear_speed() {
    let Some(device) = gpu() else { return };
    let device = device.inner();
    for (n, m, k) in [(512, 1024, 128), (512, 128, 128), (512, 344, 128), (512, 128, 344), (512, 128, 341), (1, 1024, 576), (64, 1536, 576)] {
        let x = Tensor::<2>::random([n, k], Distribution::Default, &device);
        let w = Tensor::<2>::random([m, k], Distribution::Default, &device);
        let dy = Tensor::<2>::random([n, m], Distribution::Default, &device);
        let ops: [(&str, &dyn Fn() -> Tensor<2>); 3] = [
            ("forward", &|| kernels::linear(x.clone(), w.clone())),
            ("dx", &|| kernels::conv1d(dy.clone(), w.clone())),
            ("stock", &|| x.clone().matmul(w.clone().transpose())),
        ];
        for (name, op) in ops {
            wait(op());
            let start = Instant::now();
            let runs = 5;
            for _ in 0..runs {
                op();
            }
            wait(op());
            let secs = start.elapsed().as_secs_f64() / f64::from(runs + 1);
            println!("{name:8} {n}x{m}x{k}: {:.2} ms, {:.2} GFLOP/s", secs * 1e3, 2.0 * (n * m * k) as f64 / secs / 1e9);
        }
    }
}
