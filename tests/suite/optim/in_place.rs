//! Updates are written over the old values: no copy of a parameter or of its state is made.

use burn::tensor::{DType, Tensor};
use tabtune::device::Device;
use tabtune::gpu::Buffer;
use tabtune::optim::StateData;
use tabtune_tests::{as_a_gpu, cpu, gpu};

use super::{Run, infos, rules};

/// Returns the memory location of each parameter and state tensor, by name.
fn places(run: &Run) -> Vec<(String, usize)> {
    let place = |tensor: &Tensor<1>| Buffer::from(tensor.clone()).place();
    let mut places: Vec<(String, usize)> = run
        .infos
        .iter()
        .zip(&run.values)
        .map(|(info, value)| (info.name.clone(), place(value)))
        .collect();
    for (name, state) in run.optim.state_tensors() {
        if let StateData::Tensor(flat) = state.data {
            places.push((name, place(flat.first())));
        }
    }
    places
}

fn stays(device: &Device) {
    for rule in rules() {
        for dtype in [DType::F32, DType::BF16] {
            let mut run = Run::new(&rule, infos(dtype), device);
            run.step(1);
            let before = places(&run);
            // As in training, where the loss is read before an update: a buffer that the allocator's thread has not processed yet still has a
            // second handle.
            let settled = |run: &mut Run, t: u32| {
                device.inner().sync().unwrap();
                run.step(t);
            };
            (2..=4).for_each(|t| settled(&mut run, t));
            // bf16 tensors of an odd length are not whole words: Burn's CPU tensors hold them in bytes, which the twin copies.
            let whole = |name: &str| {
                dtype == DType::F32
                    || device.info().backend != "cpu"
                    || !name.starts_with("layer.0.")
            };
            for ((name, before), (_, after)) in before.iter().zip(places(&run)) {
                assert!(
                    *before == after || !whole(name),
                    "{rule:?} {dtype:?} on {}: {name} moved",
                    device.info().adapter
                );
            }
            // Another handle must keep its values, so one parameter has to move.
            let held = run.values[1].clone();
            let before = places(&run);
            settled(&mut run, 5);
            let moved = before
                .iter()
                .zip(places(&run))
                .filter(|((name, before), (_, after))| before != after && whole(name))
                .count();
            assert_eq!(moved, 1, "{rule:?} {dtype:?}");
            drop(held);
        }
    }
}

#[test]
fn updates_stay_in_place_on_the_cpu() {
    stays(&cpu());
}

#[test]
fn updates_stay_in_place_on_the_gpu() {
    [gpu(), as_a_gpu()]
        .into_iter()
        .flatten()
        .for_each(|device| stays(&device));
}
