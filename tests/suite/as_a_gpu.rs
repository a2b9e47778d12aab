//! The kernels that GPUs run in place of those for software adapters: the tests of operations, models and steps once more, in a process that
//! takes its adapter for a GPU.

use std::process::Command;

use burn::tensor::Tensor;
use tabtune::kernels::{self, trace};
use tabtune_tests::{AS_A_GPU, gpu};

#[test]
fn operations_and_models_hold_with_the_kernels_of_a_gpu() {
    if std::env::var_os(AS_A_GPU).is_some() || gpu().is_none() {
        return;
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    let found =
        again.args(["kernels::gradients::", "kernels::truth::", "model::", "release::", "as_a_gpu::"]).env(AS_A_GPU, "1").output().unwrap();
    let (output, errors) = (String::from_utf8_lossy(&found.stdout), String::from_utf8_lossy(&found.stderr));
    assert!(found.status.success(), "{output}\n{errors}");
    for test in ["gradients_equal_jax_and_those_of_recomputed_blocks", "products_go_by_tiles"] {
        assert!(output.contains(&format!("{test} ... ok")), "{output}");
    }
}

#[test]
fn products_go_by_tiles() {
    // Recording is for the whole process: only where no other test records.
    let Some(device) = gpu().filter(|_| std::env::var_os(AS_A_GPU).is_some()) else { return };
    let ones = |rows: usize, columns: usize| Tensor::<2>::ones([rows, columns], &device.autodiff()).require_grad();
    trace::start();
    kernels::linear(ones(66, 76), ones(132, 76)).sum().backward();
    let used: Vec<&str> = trace::finish().iter().filter(|l| l.words.contains(&(132 * 76))).map(|l| l.kernel.name).collect();
    assert_eq!(used, ["linear_forward_tile", "linear_backward_tile"]);
}
