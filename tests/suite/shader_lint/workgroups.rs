//! Checks that the products of a model keep a GPU busy: one sequence of 512 tokens of SmolLM2-135M, 576 wide and 1536 in between, whose 9
//! heads of 64 share 3 of keys and values. This test needs a device, because the operations choose kernels and workgroups.

use burn::tensor::Tensor;
use tabtune::gpu::trace;
use tabtune::ops::{self, AttentionShape};
use tabtune_tests::{as_a_gpu, gpu};

/// Number of processors of a large GPU, each of which needs at least one workgroup.
const ENOUGH: u32 = 128;

const TOKENS: usize = 512;

#[test]
fn lint_of_kernels_for_gpus_finds_launches_with_few_workgroups() {
    // A GPU, or a device that is treated as one.
    let Some(device) = as_a_gpu().or_else(gpu) else {
        return;
    };
    let ones = |rows: usize, columns: usize| {
        Tensor::<2>::ones([rows, columns], &device.autodiff()).require_grad()
    };
    let mut launched = Vec::new();
    let mut seen = |name: &str, passes: &dyn Fn() -> Tensor<2>| {
        trace::start();
        passes().sum().backward();
        launched.extend(
            trace::finish()
                .into_iter()
                .map(|launch| (format!("{} of {name}", launch.kernel.name), launch.groups)),
        );
    };
    for (name, rows, columns) in [("o", 576, 576), ("down", 576, 1536)] {
        let (x, w) = (ones(TOKENS, columns), ones(rows, columns));
        seen(name, &|| ops::linear(x.clone(), w.clone()));
    }
    let (x, mlp) = (ones(TOKENS, 576), [ones(1536, 576), ones(1536, 576)]);
    seen("gate and up", &|| {
        ops::gated(x.clone(), mlp.clone(), ops::GateFunction::Silu)
    });
    let shape = AttentionShape {
        batch_size: 1,
        seq_len: TOKENS,
        offset: 0,
        heads: 9,
        kv_heads: 3,
        head_dim: 64,
        window: None,
        scale: None,
        cap: None,
    };
    let (ws, tables) = (
        [576, 192, 192].map(|rows| ones(rows, 576)),
        [(); 2].map(|()| ones(TOKENS, 32).inner()),
    );
    let tables = tables.map(Tensor::from_inner);
    seen("attention", &|| {
        ops::self_attention(x.clone(), ws.clone(), tables.clone(), None, shape)
    });
    // Products; products and SwiGLU; products, rotation and attention, whose backward pass is two.
    assert_eq!(launched.len(), 2 * 2 + 2 * 2 + 2 * 3 + 1);
    let few: Vec<&(String, u32)> = launched.iter().filter(|launch| launch.1 < ENOUGH).collect();
    assert!(few.is_empty(), "{few:?}");
}
