//! Block-coordinate AdamW: the order of the blocks, parameters that do not train, refusals, and memory.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tabtune::config::{BlockCoordinateConfig, ModelConfig, Precision, TrainConfig};
use tabtune::device::Device;
use tabtune::error::{Error, Fault};
use tabtune::families::config_from_hf;
use tabtune::gpu::counter::dispatches;
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune::train::{NamedGradients, Trainer, accumulate, active_blocks, estimate, loss_sum};
use tabtune_tests::{block_on, cpu, devices, gpu, weights};

use crate::release;
use crate::resume::{LETTERS, dataset};

/// Returns a Llama of this many blocks.
pub fn shape(blocks: usize) -> ModelConfig {
    let json = json!({
        "model_type": "llama", "vocab_size": LETTERS.len(), "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": blocks,
        "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 8, "rms_norm_eps": 1e-5, "tie_word_embeddings": true
    });
    config_from_hf(&json).unwrap()
}

/// Returns the settings of a run over batches of 2·6 tokens, overridden by `changes`.
pub fn settings(changes: Value) -> TrainConfig {
    let base = json!({"steps": 12, "batch_size": 2, "seq_len": 6, "learning_rate": 1e-2, "seed": 3, "max_grad_norm": 0.5});
    TrainConfig::default()
        .overlaid(base)
        .unwrap()
        .overlaid(changes)
        .unwrap()
}

pub fn start(blocks: usize, config: TrainConfig, device: &Device) -> Result<Trainer, Error> {
    let model = block_on(Model::init(
        &shape(blocks),
        config.seed,
        config.precision,
        &device.inner(),
        &Interrupt::none(),
    ))
    .unwrap();
    Trainer::new(model, dataset(), config)
}

fn coordinates(json: Value) -> BlockCoordinateConfig {
    serde_json::from_value(json).unwrap()
}

#[test]
fn every_block_has_one_turn_in_a_cycle() {
    let all = [0, 1, 2, 4, 5, 7, 8];
    for (blocks, runs) in [(1, 7), (2, 4), (3, 3), (7, 1)] {
        for order in ["shuffled", "ascending", "descending"] {
            let config = coordinates(json!({"blocks": blocks, "interval": 3, "order": order}));
            for cycle in 0..5 {
                let steps = 3 * runs * cycle + 1..=3 * runs * (cycle + 1);
                let of_steps: Vec<&[usize]> = steps
                    .map(|step| active_blocks(&config, 9, &all, step))
                    .collect();
                assert!(
                    of_steps
                        .chunks(3)
                        .all(|turn| turn.iter().all(|active| *active == turn[0])),
                    "{of_steps:?}"
                );
                let mut seen: Vec<usize> = of_steps
                    .iter()
                    .step_by(3)
                    .flat_map(|active| active.to_vec())
                    .collect();
                if order == "ascending" {
                    assert_eq!(seen, all);
                }
                seen.sort_unstable();
                assert_eq!(seen, all, "{blocks} {order}");
            }
        }
    }
    let runs = |order: &str| {
        let config = coordinates(json!({"blocks": 2, "interval": 1, "order": order}));
        (1..=4)
            .map(|step| active_blocks(&config, 0, &[0, 1, 2, 3, 4], step).to_vec())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        runs("ascending"),
        [vec![0, 1], vec![2, 3], vec![4], vec![0, 1]]
    );
    assert_eq!(
        runs("descending"),
        [vec![4], vec![2, 3], vec![0, 1], vec![4]]
    );
}

#[test]
fn order_is_a_function_of_seed_and_cycle() {
    let (all, config) = (
        (0..30).collect::<Vec<usize>>(),
        coordinates(json!({"interval": 2})),
    );
    let cycle = |seed: u64, cycle: u64| {
        (0..30)
            .map(|turn| active_blocks(&config, seed, &all, 60 * cycle + 2 * turn + 1)[0])
            .collect::<Vec<_>>()
    };
    let orders: BTreeSet<Vec<usize>> = (0..4)
        .flat_map(|seed| (0..4).map(move |at| (seed, at)))
        .map(|(seed, at)| cycle(seed, at))
        .collect();
    assert_eq!(orders.len(), 16, "another order for each seed and cycle");
    assert!(
        (0..4).all(|seed| cycle(seed, 0) != all),
        "not the model's order"
    );
}

