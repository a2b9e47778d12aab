//! Parameters of any Burn module by name: those at several paths, integers and truth values, and weights saved and loaded.

use std::collections::BTreeMap;

use burn::module::{Module, Param, ParamId};
use burn::nn::conv::{Conv1d, Conv1dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig};
use burn::optim::GradientsParams;
use burn::tensor::activation::relu;
use burn::tensor::{Bool, DType, Device as TensorDevice, Int, Tensor, TensorData};
use tabtune::bundle::MemorySource;
use tabtune::config::{OptimizerConfig, SgdConfig};
use tabtune::error::Error;
use tabtune::gpu::trace;
use tabtune::interrupt::Interrupt;
use tabtune::optim::{Optim, OptimSettings, SavedState};
use tabtune::parameters::{ParamMap, ParamVisitor, load, map, parameters, save, visit};
use tabtune_tests::kernels::noise;
use tabtune_tests::{block_on, cpu, gpu};

/// A convolution, its norm with running statistics, tables that are not trained, and a weight at two paths.
#[derive(Module, Debug)]
struct Net {
    conv: Conv1d,
    norm: BatchNorm,
    order: Param<Tensor<1, Int>>,
    shown: Param<Tensor<1, Bool>>,
    there: Linear,
    back: Linear,
}

const ORDER: [i64; 4] = [2, 0, 3, 1];

impl Net {
    fn new(device: &TensorDevice) -> Self {
        let there = LinearConfig::new(8, 8).with_bias(false).init(device);
        let back = Linear {
            weight: there.weight.clone(),
            bias: None,
        };
        let net = Self {
            conv: Conv1dConfig::new(1, 2, 3).init(device),
            norm: BatchNormConfig::new(2).init(device),
            order: Param::initialized(ParamId::new(), Tensor::from_ints(ORDER, device)),
            shown: Param::initialized(
                ParamId::new(),
                Tensor::from_data(TensorData::from([true, false, true]), device),
            ),
            there,
            back,
        };
        map(net, &mut Start)
    }

    fn loss(&self, step: u32) -> Tensor<1> {
        let device = self.conv.weight.device();
        let data = TensorData::new(noise(6 * 4, step), [6, 4]);
        let x = Tensor::<2>::from_data(data, &device).select(1, self.order.val());
        // Two values on each side: the length stays 4.
        let x = self
            .conv
            .forward(x.reshape([6, 1, 4]).pad((1, 1, 0, 0), 0.0));
        let x = relu(self.norm.forward(x)).reshape([6, 8]);
        self.back
            .forward(relu(self.there.forward(x)))
            .powi_scalar(2)
            .mean()
    }

    fn step(self, optim: &mut Optim, step: u32) -> Self {
        let grads = GradientsParams::from_grads(self.loss(step).backward(), &self);
        optim.step_module(0.1, self, grads).unwrap()
    }
}

/// Sets the same values on every device.
struct Start;

impl ParamMap for Start {
    fn map<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) -> Tensor<D> {
        if !tensor.is_require_grad() {
            return tensor;
        }
        let values = noise(tensor.dims().iter().product(), name.len() as u32);
        Tensor::from_data(TensorData::new(values, tensor.dims()), &tensor.device()).require_grad()
    }
}

fn settings() -> OptimSettings {
    OptimSettings {
        optimizer: OptimizerConfig::Sgd(SgdConfig::default()),
        learning_rate: 0.1,
        ..OptimSettings::default()
    }
}

/// The stored bytes of every parameter, in order.
#[derive(Default)]
struct Stored(Vec<(String, Vec<u8>)>);

impl Stored {
    fn of(net: &Net) -> Self {
        let mut stored = Self::default();
        visit(&net.valid(), &mut stored);
        stored
    }

    fn add(&mut self, name: &str, data: TensorData) {
        self.0.push((name.to_string(), data.as_bytes().to_vec()));
    }
}

impl ParamVisitor for Stored {
    fn visit<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) {
        self.add(name, tensor.into_data());
    }

    fn visit_int<const D: usize>(&mut self, name: &str, tensor: Tensor<D, Int>) {
        self.add(name, tensor.into_data());
    }

    fn visit_bool<const D: usize>(&mut self, name: &str, tensor: Tensor<D, Bool>) {
        self.add(name, tensor.into_data());
    }
}

fn each_device(test: impl Fn(&TensorDevice)) {
    test(&cpu().autodiff());
    if let Some(device) = gpu() {
        test(&device.autodiff());
    }
}

fn loaded(net: Net, file: &[u8]) -> Result<Net, Error> {
    let source = MemorySource::new("net.safetensors", file);
    block_on(load(net, &source, &Interrupt::none()))
}

