//! Helpers of the test binary: devices, kernels on raw words, comparisons.

pub mod allocation;
pub mod families;
pub mod kernels;
pub mod packed;
pub mod record;
pub mod tape;

use std::sync::OnceLock;

use burn::tensor::Tensor;
pub use families::{families, family, gguf_families, golden};
pub use futures_lite::future::block_on;
use tabtune::device::{Device, DeviceKind};
use tabtune::gpu::{launch, read_data};
use tabtune::model::{Model, ParamVisitor};

/// Returns true if tests that would take minutes run all their cases: `TABTUNE_FULL=1`.
pub fn in_full() -> bool {
    std::env::var_os("TABTUNE_FULL").is_some()
}

/// Returns the name and the stored bytes of each parameter.
pub fn weights(model: &Model) -> Vec<(String, Vec<u8>)> {
    struct Bits(Vec<(String, Vec<u8>)>);
    impl ParamVisitor for Bits {
        fn visit<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) {
            self.0.push((
                name.to_string(),
                block_on(read_data(tensor)).unwrap().as_bytes().to_vec(),
            ));
        }
    }
    let mut bits = Bits(Vec::new());
    model.visit(&mut bits);
    bits.0
}

/// Opens the GPU, or a software adapter. Returns `None` if there is none, unless `REQUIRE_GPU=1`.
pub fn gpu() -> Option<Device> {
    static GPU: OnceLock<Option<Device>> = OnceLock::new();
    GPU.get_or_init(|| match block_on(Device::open(DeviceKind::Wgpu)) {
        Ok(device) => Some(device),
        Err(error) if std::env::var("REQUIRE_GPU").is_ok_and(|v| v == "1") => {
            panic!("REQUIRE_GPU=1, but {error}")
        }
        Err(error) => {
            eprintln!("skipped what needs a GPU: {error}");
            None
        }
    })
    .clone()
}

/// Opens a second device on a software adapter and treats it as a GPU, so that it runs the kernels of GPUs. Returns `None` if [`gpu`] is a real
/// GPU or absent.
pub fn as_a_gpu() -> Option<Device> {
    static AS_A_GPU: OnceLock<Option<Device>> = OnceLock::new();
    let open = || {
        gpu().filter(|gpu| launch::is_software(&gpu.inner()))?;
        let device = block_on(Device::open(DeviceKind::Software))
            .expect("a software adapter that opened before");
        launch::set_software(&device.inner(), false);
        Some(device)
    };
    AS_A_GPU.get_or_init(open).clone()
}

/// Returns the CPU, and every device that runs shaders.
pub fn devices() -> Vec<Device> {
    [Some(cpu()), gpu(), as_a_gpu()]
        .into_iter()
        .flatten()
        .collect()
}

/// Opens the CPU, which computes with the kernels' twins.
pub fn cpu() -> Device {
    block_on(Device::open(DeviceKind::Cpu)).expect("the CPU always opens")
}