#[test]
fn all_blocks_at_once_are_adamw_bitwise() {
    let everything =
        json!({"blocks": 2, "interval": 2, "embedding": true, "norm": true, "head": true});
    for (device, family) in devices()
        .into_iter()
        .flat_map(|device| ["llama3", "qwen2", "gpt2"].map(|family| (device.clone(), family)))
    {
        for (precision, again) in [(Precision::F32, false), (Precision::Bf16, true)] {
            let run = |blocks: Value| {
                let rest = json!({"seq_len": 12, "gradient_accumulation_steps": 2, "gradient_checkpointing": again, "precision": precision});
                let config = settings(rest)
                    .overlaid(json!({"block_coordinate": blocks, "gradient_checkpointing": again}))
                    .unwrap();
                let data =
                    tabtune::data::Dataset::from_tokens((0..64).map(|i| i % 11).collect(), 0.0)
                        .unwrap();
                let mut trainer =
                    Trainer::new(release::model(family, precision, &device), data, config).unwrap();
                let batches = [release::batch(), release::batch()];
                let reports: Vec<_> = (0..5)
                    .map(|_| block_on(trainer.step_on(&batches)).unwrap())
                    .map(|step| [step.loss, step.grad_norm])
                    .collect();
                assert!(
                    reports.iter().all(|[_, norm]| *norm > 0.5),
                    "clipped: {reports:?}"
                );
                let state: Vec<_> = trainer
                    .optim()
                    .state_tensors()
                    .into_iter()
                    .map(|(name, state)| (name, block_on(state.bytes()).unwrap()))
                    .collect();
                (reports, weights(trainer.model()), state)
            };
            let (adamw, blocks) = (run(Value::Null), run(everything.clone()));
            assert!(
                adamw == blocks,
                "{family} {precision:?} on {:?}",
                device.info().adapter
            );
        }
    }
}

#[test]
fn what_rests_keeps_its_bits_and_has_no_state() {
    for device in devices() {
        let blocks = json!({"blocks": 1, "interval": 2, "order": "descending", "norm": true});
        let frozen = json!([{"pattern": "*.1.*", "frozen": true}, {"pattern": "*.mlp.*", "learning_rate_scale": 0.5}, {"pattern": "*"}]);
        let mut run = start(
            4,
            settings(json!({"block_coordinate": blocks, "groups": frozen, "precision": "bf16"})),
            &device,
        )
        .unwrap();
        let mut turns = Vec::new();
        for step in 1..=8u64 {
            let active = run.active_blocks().unwrap().to_vec();
            let [block] = active[..] else {
                panic!("{active:?}")
            };
            let trains = |name: &str| {
                name == "model.norm.weight" || name.contains(&format!("layers.{block}."))
            };
            let before = weights(run.model());
            block_on(run.step()).unwrap();
            for ((name, old), (_, new)) in before.iter().zip(weights(run.model())) {
                assert_eq!(
                    *old != new,
                    trains(name),
                    "{name} in step {step}, in which {block} trains"
                );
            }
            // After the last step of a turn, its state is already dropped.
            let [next] = run.active_blocks().unwrap()[..] else {
                panic!()
            };
            let with_state = run.optim().with_state();
            assert_eq!(
                with_state.len(),
                if next == block { 9 + 1 } else { 1 },
                "{with_state:?} after step {step}"
            );
            let count = |name: &str| run.optim().step_count(name);
            assert_eq!(count("model.norm.weight"), step);
            let of_block = count(&format!("model.layers.{block}.input_layernorm.weight"));
            assert_eq!(
                of_block,
                if next == block { (step - 1) % 2 + 1 } else { 0 },
                "t begins anew"
            );
            turns.push(block);
        }
        // Block 1 is frozen and has no turn.
        assert_eq!(turns, [3, 3, 2, 2, 0, 0, 3, 3]);
    }
}

/// In f32 the noise rounds nothing; in bf16 a second turn at the same t must not repeat the noise of the first.
#[test]
fn noise_is_that_of_the_step_of_the_run() {
    use burn::tensor::{DType, Tensor, TensorData};
    use tabtune::optim::{Gate, Optim, ParamInfo};
    let device = cpu();
    let gate = Gate::open(1.0, &device.inner());
    let info = ParamInfo {
        name: "w".into(),
        shape: vec![4, 64],
        dtype: DType::BF16,
        outside_blocks: false,
    };
    let config = TrainConfig {
        precision: Precision::Bf16,
        ..TrainConfig::default()
    };
    let first_step = |step: Option<u64>| {
        let mut optim = Optim::new(&config, std::slice::from_ref(&info)).unwrap();
        if let Some(step) = step {
            optim.rest(step, &|_| false);
        }
        let bf16 = TensorData::from_bytes_vec([0x80, 0x3f].repeat(256), [256], DType::BF16);
        let p = Tensor::<1>::from_data(bf16, (&device.inner(), DType::BF16));
        let grad = Tensor::<1>::ones([256], (&device.inner(), DType::F32));
        let p = optim.step_param("w", p, Some(grad), 1e-3, &gate).unwrap();
        block_on(tabtune::gpu::read_data(p))
            .unwrap()
            .as_bytes()
            .to_vec()
    };
    assert_eq!(first_step(None), first_step(Some(1)));
    assert_ne!(first_step(Some(1)), first_step(Some(9)));
}

