//! The optimizers for any Burn module: refusals, parameters that are left alone, and a comparison with Burn's own run.

use burn::lr_scheduler::LrScheduler;
use burn::module::{Module, Param, ParamId};
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig};
use burn::optim::{GradientsParams, SgdConfig as BurnSgd};
use burn::tensor::activation::relu;
use burn::tensor::{DType, Device as TensorDevice, Int, Tensor, TensorData};
use tabtune::config::{FallingSchedule, GroupConfig, OptimizerConfig, ScheduleConfig, SgdConfig};
use tabtune::error::{Error, Fault};
use tabtune::gpu::Buffer;
use tabtune::model::layers::{self, Embedding};
use tabtune::optim::{Layout, Optim, OptimSettings, ParamInfo, Rule, Update, clip_factor};
use tabtune::parameters::{ParamMap, ParamVisitor, map, parameters, visit};
use tabtune::schedule::{Scheduler, learning_rate};
use tabtune_tests::kernels::noise;
use tabtune_tests::{block_on, cpu, gpu};

#[derive(Module, Debug)]
struct Mlp {
    first: Linear,
    norm: BatchNorm,
    last: Linear,
}

impl Mlp {
    fn new(device: &TensorDevice) -> Self {
        let norm = BatchNormConfig::new(16).init(device);
        let mlp = Self {
            first: LinearConfig::new(4, 16).init(device),
            norm,
            last: LinearConfig::new(16, 2).init(device),
        };
        map(mlp, &mut Start)
    }

    fn loss(&self, step: u32) -> Tensor<1> {
        let device = self.first.weight.device();
        let data = |n: usize, shape: [usize; 2], seed| {
            Tensor::<2>::from_data(TensorData::new(noise(n, seed), shape), &device)
        };
        let hidden = relu(
            self.norm
                .forward(self.first.forward(data(32, [8, 4], step))),
        );
        (self.last.forward(hidden) - data(16, [8, 2], 1000 + step))
            .powi_scalar(2)
            .mean()
    }

    fn gradients(&self, step: u32) -> GradientsParams {
        GradientsParams::from_grads(self.loss(step).backward(), self)
    }
}

/// Sets the same values on every device.
struct Start;

impl ParamMap for Start {
    fn map<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) -> Tensor<D> {
        if !tensor.is_require_grad() {
            return tensor;
        }
        let n = tensor.dims().iter().product();
        let values = noise(n, name.len() as u32);
        Tensor::from_data(TensorData::new(values, tensor.dims()), &tensor.device()).require_grad()
    }
}

/// Returns names and values; `valid` includes the BatchNorm's latest statistics.
fn values(mlp: &Mlp) -> Vec<(String, Vec<f32>)> {
    struct Values(Vec<(String, Vec<f32>)>);
    impl ParamVisitor for Values {
        fn visit<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) {
            self.0
                .push((name.to_string(), tensor.into_data().iter::<f32>().collect()));
        }
    }
    let mut values = Values(Vec::new());
    visit(&mlp.valid(), &mut values);
    values.0
}

fn sgd(learning_rate: f64) -> OptimSettings {
    let optimizer = OptimizerConfig::Sgd(SgdConfig {
        momentum: 0.0,
        weight_decay: 0.0,
        ..SgdConfig::default()
    });
    OptimSettings {
        optimizer,
        learning_rate,
        ..OptimSettings::default()
    }
}

fn each_device(test: impl Fn(&TensorDevice)) {
    test(&cpu().autodiff());
    if let Some(device) = gpu() {
        test(&device.autodiff());
    }
}

fn faults(error: Error) -> Vec<String> {
    match error {
        Error::InvalidConfig(faults) | Error::Groups(faults) | Error::StateMismatch(faults) => {
            faults.into_iter().map(|f| f.key).collect()
        }
        other => panic!("{other}"),
    }
}

#[test]
fn sgd_and_the_running_statistics_are_those_of_burns_own_run() {
    each_device(|device| {
        let (mut ours, mut burns) = (Mlp::new(device), Mlp::new(device));
        let mut optim = Optim::for_module(&ours, &sgd(0.1)).unwrap();
        let mut theirs = BurnSgd::new().init();
        for step in 0..20 {
            let grads = ours.gradients(step);
            ours = optim.step_module(0.1, ours, grads).unwrap();
            let grads = burns.gradients(step);
            burns = theirs.step(0.1, burns, grads);
        }
        let start = values(&Mlp::new(device));
        for (((name, ours), (_, burns)), (_, start)) in
            values(&ours).into_iter().zip(values(&burns)).zip(start)
        {
            let far = |a: &[f32], b: &[f32]| {
                a.iter()
                    .zip(b)
                    .map(|(a, b)| (a - b).abs())
                    .fold(0.0, f32::max)
            };
            assert!(far(&ours, &burns) < 1e-6, "{name}: {}", far(&ours, &burns));
            // The norm subtracts what a bias before it adds.
            assert!(
                far(&ours, &start) > 1e-3 || name == "first.bias",
                "{name} stayed"
            );
        }
    });
}

