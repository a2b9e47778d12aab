//! Kernels for GPUs instead of those for software adapters, with both kinds of device in one process.

use burn::tensor::Tensor;
use serde_json::json;
use tabtune::config::Precision;
use tabtune::data::Batch;
use tabtune::device::Device;
use tabtune::families::config_from_hf;
use tabtune::gpu::trace;
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune::ops;
use tabtune::ops::loss::head::HeadPlan;
use tabtune::train::{NamedGradients, accumulate};
use tabtune_tests::{as_a_gpu, block_on, cpu, gpu};

/// Lists the kernels of a product with 66 rows and its gradients.
fn of_a_product(device: &Device) -> Vec<&'static str> {
    let ones = |rows: usize, columns: usize| {
        Tensor::<2>::ones([rows, columns], &device.autodiff()).require_grad()
    };
    let (x, w) = (ones(66, 76), ones(132, 76));
    trace::start();
    ops::linear(x, w).sum().backward();
    trace::finish()
        .iter()
        .map(|l| l.kernel.name)
        .filter(|name| name.starts_with("linear"))
        .collect()
}

#[test]
fn products_go_by_tiles_or_blocks_as_their_device_wants() {
    let (Some(software), Some(taken_for_a_gpu)) = (gpu(), as_a_gpu()) else {
        return;
    };
    for _ in 0..2 {
        assert_eq!(
            of_a_product(&taken_for_a_gpu),
            ["linear_forward_tile_small", "linear_backward_tile_small"]
        );
        assert_eq!(
            of_a_product(&software),
            [
                "linear_block",
                "linear_transpose",
                "linear_block",
                "linear_transpose",
                "linear_transpose",
                "linear_block"
            ]
        );
    }
}

type Gradients = Vec<(String, Vec<f32>)>;

/// Returns loss, gradients and kernels of a step of a GPT-2 whose vocabulary is not a multiple of 4.
fn step_of_gpt2(device: &Device) -> (f32, Gradients, Vec<&'static str>) {
    let json = json!({ "model_type": "gpt2", "n_embd": 32, "n_head": 4, "n_layer": 1, "n_positions": 64, "vocab_size": 53, "initializer_range": 0.2 });
    let model = block_on(Model::init(
        &config_from_hf(&json).unwrap(),
        7,
        Precision::F32,
        &device.inner(),
        &Interrupt::none(),
    ))
    .unwrap();
    let (inputs, targets) = (0..64).map(|i| (i * i / 3 % 53, (i * 7 + 2) % 53)).unzip();
    let batch = Batch {
        inputs,
        targets,
        batch_size: 1,
        seq_len: 64,
        document_starts: None,
    };
    let mut sums = NamedGradients::new();
    trace::start();
    let loss = accumulate(
        &model,
        &batch,
        None,
        1.0 / 64.0,
        false,
        &|_| false,
        &mut sums,
    )
    .unwrap();
    let kernels = trace::finish()
        .iter()
        .map(|launched| launched.kernel.name)
        .collect();
    let values = |tensor: Tensor<1>| tensor.into_data().try_to_vec::<f32>().unwrap();
    (
        values(loss)[0],
        sums.into_iter()
            .map(|(name, sum)| (name, values(sum)))
            .collect(),
        kernels,
    )
}

#[test]
fn head_of_any_vocabulary_goes_by_tiles() {
    let Some(device) = as_a_gpu() else { return };
    let ((expected, truth, _), (loss, gradients, kernels)) =
        (step_of_gpt2(&cpu()), step_of_gpt2(&device));
    assert!(
        kernels.len() > 20 && !kernels.iter().any(|name| name.contains("_any")),
        "{kernels:?}"
    );
    assert!(
        (loss / expected - 1.0).abs() <= 1e-6,
        "{loss}, not {expected}"
    );
    for ((name, found), (_, truth)) in gradients.iter().zip(&truth) {
        let square = |values: &mut dyn Iterator<Item = f32>| {
            values.map(|v| f64::from(v).powi(2)).sum::<f64>().sqrt()
        };
        let error = square(&mut found.iter().zip(truth).map(|(a, b)| a - b))
            / square(&mut truth.iter().copied());
        assert!(error <= 1e-5, "{name}: {error:e}");
    }
}

#[test]
fn runs_of_the_head_are_whole_tiles_within_the_plan() {
    // (rows of the plan, rows of the batch, rows of a run)
    for (rows, n, expected) in [
        (341, 512, 256),
        (341, 341, 341),
        (341, 682, 320),
        (110, 512, 64),
        (1000, 700, 700),
        (64, 65, 64),
        (40, 512, 40),
    ] {
        assert_eq!(
            HeadPlan { rows }.rows_of_a_run(n),
            expected,
            "{n} rows by {rows}"
        );
    }
}