/// Gradients exist only for parameters that train, whether blocks are recomputed or not, and equal those of the whole backward pass.
#[test]
fn gradients_exist_of_what_trains_alone() {
    for device in devices() {
        let model = block_on(Model::init(
            &shape(3),
            1,
            Precision::F32,
            &device.inner(),
            &Interrupt::none(),
        ))
        .unwrap();
        let batch = release::batch();
        let batch = tabtune::data::Batch {
            seq_len: 8,
            inputs: batch.inputs[..16].to_vec(),
            targets: batch.targets[..16].to_vec(),
            ..batch
        };
        for again in [false, true] {
            let gradients = |frozen: &dyn Fn(&str) -> bool| {
                let mut sums = NamedGradients::new();
                accumulate(&model, &batch, None, 1.0, again, frozen, &mut sums).unwrap();
                sums.into_iter()
                    .map(|(name, sum)| (name, block_on(tabtune::gpu::read_f32(sum)).unwrap()))
                    .collect::<Vec<_>>()
            };
            let all = gradients(&|_| false);
            for part in ["layers.0.", "layers.1.", "layers.2.", "model.norm"] {
                let expected: Vec<_> = all
                    .iter()
                    .filter(|(name, _)| name.contains(part))
                    .cloned()
                    .collect();
                assert!(!expected.is_empty());
                let found = gradients(&|name| !name.contains(part));
                assert_eq!(
                    found.iter().map(|(name, _)| name).collect::<Vec<_>>(),
                    expected.iter().map(|(name, _)| name).collect::<Vec<_>>()
                );
                for ((name, found), (_, expected)) in found.iter().zip(&expected) {
                    // Without a gradient of the weights, a product may be cut differently.
                    let scale = expected
                        .iter()
                        .fold(0f32, |most, value| most.max(value.abs()));
                    let off = found
                        .iter()
                        .zip(expected)
                        .fold(0f32, |most, (a, b)| most.max((a - b).abs()));
                    assert!(off <= 1e-5 * scale, "{name} {again}: {off} of {scale}");
                }
            }
        }
    }
}

/// Three more blocks below the one that trains cost only their forward pass.
#[test]
fn nothing_is_computed_backward_below_the_lowest_block() {
    let Some(device) = gpu() else { return };
    let launched_once = |blocks: usize, again: bool| {
        let config = settings(
            json!({"block_coordinate": {"order": "descending"}, "gradient_checkpointing": again}),
        );
        let mut run = start(blocks, config, &device).unwrap();
        block_on(run.step()).unwrap();
        let before = dispatches();
        block_on(run.step()).unwrap();
        dispatches() - before
    };
    // A step may have one launch more, see `least_of_a_step`. Here each step trains another block, so the same step of several runs counts.
    let launched =
        |blocks: usize, again: bool| (0..3).map(|_| launched_once(blocks, again)).min().unwrap();
    let forward = |blocks: usize| {
        let model = block_on(Model::init(
            &shape(blocks),
            1,
            Precision::F32,
            &device.inner(),
            &Interrupt::none(),
        ))
        .unwrap();
        let batch = tabtune::data::Batch {
            inputs: vec![1; 12],
            targets: vec![2; 12],
            batch_size: 2,
            seq_len: 6,
            document_starts: None,
        };
        let before = dispatches();
        loss_sum(&model, &batch).unwrap();
        dispatches() - before
    };
    for again in [false, true] {
        assert_eq!(
            launched(6, again) - launched(3, again),
            forward(6) - forward(3),
            "run again: {again}"
        );
    }
}

