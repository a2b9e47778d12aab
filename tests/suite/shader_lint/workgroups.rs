//! Whether the products of a model give a GPU enough to do: one sequence of 512 tokens of SmolLM2-135M, 576 wide and 1536 in between, whose 9 heads
//! of 64 share 3 of keys and values. This alone needs a device, since the operations choose kernels and workgroups.

use burn::tensor::Tensor;
use tabtune::gpu::trace;
use tabtune::ops::{self, AttentionShape};
use tabtune_tests::{as_a_gpu, gpu};

/// Processors of a large GPU, each of which wants a workgroup at least.
const ENOUGH: u32 = 128;

const TOKENS: usize = 512;

/// Launches with fewer workgroups, and how many they have. Products are called by rows and columns of their weights: those of q and o, k and v,
/// down.
const FEW: [(&str, u32); 1] = [("linear_forward_tile_small [192, 576]", 96)];

#[test]
fn lint_of_kernels_for_gpus_finds_launches_with_few_workgroups() {
    // A GPU, or what is taken for one.
    let Some(device) = as_a_gpu().or_else(gpu) else { return };
    let ones = |rows: usize, columns: usize| Tensor::<2>::ones([rows, columns], &device.autodiff()).require_grad();
    let mut launched = Vec::new();
    for weights @ [rows, columns] in [[576, 576], [192, 576], [1536, 576], [576, 1536]] {
        let (x, w) = (ones(TOKENS, columns), ones(rows, columns));
        trace::start();
        ops::linear(x, w).sum().backward();
        launched.extend(trace::finish().into_iter().map(|launch| (format!("{} {weights:?}", launch.kernel.name), launch.groups)));
    }
    let shape = AttentionShape { batch_size: 1, seq_len: TOKENS, offset: 0, heads: 9, kv_heads: 3, head_dim: 64 };
    let (q, k, v) = (ones(TOKENS, 576), ones(TOKENS, 192), ones(TOKENS, 192));
    trace::start();
    ops::attention(q, k, v, None, shape).sum().backward();
    launched.extend(trace::finish().into_iter().map(|launch| (launch.kernel.name.to_string(), launch.groups)));
    // The last adds up the heads that share keys: 512 tokens of 3 heads of 64, four elements a thread.
    assert_eq!(launched.len(), 2 * 4 + 4);
    let few: Vec<(&str, u32)> = launched.iter().map(|(name, groups)| (name.as_str(), *groups)).filter(|launch| launch.1 < ENOUGH).collect();
    assert_eq!(few, FEW);
}
