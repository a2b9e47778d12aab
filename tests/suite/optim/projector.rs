//! Orthogonal projectors: made on the host and uploaded at each refresh, not at each step (shaders/README.md, "APOLLO projectors").

use burn::tensor::{DType, Tensor};
use serde_json::json;
use tabtune::device::Device;
use tabtune::gpu::Buffer;
use tabtune::optim::{Apollo, Gate, orthogonal};
use tabtune::random::{self, PROJECTOR};
use tabtune_tests::{block_on, cpu, gpu};

use super::state::{load, saved};
use super::{Run, infos, rule, upload};

const RANK: usize = 2;
const UPDATE_STEPS: u64 = 3;
/// A matrix with each side projected and one tensor viewed as a matrix, with their projected dimension; AdamW updates the first of `infos`.
const MATRICES: [(usize, &str, usize); 3] = [
    (1, "layer.1.weight", 16),
    (2, "layer.2.weight", 9),
    (3, "layer.3.weight", 4),
];

fn start(device: &Device) -> Run {
    let orthogonal = json!({"type": "apollo", "rank": RANK, "projector": "orthogonal", "update_steps": UPDATE_STEPS});
    Run::new(&rule(orthogonal), infos(DType::BF16), device)
}

fn expected(name: &str, refresh: u64, dim: usize) -> Vec<f32> {
    orthogonal(random::key(PROJECTOR, 42, name), refresh, dim, RANK)
}

/// Runs a step with matrices that are uploaded for it.
fn step_with_uploads(run: &mut Run, t: u32) {
    for (_, name, dim) in MATRICES {
        let matrix = expected(name, (u64::from(t) - 1) / UPDATE_STEPS, dim);
        run.optim
            .give_projector(name, upload(&matrix, DType::F32, &run.device));
    }
    run.step(t);
}

fn held(run: &Run) -> Vec<(u64, Tensor<1>)> {
    MATRICES
        .iter()
        .map(|(_, name, _)| run.optim.rule::<Apollo>(name).unwrap().projector().unwrap())
        .collect()
}

fn uploads_once_a_refresh(device: &Device) {
    let mut run = start(device);
    run.step(1);
    assert!(
        run.optim.rule::<Apollo>("layer.0.weight").is_none(),
        "AdamW moves it"
    );
    for t in 2..=7u64 {
        // Held during the step, so that a new upload cannot get the same location.
        let before = held(&run);
        run.step(t as u32);
        let refresh = (t - 1) / UPDATE_STEPS;
        for (((was, old), (is, new)), (_, name, dim)) in
            before.into_iter().zip(held(&run)).zip(MATRICES)
        {
            assert_eq!(is, refresh, "{name} at step {t}");
            let [old, place] = [old, new.clone()].map(|tensor| Buffer::from(tensor).place());
            assert_eq!(old == place, was == is, "{name} at step {t}");
            let values = block_on(new.into_data_async()).unwrap();
            assert_eq!(
                values.as_slice::<f32>().unwrap(),
                expected(name, refresh, dim),
                "{name} at step {t}"
            );
        }
    }
}

fn keeps_the_bits(device: &Device) {
    let mut uploaded = start(device);
    (1..=8).for_each(|t| step_with_uploads(&mut uploaded, t));
    assert!(
        uploaded
            .optim
            .rule::<Apollo>("layer.1.weight")
            .unwrap()
            .projector()
            .is_none(),
        "a given matrix is for one step"
    );
    let mut straight = start(device);
    (1..=8).for_each(|t| straight.step(t));
    assert_eq!(straight.bytes(), uploaded.bytes());

    // Saved between two refreshes and loaded where another refresh is held.
    let mut first = start(device);
    (1..=2).for_each(|t| first.step(t));
    let file = saved(&first);
    assert!(file.iter().all(|entry| !entry.name.ends_with("projector")));
    let mut second = start(device);
    (1..=5).for_each(|t| second.step(t));
    second.values = first.values.to_vec();
    load(&mut second, &file, device).unwrap();
    for t in 3..=8 {
        first.step(t);
        second.step(t);
    }
    assert_eq!(second.bytes(), straight.bytes());
    assert_eq!(first.bytes(), straight.bytes());
}

/// The built-in orthogonal projectors, given by the caller, and the refusals of others.
fn of_ones_own(device: &Device) {
    let own = |json: serde_json::Value| Run::new(&rule(json), infos(DType::BF16), device);
    let json = json!({"type": "apollo", "rank": RANK, "update_steps": UPDATE_STEPS});
    let mut given = own(json.clone());
    let optim = std::mem::replace(&mut given.optim, own(json.clone()).optim);
    given.optim = optim
        .with_projector("*", |of| {
            assert_eq!((of.rank, of.seed), (RANK, 42));
            expected(&of.parameter.name, of.refresh, of.dim)
        })
        .unwrap();
    let mut straight = start(device);
    for t in 1..=5 {
        given.step(t);
        straight.step(t);
    }
    assert_eq!(given.bytes(), straight.bytes());

    let refused = |pattern: &str| {
        own(json.clone())
            .optim
            .with_projector(pattern, |_| Vec::new())
    };
    // AdamW moves the first.
    let error = refused("layer.0.*").unwrap_err();
    assert_eq!(error.code(), "optim.groups");
    let gate = Gate::open(1.0, &device.inner());
    for wrong in [vec![0.5; 31], vec![f32::NAN; 32]] {
        let mut optim = own(json.clone())
            .optim
            .with_projector("layer.1.*", move |_| wrong.clone())
            .unwrap();
        let tensor = || upload(&[0.5; 16 * 24], DType::F32, device);
        let p = upload(&[0.5; 16 * 24], DType::BF16, device);
        let error = optim.step_param("layer.1.weight", p, Some(tensor()), 1e-2, &gate);
        assert_eq!(error.unwrap_err().code(), "config.invalid");
    }
}

#[test]
fn a_projector_of_ones_own_takes_the_place_of_the_seeded_one() {
    of_ones_own(&cpu());
    if let Some(device) = gpu() {
        of_ones_own(&device);
    }
}

#[test]
fn orthogonal_projectors_are_uploaded_once_a_refresh() {
    uploads_once_a_refresh(&cpu());
    if let Some(device) = gpu() {
        uploads_once_a_refresh(&device);
    }
}

#[test]
fn held_projectors_give_the_bits_of_fresh_ones() {
    keeps_the_bits(&cpu());
    if let Some(device) = gpu() {
        keeps_the_bits(&device);
    }
}
