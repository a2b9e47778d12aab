//! tabtune's training compared with Burn's own operations: the two have no kernel, no derivative and no update rule in common.

use std::process::Command;

use burn::backend::DispatchDevice;
use burn::tensor::Device as TensorDevice;
use serde_json::Value;
use tabtune::config::Precision;
use tabtune::device::Device;
use tabtune::families::model_types;
use tabtune::gpu::check_device;
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune_tests::{block_on, cpu, devices, gpu, in_full};
use tabtune_witness::arithmetic::Arithmetic;
use tabtune_witness::{Bounds, Comparison, Planted, Subject, Track, by_stock, by_trainer, compare};

const STEPS: usize = 20;

fn stock(subject: &Subject, device: TensorDevice) -> Track {
    let track = block_on(by_stock(subject, device.autodiff())).unwrap();
    assert_eq!(track.losses.len(), STEPS);
    assert!(
        track.losses[STEPS - 5..].iter().sum::<f64>() < track.losses[..5].iter().sum::<f64>(),
        "it learns: {:?}",
        track.losses
    );
    track
}

fn agree(family: &str, found: &Comparison, what: &str) {
    assert_eq!(
        found.faults(Bounds::F32),
        Vec::<String>::new(),
        "{family} {what}"
    );
    assert!(
        found.gradients.len() > 10 && found.losses.len() == STEPS,
        "{family} {what}"
    );
}

/// Required bounds: 1e-5. Observed on llvmpipe: gradients ≤ 1.6e-6, changes ≤ 1.7e-5 of 1e-4, losses ≤ 1.9e-7.
#[test]
fn gradients_and_losses_are_those_of_burns_operations_on_every_device() {
    for family in model_types() {
        let subject = Subject::new(family, STEPS, None).unwrap();
        let witness = stock(&subject, TensorDevice::flex());
        for (at, device) in devices().iter().enumerate() {
            let ours = block_on(by_trainer(&subject, device)).unwrap();
            agree(
                family,
                &compare(&ours, &witness),
                &format!("device {at}, {}", device.info().adapter),
            );
        }
    }
}

#[test]
fn gradients_and_losses_are_those_of_burns_operations_in_shaders() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(
        block_on(Arithmetic::of(&gpu.inner())).unwrap(),
        Arithmetic::F32
    );
    // These two have every operation of the others except the biases of Qwen2 and the places of OLMo 2's norms.
    for family in if in_full() {
        model_types()
    } else {
        vec!["qwen3", "gpt2"]
    } {
        let subject = Subject::new(family, STEPS, None).unwrap();
        let ours = block_on(by_trainer(&subject, &cpu())).unwrap();
        agree(
            family,
            &compare(&ours, &stock(&subject, gpu.inner())),
            "stock operations on wgpu",
        );
    }
}

#[test]
fn planted_mistakes_are_found_and_their_tensors_named() {
    let find = |family, planted| {
        let subject = Subject::new(family, 2, Some(planted)).unwrap();
        let ours = block_on(by_trainer(&subject, &cpu())).unwrap();
        let found = compare(
            &ours,
            &block_on(by_stock(&subject, TensorDevice::flex().autodiff())).unwrap(),
        );
        (found.faults(Bounds::F32), found)
    };
    for family in ["llama", "qwen2", "qwen3"] {
        let (faults, _) = find(family, Planted::RopePairs);
        assert!(
            faults
                .iter()
                .any(|fault| fault
                    .starts_with("the gradient of model.layers.0.self_attn.q_proj.weight")),
            "{faults:?}"
        );
    }
    for family in model_types() {
        let (faults, _) = find(family, Planted::NormEps);
        let norm = match family {
            "gpt2" => "transformer.h.0.ln_1.weight",
            "olmo2" => "model.layers.0.post_attention_layernorm.weight",
            _ => "model.layers.0.input_layernorm.weight",
        };
        assert!(
            faults
                .iter()
                .any(|fault| fault.starts_with(&format!("the gradient of {norm}"))),
            "{faults:?}"
        );
        // Exactly the vectors are named, by the change of the step: gradients are those of the weights before it.
        let (faults, found) = find(family, Planted::VectorDecay);
        let vectors = found
            .changes
            .iter()
            .filter(|(name, _)| {
                ["norm", "ln_", "bias"]
                    .iter()
                    .any(|part| name.contains(part))
            })
            .count();
        let named = faults
            .iter()
            .filter(|fault| fault.starts_with("the first change of"))
            .count();
        assert!(
            vectors > 4 && named == vectors,
            "{} of {vectors}: {faults:?}",
            named
        );
        assert!(
            !faults.iter().any(|fault| fault.starts_with("the gradient")),
            "{faults:?}"
        );
        assert!(
            ["norm", "ln_", "bias"]
                .iter()
                .any(|part| found.worst_change().0.contains(part)),
            "{:?}",
            found.worst_change()
        );
    }
}

#[test]
fn the_command_says_what_agrees_and_what_does_not() {
    let program = crate::cli::binary()
        .with_file_name(format!("tabtune-witness{}", std::env::consts::EXE_SUFFIX));
    let run = |more: &[&str]| {
        let output = Command::new(&program)
            .args(["--device", "cpu", "--family", "gpt2", "--steps", "2"])
            .args(more)
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    let (code, text) = run(&[]);
    assert_eq!(code, Some(0), "{text}");
    for words in [
        "gpt2: tabtune on CPU, Burn's operations on Flex (CPU, f32)",
        "transformer.wpe.weight",
        "step 2",
        "Flex: agrees",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let (code, text) = run(&["--plant", "norm-eps"]);
    assert!(
        code == Some(1)
            && text.contains("Flex: DIFFERS")
            && text.contains("more: --json names all"),
        "{text}"
    );
    let (code, text) = run(&["--plant", "vector-decay", "--json"]);
    let line: Value = serde_json::from_str(&text).unwrap();
    let faults = line["faults"].as_array().unwrap();
    assert!(
        code == Some(1)
            && faults[0]
                .as_str()
                .unwrap()
                .starts_with("the first change of"),
        "{line}"
    );
    assert_eq!(
        (&line["family"], &line["device"], &line["arithmetic"]),
        (&"gpt2".into(), &"Flex".into(), &"f32".into())
    );
}

/// Burn gives a CUDA device the same type as a wgpu device.
#[test]
fn a_device_of_another_runtime_is_refused_before_it_is_opened() {
    let cuda = || {
        TensorDevice::new(DispatchDevice::Cube(cubecl::Device::Cuda(
            Default::default(),
        )))
    };
    for device in [cuda(), cuda().autodiff()] {
        let error = check_device(&device).unwrap_err();
        assert!(
            error.code() == "kernel.foreign-backend" && error.to_string().contains("Cuda"),
            "{error}"
        );
    }
    let bundle = Subject::new("llama", 1, None).unwrap().bundle;
    let opened = block_on(Model::from_bundle(
        &bundle,
        Precision::F32,
        &cuda(),
        &Interrupt::none(),
    ));
    assert_eq!(opened.unwrap_err().code(), "kernel.foreign-backend");
    assert!(
        devices()
            .iter()
            .map(Device::inner)
            .chain([TensorDevice::flex()])
            .all(|device| check_device(&device).is_ok())
    );
}