#[test]
fn what_requires_no_gradient_has_no_state_and_stays() {
    each_device(|device| {
        let mut mlp = Mlp::new(device);
        mlp.last = mlp.last.no_grad();
        let mut optim = Optim::for_module(&mlp, &OptimSettings::default()).unwrap();
        let (before, grads) = (values(&mlp), mlp.gradients(1));
        let names: Vec<String> = parameters(&mlp).into_iter().map(|info| info.name).collect();
        assert!(
            names.contains(&"norm.running_mean".to_string()),
            "{names:?}"
        );
        mlp = optim.step_module(1e-3, mlp, grads).unwrap();
        assert_eq!(
            optim.with_state(),
            ["first.bias", "first.weight", "norm.beta", "norm.gamma"]
        );
        for ((name, before), (_, after)) in before.into_iter().zip(values(&mlp)) {
            let trained = optim.with_state().contains(&name) || name.contains("running");
            assert_eq!(before != after, trained, "{name}");
        }
        let none = Optim::for_module(&mlp.valid(), &OptimSettings::default()).unwrap_err();
        assert_eq!(faults(none), ["module"]);
    });
}

#[test]
fn the_norm_clips_the_next_step_and_no_bound_is_forgotten() {
    each_device(|device| {
        let settings = OptimSettings {
            max_grad_norm: 0.01,
            ..sgd(1.0)
        };
        let mlp = Mlp::new(device);
        let mut optim = Optim::for_module(&mlp, &settings).unwrap();
        let error = optim
            .step_module(1.0, mlp, GradientsParams::new())
            .unwrap_err();
        assert_eq!(faults(error), ["max_grad_norm"]);

        let mlp = Mlp::new(device);
        let (before, grads) = (values(&mlp), mlp.gradients(1));
        let norm = block_on(optim.grad_norm(&mlp, &grads)).unwrap();
        let bias = grads
            .get::<1>(mlp.last.bias.as_ref().unwrap().id)
            .unwrap()
            .into_data();
        let mlp = optim.step_module(1.0, mlp, grads).unwrap();
        assert!(norm > 0.01, "{norm}");
        let place = before
            .iter()
            .position(|(name, _)| name == "last.bias")
            .unwrap();
        let after = &values(&mlp)[place].1;
        for ((before, after), grad) in before[place].1.iter().zip(after).zip(bias.iter::<f32>()) {
            let expected = before - clip_factor(norm, 0.01) * grad;
            assert!(
                (after - expected).abs() < 1e-7 && before != after,
                "{before} to {after}, expected {expected}"
            );
        }
        // One measurement of the norm serves one step.
        let error = optim
            .step_module(1.0, mlp, GradientsParams::new())
            .unwrap_err();
        assert_eq!(faults(error), ["max_grad_norm"]);

        let mlp = Mlp::new(device);
        let mut grads = GradientsParams::new();
        grads.register(
            mlp.norm.gamma.id,
            Tensor::<1>::full([16], f32::INFINITY, &device.clone().inner()),
        );
        let error = block_on(optim.grad_norm(&mlp, &grads)).unwrap_err();
        assert!(
            matches!(error, Error::NonFinite { ref tensor, .. } if tensor == "grad_norm"),
            "{error}"
        );
    });
}