fn faults(outcome: Result<impl Sized, Error>) -> Vec<String> {
    match outcome.map(|_| ()) {
        Err(Error::InvalidConfig(faults)) => faults.iter().map(Fault::to_string).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn settings_that_contradict_it_are_refused() {
    let given = |json: Value| faults(TrainConfig::default().overlaid(json));
    assert_eq!(
        given(json!({"block_coordinate": {"order": "random", "embeddings": true}})),
        [
            r#"block_coordinate.order: expected one of "shuffled", "ascending", "descending", found "random""#,
            "block_coordinate.embeddings: expected one of blocks, interval, order, embedding, norm, head, found an unknown key",
        ]
    );
    assert_eq!(
        given(json!({"block_coordinate": {"blocks": 0, "interval": 0}})),
        [
            "block_coordinate.blocks: expected an integer ≥ 1, found 0",
            "block_coordinate.interval: expected an integer ≥ 1, found 0"
        ]
    );
    assert_eq!(
        given(json!({"block_coordinate": 2})),
        ["block_coordinate: expected an object, or null, found 2"]
    );
    let released = json!({"block_coordinate": {}, "gradient_release": true, "max_grad_norm": 0});
    assert_eq!(
        given(released),
        [
            "gradient_release: expected false with block_coordinate, which clips and accumulates in as little memory, found true"
        ]
    );
    assert_eq!(
        given(json!({"block_coordinate": {}, "adapter": {}})),
        ["block_coordinate: expected null with an adapter, found an object"]
    );
    let sgd = json!({"type": "sgd"});
    assert_eq!(
        given(json!({"block_coordinate": {}, "optimizer": sgd})),
        ["optimizer.type: expected adamw with block_coordinate, found sgd"]
    );
    let group = |frozen: bool| json!([{"pattern": "*norm*", "optimizer": sgd, "frozen": frozen}, {"pattern": "*"}]);
    assert_eq!(
        given(json!({"block_coordinate": {}, "groups": group(false)})),
        ["groups[0].optimizer.type: expected adamw with block_coordinate, found sgd"]
    );
    TrainConfig::default()
        .overlaid(json!({"block_coordinate": {}, "groups": group(true)}))
        .unwrap();
    let config = settings(json!({"block_coordinate": {}}));
    assert!(config.gradient_checkpointing, "unless it is given");
    assert!(
        !settings(json!({"block_coordinate": {}, "gradient_checkpointing": false}))
            .gradient_checkpointing
    );
    assert_eq!(
        config
            .overlaid(json!({"block_coordinate": null}))
            .unwrap()
            .block_coordinate,
        None
    );
}

#[test]
fn a_model_without_so_many_blocks_is_refused() {
    let refused = |changes: Value| faults(start(3, settings(changes), &cpu()));
    let more = json!({"block_coordinate": {"blocks": 4}});
    let expected = [
        "block_coordinate.blocks: expected at most 3, the number of blocks that are not frozen, found 4",
    ];
    assert_eq!(refused(more.clone()), expected);
    // The plan reports the same.
    assert_eq!(
        faults(estimate(&shape(3), &settings(more), &|_| None)),
        expected
    );
    start(
        3,
        settings(json!({"block_coordinate": {"blocks": 3}})),
        &cpu(),
    )
    .unwrap();
    let frozen = json!([{"pattern": "{*layers.0.*,*embed*,model.norm.weight}", "frozen": true}, {"pattern": "*"}]);
    let named = json!({"blocks": 3, "embedding": true, "norm": true, "head": true});
    assert_eq!(
        refused(json!({"block_coordinate": named, "groups": frozen})),
        [
            "block_coordinate.blocks: expected at most 2, the number of blocks that are not frozen, found 3",
            "block_coordinate.embedding: expected false where groups freeze it, found true",
            "block_coordinate.norm: expected false where groups freeze it, found true",
            "block_coordinate.head: expected false where groups freeze it, found true",
        ]
    );
}

/// SmolLM2-135M, bf16, one sequence of 512 tokens.
#[test]
fn bytes_are_within_their_bounds() {
    let file = std::fs::read(format!("{}/golden/shapes.json", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let shape =
        config_from_hf(&serde_json::from_slice::<Value>(&file).unwrap()["SmolLM2-135M"]).unwrap();
    let need = |changes: Value| {
        let config = settings(
            json!({"batch_size": 1, "seq_len": 512, "precision": "bf16", "gradient_accumulation_steps": 4}),
        );
        estimate(&shape, &config.overlaid(changes).unwrap(), &|_| None).unwrap()
    };
    let (adamw, found) = (need(json!({})), need(json!({"block_coordinate": {}})));
    assert!(
        found.need_bytes <= 460_000_000 && adamw.need_bytes > 3 * found.need_bytes,
        "{} and {}",
        found.need_bytes,
        adamw.need_bytes
    );
    let beside_activations =
        found.parts.weights.unwrap() + found.parts.grads + found.parts.optimizer;
    assert!(
        beside_activations as f64 <= 2.4 * found.trained as f64,
        "{:?}",
        found.parts
    );
    // A block of 3.54 million values: an f32 gradient, two moments in bf16, norms in f32.
    assert_eq!(found.parts.grads, 4 * 3_540_096);
    assert_eq!(found.parts.optimizer, 4 * (3_540_096 - 1152) + 8 * 1152);
    // Parameters that are named in addition add their own bytes.
    let table = 49_152 * 576;
    assert_eq!(
        need(json!({"block_coordinate": {"embedding": true}}))
            .parts
            .grads
            - found.parts.grads,
        4 * table
    );
    let all = need(
        json!({"block_coordinate": {"blocks": 30, "embedding": true, "norm": true}, "gradient_checkpointing": false}),
    );
    assert_eq!(all, adamw);
}
