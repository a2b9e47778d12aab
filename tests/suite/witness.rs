//! tabtune's training compared with Burn's own operations: the two have no kernel, no derivative and no update rule in common.

use std::process::Command;

use burn::backend::DispatchDevice;
use burn::tensor::Device as TensorDevice;
use serde_json::Value;
use tabtune::config::Precision;
use tabtune::device::Device;
use tabtune::gpu::check_device;
use tabtune::interrupt::Interrupt;
use tabtune::model::Model;
use tabtune_tests::{block_on, cpu, devices, gpu, in_full};
use tabtune_witness::arithmetic::Arithmetic;
use tabtune_witness::{
    Bounds, Comparison, MODEL_TYPES, Method, Planted, Rule, Subject, Track, by_stock, by_trainer,
    compare,
};

const STEPS: usize = 20;
/// Steps after which what rules keep has an effect on losses.
const FEW_STEPS: usize = 4;
/// Bounds on the adapters of tests, whose sums differ from Burn's in order alone.
const BOUNDS: Bounds = Bounds {
    gradient: 2e-6,
    ..Bounds::F32
};

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
    let bounds = Bounds {
        // Gradients of Qwen2's key biases are sums of terms that cancel: 2.1e-6 apart in the kernels of GPUs.
        gradient: if family == "qwen2" { 3e-6 } else { 2e-6 },
        ..BOUNDS
    };
    assert_eq!(
        found.faults(bounds),
        Vec::<String>::new(),
        "{family} {what}"
    );
    assert!(
        found.gradients.len() > 10 && found.losses.len() == STEPS,
        "{family} {what}"
    );
}

/// Required bounds: gradients 2e-6, changes 1e-4, losses 1e-5. Observed on llvmpipe: gradients ≤ 1.7e-6, changes ≤ 1.7e-5 of 1e-4, losses ≤ 1.9e-7.
#[test]
fn gradients_and_losses_are_those_of_burns_operations_on_every_device() {
    for family in MODEL_TYPES {
        let subject = Subject::new(family, Method::ADAMW, STEPS, None).unwrap();
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
        MODEL_TYPES.to_vec()
    } else {
        vec!["qwen3", "gpt2"]
    } {
        let subject = Subject::new(family, Method::ADAMW, STEPS, None).unwrap();
        let ours = block_on(by_trainer(&subject, &cpu())).unwrap();
        agree(
            family,
            &compare(&ours, &stock(&subject, gpu.inner())),
            "stock operations on wgpu",
        );
    }
}

/// The other rules, and every rule in bf16, on a family that has every rule of a name and a shape. Observed: changes ≤ 5.2e-5 of 1e-4; of the
/// parameters in bf16 85 % are equal before they are rounded, and losses differ by 3.2e-4 at most, of 2e-3.
#[test]
fn every_rule_in_f32_and_bf16_is_that_of_burns_operations() {
    let gpu = gpu();
    for family in if in_full() {
        MODEL_TYPES.to_vec()
    } else {
        vec!["qwen3"]
    } {
        for method in Method::all() {
            if method == Method::ADAMW {
                continue;
            }
            let [rule, precision] = method.words();
            let subject = Subject::new(family, method, FEW_STEPS, None).unwrap();
            let by_burn = |device: TensorDevice| block_on(by_stock(&subject, device.autodiff()));
            let on_flex = by_burn(TensorDevice::flex()).unwrap();
            let on_gpu = gpu.as_ref().map(|gpu| by_burn(gpu.inner()).unwrap());
            for device in devices() {
                let ours = block_on(by_trainer(&subject, &device)).unwrap();
                for (witness, on) in [(Some(&on_flex), "Flex"), (on_gpu.as_ref(), "wgpu")] {
                    let Some(witness) = witness else { continue };
                    let adapter = &device.info().adapter;
                    let what = format!("{family}, {rule} in {precision}, {adapter} and {on}");
                    let found = compare(&ours, witness);
                    assert_eq!(
                        found.faults(BOUNDS.in_precision(method.precision)),
                        Vec::<String>::new(),
                        "{what}"
                    );
                    assert!(
                        found.gradients.len() > 10 && found.losses.len() == FEW_STEPS,
                        "{what}"
                    );
                    if method.precision == Precision::Bf16 {
                        check_rounded_parameters(&ours, witness, &what);
                    }
                }
            }
        }
    }
}