#[test]
fn bad_input_is_refused_before_anything_changes() {
    each_device(|device| {
        let plain = device.clone().inner();
        let mut optim = Optim::for_module(&Mlp::new(device), &sgd(0.1)).unwrap();
        let refused = |optim: &mut Optim, rate: f64, id: fn(&Mlp) -> ParamId, grad: Tensor<1>| {
            let mlp = Mlp::new(device);
            let mut grads = mlp.gradients(1);
            grads.register(id(&mlp), grad);
            let error = optim.step_module(rate, mlp, grads).unwrap_err();
            assert!(
                optim.with_state().is_empty(),
                "a step was taken before {error}"
            );
            error
        };
        let gamma = |mlp: &Mlp| mlp.norm.gamma.id;
        for rate in [-1e-3, f64::NAN, 0.11] {
            assert_eq!(
                faults(refused(
                    &mut optim,
                    rate,
                    gamma,
                    Tensor::zeros([16], &plain)
                )),
                ["rate"]
            );
        }
        let error = refused(&mut optim, 0.1, gamma, Tensor::zeros([15], &plain));
        assert!(
            matches!(&error, Error::TensorShape { name, .. } if name == "norm.gamma"),
            "{error}"
        );
        let half = Tensor::zeros([16], (&plain, DType::F16));
        if device == &cpu().autodiff() {
            assert_eq!(
                faults(refused(&mut optim, 0.1, gamma, half)),
                ["norm.gamma"]
            );
        }
        // An optimizer that was made for a part of the module only.
        let mut part = Mlp::new(device);
        part.last = part.last.no_grad();
        let mut optim = Optim::for_module(&part, &sgd(0.1)).unwrap();
        let error = refused(&mut optim, 0.1, gamma, Tensor::zeros([16], &plain));
        assert!(
            matches!(&error, Error::UnexpectedTensors(names) if names[0].starts_with("last.")),
            "{error}"
        );
        // Patterns and settings, as for a model.
        let lost = OptimSettings {
            groups: vec![GroupConfig::new("nowhere.*"), GroupConfig::new("*")],
            ..sgd(0.1)
        };
        assert_eq!(
            faults(Optim::for_module(&Mlp::new(device), &lost).unwrap_err()),
            ["groups[0].pattern"]
        );
        assert_eq!(
            faults(Optim::for_module(&Mlp::new(device), &sgd(-1.0)).unwrap_err())[0],
            "learning_rate"
        );
    });
}

#[test]
fn gradients_of_another_device_are_an_error_that_names_them() {
    let Some(gpu) = gpu() else { return };
    let mlp = Mlp::new(&gpu.autodiff());
    let mut optim = Optim::for_module(&mlp, &sgd(0.1)).unwrap();
    let mut grads = GradientsParams::new();
    grads.register(mlp.norm.gamma.id, Tensor::<1>::zeros([16], &cpu().inner()));
    let Err(Error::MixedDevices { found, .. }) = block_on(optim.grad_norm(&mlp, &grads)) else {
        panic!("measured")
    };
    assert!(
        found[0].starts_with("p on the GPU") && found[1] == "g on the CPU",
        "{found:?}"
    );
    assert!(matches!(
        optim.step_module(0.1, mlp, grads),
        Err(Error::MixedDevices { .. })
    ));
}

#[cfg(feature = "foreign-backend")]
#[test]
fn a_module_on_a_backend_without_these_kernels_is_refused() {
    #[allow(deprecated, reason = "the smallest backend of Burn that is not ours")]
    let device = TensorDevice::ndarray().autodiff();
    let mlp = Mlp::new(&device);
    let mut optim = Optim::for_module(&mlp, &sgd(0.1)).unwrap();
    let grads = mlp.gradients(1);
    let Err(Error::ForeignBackend { found }) = block_on(optim.grad_norm(&mlp, &grads)) else {
        panic!("measured")
    };
    assert!(found.contains("NdArray"), "{found}");
    assert!(matches!(
        optim.step_module(0.1, mlp, grads),
        Err(Error::ForeignBackend { .. })
    ));
}

/// A rule whose layout or result is wrong.
#[derive(Debug)]
struct Wrong {
    layout: &'static [&'static str],
    gives: usize,
}

impl Rule for Wrong {
    fn layout(&self, parameter: &ParamInfo) -> Layout {
        Layout::like(parameter, self.layout)
    }

    fn step(
        &mut self,
        _: &Update<'_>,
        p: Buffer,
        g: Buffer,
        _: Vec<Buffer>,
    ) -> tabtune::Result<(Buffer, Vec<Buffer>)> {
        Ok((p, vec![g; self.gives]))
    }

    fn faults(&self, rate: f64) -> Vec<Fault> {
        if self.gives == 9 {
            vec![Fault::new("gives", "less than nine", rate)]
        } else {
            Vec::new()
        }
    }
}

