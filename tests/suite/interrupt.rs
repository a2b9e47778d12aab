//! Long calls that are interrupted: the points at which they check, and that nothing remains of what they had begun.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use tabtune::Error;
use tabtune::config::{ModelConfig, Precision, TrainConfig};
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune::train::Trainer;
use tabtune_tests::{block_on, cpu, gpu, weights};

use crate::resume::{config, dataset_split, open, save, shape};

thread_local! {
    static PAUSES: Cell<usize> = const { Cell::new(0) };
    static LAST: Cell<usize> = const { Cell::new(usize::MAX) };
    static INTERRUPT: Interrupt = Interrupt::giving_way(count);
}

/// Counts the pauses, and interrupts in the one that was set.
fn count() -> Pin<Box<dyn Future<Output = ()>>> {
    PAUSES.set(PAUSES.get() + 1);
    if PAUSES.get() == LAST.get() {
        INTERRUPT.with(Interrupt::request);
    }
    Box::pin(std::future::ready(()))
}

/// Makes an interrupt that takes effect in pause number `last`.
fn asking_at(last: usize) -> Interrupt {
    PAUSES.set(0);
    LAST.set(last);
    INTERRUPT.with(|interrupt| {
        interrupt.clear();
        interrupt.clone()
    })
}

fn pauses() -> usize {
    PAUSES.get()
}

fn aborted<T>(result: Result<T, Error>) {
    let error = result.map(|_| ()).unwrap_err();
    assert_eq!((error.code(), error.kind()), ("call.aborted", "ABORTED"));
}

fn trainer(device: &burn::tensor::Device, changes: serde_json::Value) -> Trainer {
    let config: TrainConfig = config(
        &json!({"type": "adamw"}),
        "f32",
        &json!({"type": "constant"}),
    )
    .overlaid(changes)
    .unwrap();
    let model = block_on(Model::init(
        &shape(),
        3,
        Precision::F32,
        device,
        &Interrupt::none(),
    ))
    .unwrap();
    Trainer::new(model, dataset_split(0.4), config).unwrap()
}

#[test]
fn step_that_is_given_up_between_micro_batches_leaves_no_trace() {
    for device in [Some(cpu()), gpu()].into_iter().flatten() {
        let start = || {
            trainer(
                &device.inner(),
                json!({"gradient_accumulation_steps": 4, "validation_fraction": 0.4}),
            )
        };
        let (mut straight, mut broken) = (start(), start());
        for last in [1, 2, 3] {
            broken.set_interrupt(asking_at(last));
            let before = (
                broken.progress(),
                broken.loader_state(),
                weights(broken.model()),
                broken.optim().with_state(),
            );
            aborted(block_on(broken.step()));
            assert_eq!(pauses(), last);
            // The interrupt is still requested, so this step does not even begin.
            aborted(block_on(broken.step()));
            assert_eq!(
                before,
                (
                    broken.progress(),
                    broken.loader_state(),
                    weights(broken.model()),
                    broken.optim().with_state()
                )
            );
            broken.set_interrupt(asking_at(usize::MAX));
            let (expected, found) = (
                block_on(straight.step()).unwrap(),
                block_on(broken.step()).unwrap(),
            );
            assert_eq!(
                (expected.loss, expected.grad_norm),
                (found.loss, found.grad_norm)
            );
            assert_eq!(pauses(), 3, "between four micro-batches");
        }
        assert_eq!(weights(straight.model()), weights(broken.model()));
        assert!(save(&straight) == save(&broken));
    }
}

#[test]
fn evaluation_is_ended_between_batches() {
    let mut run = trainer(&cpu().inner(), json!({"validation_fraction": 0.4}));
    run.set_interrupt(asking_at(usize::MAX));
    let whole = block_on(run.evaluate(None)).unwrap();
    let batches = pauses();
    assert!(batches > 2);
    run.set_interrupt(asking_at(2));
    aborted(block_on(run.evaluate(None)));
    run.set_interrupt(asking_at(usize::MAX));
    assert_eq!(block_on(run.evaluate(None)).unwrap(), whole);
}

#[test]
fn flag_of_the_caller_ends_an_evaluation_while_it_is_set() {
    let mut run = trainer(&cpu().inner(), json!({"validation_fraction": 0.4}));
    let asked = Arc::new(AtomicBool::new(false));
    run.set_interrupt(Interrupt::of(asked.clone()));
    let whole = block_on(run.evaluate(None)).unwrap();
    asked.store(true, Ordering::SeqCst);
    aborted(block_on(run.evaluate(None)));
    asked.store(false, Ordering::SeqCst);
    assert_eq!(block_on(run.evaluate(None)).unwrap(), whole);
}

#[test]
fn loading_pauses_between_pieces_and_can_be_ended_there() {
    // A table of 18 MiB: three pieces, two of which leave before it is whole.
    let large = ModelConfig {
        vocab_size: 70_000,
        hidden_size: 64,
        ..shape()
    };
    let device = cpu().inner();
    let init = |interrupt: &Interrupt| {
        block_on(Model::init(&large, 1, Precision::F32, &device, interrupt))
    };
    init(&asking_at(usize::MAX)).unwrap();
    let count = pauses();
    assert!(count >= 3, "{count}");
    for last in [1, count] {
        aborted(init(&asking_at(last)));
        assert_eq!(pauses(), last);
    }
}

#[test]
fn resume_is_ended_before_anything_is_loaded() {
    let mut run = trainer(&cpu().inner(), json!({"validation_fraction": 0.4}));
    block_on(run.step()).unwrap();
    let checkpoint = open(save(&run));
    let resumed = |interrupt: &Interrupt| {
        block_on(checkpoint.resume(dataset_split(0.4), None, &[], &cpu().inner(), interrupt))
    };
    let asked = asking_at(usize::MAX);
    asked.request();
    aborted(resumed(&asked));
    assert!(save(&resumed(&Interrupt::none()).unwrap()) == save(&run));
}