#[test]
fn a_parameter_at_two_paths_is_one() {
    each_device(|device| {
        let net = Net::new(device);
        let names: Vec<String> = parameters(&net).into_iter().map(|info| info.name).collect();
        let trained = ["conv.weight", "conv.bias", "norm.gamma", "norm.beta"];
        let counted = ["norm.running_mean", "norm.running_var", "there.weight"];
        assert_eq!(names, [&trained[..], &counted].concat());

        // A module with one parameter that it uses twice, and a copy with two: the step has the sum of their gradients.
        let mut optim = Optim::for_module(&net, &settings()).unwrap();
        let loss = net.loss(1).backward();
        let weight = net.there.weight.val();
        let (before, grad) = (weight.clone().into_data(), weight.grad(&loss).unwrap());
        let expected = Tensor::<2>::from_data(before, &device.clone().inner()) - grad * 0.1;
        drop(weight);
        let grads = GradientsParams::from_grads(loss, &net);
        trace::start();
        let net = optim.step_module(0.1, net, grads).unwrap();
        let launched = trace::finish();
        assert!(
            launched
                .iter()
                .all(|launch| launch.kernel.name != "u32_copy"),
            "copied"
        );
        let found = net.there.weight.val().into_data();
        let far = |a: &TensorData, b: &TensorData| {
            let pairs = a.iter::<f32>().zip(b.iter::<f32>());
            pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
        };
        assert!(far(&found, &expected.into_data()) < 1e-6, "moved once");
        assert_eq!(net.there.weight.id, net.back.weight.id);
        let back = net.back.weight.val().into_data();
        assert_eq!(found.as_bytes(), back.as_bytes(), "tied after");

        // And the next gradient is again that of both.
        let loss = net.loss(2).backward();
        let [there, back] = [&net.there, &net.back].map(|one| one.weight.val().grad(&loss));
        assert_eq!(
            there.unwrap().into_data().as_bytes(),
            back.unwrap().into_data().as_bytes()
        );
        assert_eq!(optim.with_state().len(), 5);
    });
}

#[test]
fn a_module_is_saved_and_resumed_bit_for_bit() {
    each_device(|device| {
        let start = Net::new(device);
        let mut optim = Optim::for_module(&start, &settings()).unwrap();
        let half = (0..3).fold(start, |net, step| net.step(&mut optim, step));
        let file = block_on(save(&half)).unwrap();
        let state = block_on(async {
            let mut entries = Vec::new();
            for (name, tensor) in optim.state_tensors() {
                let bytes = tensor.bytes().await.unwrap();
                entries.push(SavedState::from_bytes(name, &tensor, bytes));
            }
            entries
        });
        let with_state = optim.with_state();
        let whole = (3..6).fold(half, |net, step| net.step(&mut optim, step));

        // Into a module that has other values, other tables, and statistics that wait to be counted.
        let mut other = Net::new(device);
        other.order = other.order.map(|order| order.zeros_like());
        other.shown = other.shown.map(|shown| shown.bool_not());
        drop(other.loss(9));
        let net = loaded(other, &file).unwrap();
        let mut optim = Optim::for_module(&net, &settings()).unwrap();
        let inner = device.clone().inner();
        block_on(optim.load_state(state, &with_state, &inner, &Interrupt::none())).unwrap();
        let net = (3..6).fold(net, |net, step| net.step(&mut optim, step));
        let (whole, resumed) = (Stored::of(&whole), Stored::of(&net));
        assert_eq!(whole.0.len(), 9);
        for ((name, whole), (_, resumed)) in whole.0.iter().zip(&resumed.0) {
            assert_eq!(whole, resumed, "{name}");
        }
        assert!(block_on(save(&net)).unwrap() != file);
    });
}

#[test]
fn a_file_of_weights_is_for_its_module_alone() {
    let device = cpu().autodiff();
    let net = || Net::new(&device);
    let file = block_on(save(&net())).unwrap();
    assert!(loaded(net(), &file).is_ok());
    // The header, read as JSON.
    let header: usize = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    let json: serde_json::Value = serde_json::from_slice(&file[8..8 + header]).unwrap();
    let said: BTreeMap<&str, String> = json
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, record)| {
            (
                name.as_str(),
                format!("{} {}", record["dtype"], record["shape"]),
            )
        })
        .collect();
    assert_eq!(said.len(), 9);
    assert_eq!(said["order"], "\"I64\" [4]");
    assert_eq!(said["shown"], "\"BOOL\" [3]");
    assert_eq!(said["conv.weight"], "\"F32\" [2,1,3]");

    let changed = |from: &str, to: &str| {
        let text = std::str::from_utf8(&file[8..8 + header]).unwrap();
        assert_eq!(from.len(), to.len());
        let text = text.replacen(from, to, 1);
        let changed = [&file[..8], text.as_bytes(), &file[8 + header..]].concat();
        loaded(net(), &changed).unwrap_err().code()
    };
    assert_eq!(
        changed("there.weight", "where.weight"),
        "model.tensor.missing"
    );
    assert_eq!(changed("[2,1,3]", "[2,3,1]"), "model.tensor.shape");
    let f32 = "\"dtype\":\"F32\"";
    assert_eq!(changed(f32, "\"dtype\":\"I32\""), "config.invalid");
    let at = |name: &str| {
        let begin = json[name]["data_offsets"][0].as_u64().unwrap() as usize;
        8 + header + begin
    };
    let with = |place: usize, byte: u8| {
        let mut changed = file.clone();
        changed[place] = byte;
        loaded(net(), &changed).map(|_| ()).unwrap_err().code()
    };
    assert_eq!(with(at("shown"), 2), "config.invalid");
    assert!(matches!(loaded(net(), &file[..60]), Err(Error::Refused(_))));
    // Integers that this device does not have.
    let half = |net: Net| {
        let order = net.order.val().cast(DType::I8);
        Net {
            order: Param::initialized(net.order.id, order),
            ..net
        }
    };
    let mut large = file.clone();
    large[at("order") + 1] = 1;
    let error = loaded(half(net()), &large).unwrap_err();
    assert_eq!(error.code(), "config.invalid");
    assert!(loaded(half(net()), &file).is_ok());
    // One parameter more than the module has.
    let linear = Linear {
        weight: net().there.weight,
        bias: None,
    };
    let source = MemorySource::new("net.safetensors", file.as_slice());
    #[derive(Module, Debug)]
    struct There {
        there: Linear,
    }
    let error = block_on(load(There { there: linear }, &source, &Interrupt::none())).unwrap_err();
    assert_eq!(error.code(), "model.tensor.unexpected");
}