/// Most parameters are equal before they are rounded, and no two are stored more than one unit apart.
fn check_rounded_parameters(ours: &Track, witness: &Track, what: &str) {
    // Places of bf16 values, in order.
    let place = |x: f32| (x.to_bits() >> 16 & 0x7fff) as i32 * x.signum() as i32;
    let (mut all, mut equal) = (0, 0);
    for (name, values) in ours.rounded.iter().filter(|(name, _)| !name.contains(':')) {
        for ([x, stored_x], [y, stored_y]) in values.iter().zip(&witness.rounded[name]) {
            all += 1;
            equal += usize::from(x == y);
            let apart = (place(*stored_x) - place(*stored_y)).abs();
            assert!(
                apart <= usize::from(x != y) as i32,
                "{what}: {name}, {x} and {y}"
            );
        }
    }
    assert!(
        all > 20_000 && 4 * equal > 3 * all,
        "{what}: {equal} of {all}"
    );
}

/// Trains two steps with a mistake on Burn's side, and returns what is found.
fn find(family: &'static str, method: Method, planted: Planted) -> (Vec<String>, Comparison) {
    let subject = Subject::new(family, method, 2, Some(planted)).unwrap();
    let ours = block_on(by_trainer(&subject, &cpu())).unwrap();
    let witness = block_on(by_stock(&subject, TensorDevice::flex().autodiff())).unwrap();
    let found = compare(&ours, &witness);
    (found.faults(BOUNDS.in_precision(method.precision)), found)
}

#[test]
fn mistakes_planted_in_rules_and_rounding_are_found() {
    let in_f32 = |rule| Method {
        rule,
        precision: Precision::F32,
    };
    let in_bf16 = |rule| Method {
        rule,
        precision: Precision::Bf16,
    };
    for (planted, method, named) in [
        (
            Planted::UpdateClip,
            in_f32(Rule::Adafactor),
            "the first change of model.norm.weight",
        ),
        (
            Planted::ProjectionScale,
            in_f32(Rule::Apollo),
            "the first change of model.layers.0.mlp.up_proj.weight",
        ),
        (
            Planted::PlainMomentum,
            in_f32(Rule::Sgd),
            "the first change of model.norm.weight",
        ),
        (
            Planted::NearestRounding,
            in_bf16(Rule::Apollo),
            "the rounding of model.embed_tokens.weight",
        ),
        (
            Planted::OneStream,
            in_bf16(Rule::Adamw),
            "the rounding of model.embed_tokens.weight:v",
        ),
    ] {
        assert!(method.has(planted));
        let (faults, _) = find("qwen3", method, planted);
        assert!(
            faults.iter().any(|fault| fault.starts_with(named)),
            "{planted:?}: {faults:?}"
        );
    }
    // The limit begins with the second step, so only the loss of the third shows it.
    let method = in_f32(Rule::Apollo);
    let subject = Subject::new("qwen3", method, 4, Some(Planted::GrowthLimit)).unwrap();
    let ours = block_on(by_trainer(&subject, &cpu())).unwrap();
    let witness = block_on(by_stock(&subject, TensorDevice::flex().autodiff())).unwrap();
    let faults = compare(&ours, &witness).faults(BOUNDS);
    assert!(
        matches!(&faults[..], [fault] if fault.starts_with("the loss of step 3")),
        "{faults:?}"
    );
}

#[test]
fn planted_mistakes_are_found_and_their_tensors_named() {
    let find = |family, planted| find(family, Method::ADAMW, planted);
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
    for family in MODEL_TYPES {
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
                let is_vector = ["norm", "ln_", "bias"]
                    .iter()
                    .any(|part| name.contains(part));
                is_vector && !name.contains(':')
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
            .args(["--rule", "adamw", "--precision", "f32"])
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
        "gpt2, adamw in f32: tabtune on CPU, Burn's operations on Flex (CPU, f32)",
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
    // AdamW in f32 can have neither.
    for mistake in ["update-clip", "one-stream"] {
        assert_eq!(run(&["--plant", mistake]), (Some(1), String::new()));
    }
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
    let bundle = Subject::new("llama", Method::ADAMW, 1, None)
        .unwrap()
        .bundle;
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