#[test]
fn rules_of_the_caller_are_checked() {
    let device = cpu().autodiff();
    let with = |pattern: &str, layout, gives| {
        Optim::for_module(&Mlp::new(&device), &sgd(0.1))
            .unwrap()
            .with_rule(pattern, move |_| Wrong { layout, gives })
    };
    assert_eq!(faults(with("nowhere", &[], 0).unwrap_err()), ["pattern"]);
    assert_eq!(
        faults(with("norm.gamma", &["step", "a:b", "m", "m"], 0).unwrap_err()),
        ["norm.gamma:step", "norm.gamma:a:b", "norm.gamma:m"]
    );
    assert_eq!(faults(with("norm.gamma", &[], 9).unwrap_err()), ["gives"]);
    let mut optim = with("norm.gamma", &["m"], 2).unwrap();
    assert!(
        optim.rule::<Wrong>("norm.gamma").is_some() && optim.rule::<Wrong>("norm.beta").is_none()
    );
    assert_eq!(optim.state_bytes(), 64);
    let mlp = Mlp::new(&device);
    let grads = mlp.gradients(1);
    assert_eq!(
        faults(optim.step_module(0.1, mlp, grads).unwrap_err()),
        ["norm.gamma"]
    );
}

#[test]
fn a_scheduler_gives_the_rates_of_its_schedule() {
    let schedule = ScheduleConfig::Cosine(FallingSchedule {
        warmup_steps: 3,
        total_steps: 10,
        ..FallingSchedule::default()
    });
    let mut scheduler = Scheduler::new(0.2, schedule.clone()).unwrap();
    let rates: Vec<f64> = (0..6).map(|_| scheduler.step()).collect();
    assert_eq!(
        rates,
        (1..=6)
            .map(|step| learning_rate(step, 0.2, &schedule, None))
            .collect::<Vec<_>>()
    );
    let mut resumed = Scheduler::new(0.2, schedule).unwrap();
    resumed.load_record(scheduler.to_record());
    assert_eq!(resumed.step(), scheduler.step());
    assert_eq!(
        faults(Scheduler::new(-0.2, ScheduleConfig::default()).unwrap_err())[0],
        "learning_rate"
    );
    assert_eq!(
        faults(scheduler.start_decay().unwrap_err()),
        ["schedule.type"]
    );
}

#[derive(Module, Debug)]
struct Packed {
    table: Embedding,
    head: layers::Linear,
}

#[test]
fn packed_modules_train_with_the_layers_of_the_crate() {
    each_device(|device| {
        let packed = |rows: usize, seed| {
            let data = TensorData::new(noise(rows * 8, seed), [rows, 8]);
            Param::from_tensor(Tensor::<2>::from_data(data, (device, DType::BF16)).require_grad())
        };
        let mut module = Packed {
            table: Embedding {
                weight: packed(6, 1).into(),
            },
            head: layers::Linear::new(packed(3, 2), None),
        };
        let mut optim = Optim::for_module(
            &module,
            &OptimSettings {
                learning_rate: 0.02,
                ..OptimSettings::default()
            },
        )
        .unwrap();
        let loss = |module: &Packed| {
            let ids = Tensor::<1, Int>::from_ints([0, 5, 2, 2], device);
            (module.head.forward(module.table.forward(ids)) - 0.5)
                .powi_scalar(2)
                .mean()
        };
        let value = |loss: Tensor<1>| loss.into_data().iter::<f32>().next().unwrap();
        let first = value(loss(&module));
        for _ in 0..60 {
            let grads = GradientsParams::from_grads(loss(&module).backward(), &module);
            module = optim.step_module(0.02, module, grads).unwrap();
        }
        assert_eq!(
            module.table.weight.dense().expect("a tensor").val().dtype(),
            DType::BF16
        );
        let last = value(loss(&module));
        assert!(last < 0.1 * first, "{first} to {last}");
    });
}

#[test]
fn lazily_made_parameters_are_optimized_too() {
    #[derive(Module, Debug)]
    struct Lazy {
        weight: Param<Tensor<2>>,
    }
    let device = cpu().autodiff();
    let make =
        |device: &TensorDevice, grad: bool| Tensor::ones([2, 3], device).set_require_grad(grad);
    let lazy = Lazy {
        weight: Param::uninitialized(ParamId::new(), make, device.clone(), true, [2, 3].into()),
    };
    let mut optim = Optim::for_module(&lazy, &sgd(0.5)).unwrap();
    let grads = GradientsParams::from_grads(lazy.weight.val().sum().backward(), &lazy);
    let lazy = optim.step_module(0.5, lazy, grads).unwrap();
    assert!(lazy.weight.is_require_grad());
    lazy.weight
        .val()
        .into_data()
        .assert_eq(&TensorData::from([[0.5f32; 3]; 2]), true);
}
