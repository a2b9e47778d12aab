//! The kernels that GPUs run in place of those for software adapters: both kinds of device in one process.

use burn::tensor::Tensor;
use tabtune::device::Device;
use tabtune::gpu::trace;
use tabtune::ops;
use tabtune_tests::{as_a_gpu, gpu};

/// The kernels of a product with 66 rows and its gradients.
fn of_a_product(device: &Device) -> Vec<&'static str> {
    let ones = |rows: usize, columns: usize| Tensor::<2>::ones([rows, columns], &device.autodiff()).require_grad();
    let (x, w) = (ones(66, 76), ones(132, 76));
    trace::start();
    ops::linear(x, w).sum().backward();
    trace::finish().iter().filter(|l| l.words.contains(&(132 * 76))).map(|l| l.kernel.name).collect()
}

#[test]
fn products_go_by_tiles_or_blocks_as_their_device_wants() {
    let (Some(software), Some(taken_for_a_gpu)) = (gpu(), as_a_gpu()) else { return };
    for _ in 0..2 {
        assert_eq!(of_a_product(&taken_for_a_gpu), ["linear_forward_tile_small", "linear_backward_tile_small"]);
        assert_eq!(of_a_product(&software), ["linear_forward_block", "linear_backward_block"]);
    }
}
