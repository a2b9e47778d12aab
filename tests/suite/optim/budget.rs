//! Number of kernel launches of an update for each tensor, and of the gradient norm for all.

use burn::tensor::{DType, Tensor};
use tabtune::config::OptimizerConfig::{Adafactor, Apollo};
use tabtune::gpu::Buffer;
use tabtune::gpu::counter::dispatches;
use tabtune::optim::{ParamInfo, sum_of_squares};
use tabtune_tests::gpu;

use super::{Run, rules};

/// Counts the launches of a step of a running optimizer.
fn launched(run: &mut Run) -> u64 {
    run.step(1);
    // A buffer that the allocator's thread has not processed yet still has a second handle, and would be copied.
    run.device.inner().sync().unwrap();
    let before = dispatches();
    run.step(2);
    dispatches() - before
}

#[test]
fn updates_keep_their_budget_of_dispatches() {
    let Some(device) = gpu() else { return };
    for rule in rules() {
        for dtype in [DType::F32, DType::BF16] {
            // Shapes of one workgroup and of many; both sides of APOLLO; one dimension, for which it leaves the tensor to AdamW.
            for (shape, matrix) in [
                (vec![300, 700], true),
                (vec![40, 9], true),
                (vec![2, 5, 4], true),
                (vec![5000], false),
                (vec![7], false),
            ] {
                let info = ParamInfo {
                    name: "w".into(),
                    shape: shape.clone(),
                    dtype,
                    outside_blocks: false,
                };
                let found = launched(&mut Run::new(&rule, vec![info], &device));
                let expected = match (&rule, matrix) {
                    (Adafactor(_), true) => 4,
                    (Adafactor(_), false) => 2,
                    (Apollo(_), true) => 3,
                    _ => 1,
                };
                assert_eq!(found, expected, "{rule:?} {dtype:?} {shape:?}");
            }
        }
    }
}

/// From rank 8 on the projection is a product of its own: bounding, product, moments, limiter, update.
#[test]
fn apollo_by_a_product_takes_five_dispatches() {
    let Some(device) = gpu() else { return };
    let rule = serde_json::from_value(serde_json::json!({"type": "apollo", "rank": 8})).unwrap();
    for shape in [vec![300, 700], vec![40, 9], vec![2, 12, 24]] {
        let info = ParamInfo {
            name: "w".into(),
            shape: shape.clone(),
            dtype: DType::BF16,
            outside_blocks: false,
        };
        assert_eq!(
            launched(&mut Run::new(&rule, vec![info], &device)),
            5,
            "{shape:?}"
        );
    }
}

#[test]
fn the_norm_takes_a_dispatch_a_tensor_and_at_most_two_more() {
    let Some(device) = gpu() else { return };
    let ones = |n: usize| (Buffer::from(Tensor::<1>::ones([n], &device.inner())), n);
    // The large tensor has more partial sums than one last workgroup can add.
    for (sizes, more) in [
        (vec![1], 0),
        (vec![8, 300, 5000], 1),
        (vec![8, 300, 65_536 * 256], 2),
    ] {
        let gradients = sizes.iter().map(|&n| ones(n)).collect();
        let before = dispatches();
        let sum = sum_of_squares(gradients)
            .unwrap()
            .unwrap()
            .sum
            .into_scalar::<f32>();
        assert_eq!(
            dispatches() - before,
            sizes.len() as u64 + more,
            "{sizes:?}"
        );
        assert_eq!(
            f64::from(sum),
            sizes.iter().sum::<usize>() as f64,
            "{sizes:?}"
        );
    }
}
