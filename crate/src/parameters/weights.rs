//! The weights of any Burn module as the bytes of a safetensors file.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;

use burn::module::Module;
use burn::tensor::{Bool, DType, Device, Int, Tensor, TensorData};

use super::{ParamMap, ParamVisitor, map, visit};
use crate::error::{Error, Fault, Result};
use crate::formats::safetensors::{SafetensorsFile, safetensors_header};
use crate::formats::{ByteSource, FileTensor};
use crate::gpu::transfer::{RUN_BYTES, Upload};
use crate::interrupt::Interrupt;

/// Reads all parameters of `module` from the device and returns them as the bytes of a safetensors file, by their names: those that train and those
/// that do not, integers and truth values, and the latest running statistics. Integers are I64 or U64 in the file. [`load`] has an example.
///
/// # Errors
///
/// `config.invalid` for quantized values; `export.name.invalid` for a path that is no name of a tensor; `device.lost`.
pub async fn save<M: Module>(module: &M) -> Result<Vec<u8>> {
    let mut reads = Reads::default();
    // Takes up what running statistics have counted last.
    visit(&module.valid(), &mut reads);
    if !reads.faults.is_empty() {
        return Err(Error::InvalidConfig(reads.faults));
    }
    let mut tensors = Vec::with_capacity(reads.tensors.len());
    for (name, word, shape, read) in reads.tensors {
        tensors.push(((name, word, shape), read.await?));
    }
    tensors.sort_by(|((a, ..), _), ((b, ..), _)| a.as_bytes().cmp(b.as_bytes()));
    let (entries, values): (Vec<_>, Vec<_>) = tensors.into_iter().unzip();
    let (mut file, _) = safetensors_header(&entries, &BTreeMap::new())?;
    values.iter().for_each(|values| file.extend(values));
    Ok(file)
}

/// A read of a tensor's bytes.
type Read = Pin<Box<dyn Future<Output = Result<Vec<u8>>>>>;

/// Name, dtype word, shape and read of each tensor.
#[derive(Default)]
struct Reads {
    tensors: Vec<(String, &'static str, Vec<usize>, Read)>,
    faults: Vec<Fault>,
}

/// Returns the word of a float dtype in safetensors.
fn float_word(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::F64 => "F64",
        DType::F32 => "F32",
        DType::F16 => "F16",
        DType::BF16 => "BF16",
        _ => return None,
    })
}

/// Returns the word by which integers of a dtype are saved.
fn int_word(dtype: DType) -> &'static str {
    if dtype == DType::U64 { "U64" } else { "I64" }
}

/// Returns true if a dtype of integers has this value.
fn holds(dtype: DType, value: i64) -> bool {
    match dtype {
        DType::I32 => i32::try_from(value).is_ok(),
        DType::I16 => i16::try_from(value).is_ok(),
        DType::I8 => i8::try_from(value).is_ok(),
        DType::U32 => u32::try_from(value).is_ok(),
        DType::U16 => u16::try_from(value).is_ok(),
        DType::U8 => u8::try_from(value).is_ok(),
        _ => true,
    }
}

/// The error of values that the host cannot convert.
fn unreadable(error: impl std::fmt::Debug) -> Error {
    Error::DeviceLost {
        reason: format!("{error:?}"),
    }
}

impl ParamVisitor for Reads {
    fn visit<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) {
        let (shape, dtype) = (tensor.dims().to_vec(), tensor.dtype());
        let Some(word) = float_word(dtype) else {
            let rule = "dtype F64, F32, F16 or BF16";
            let fault = Fault::new(name, rule, format!("{dtype:?}"));
            return self.faults.push(fault);
        };
        let bytes = shape.iter().product::<usize>() * dtype.size();
        let read = async move {
            let data = tensor.into_data_async().await.map_err(Error::device_lost)?;
            Ok(data.as_bytes()[..bytes].to_vec())
        };
        self.tensors
            .push((name.to_string(), word, shape, Box::pin(read)));
    }

    fn visit_int<const D: usize>(&mut self, name: &str, tensor: Tensor<D, Int>) {
        let (shape, word) = (tensor.dims().to_vec(), int_word(tensor.dtype()));
        let read = async move {
            let data = tensor.into_data_async().await.map_err(Error::device_lost)?;
            Ok(match word {
                "U64" => bytes_of(&data.try_to_vec_as::<u64>().map_err(unreadable)?),
                _ => bytes_of(&data.try_to_vec_as::<i64>().map_err(unreadable)?),
            })
        };
        self.tensors
            .push((name.to_string(), word, shape, Box::pin(read)));
    }

    fn visit_bool<const D: usize>(&mut self, name: &str, tensor: Tensor<D, Bool>) {
        let shape = tensor.dims().to_vec();
        let read = async move {
            let data = tensor.into_data_async().await.map_err(Error::device_lost)?;
            let values = data.try_to_vec_as::<bool>().map_err(unreadable)?;
            Ok(values.into_iter().map(u8::from).collect())
        };
        self.tensors
            .push((name.to_string(), "BOOL", shape, Box::pin(read)));
    }
}

fn bytes_of<T: bytemuck::Pod>(values: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(values).to_vec()
}

/// Gives `module` the parameters that [`save`] has returned, bit for bit. What was tied stays tied, and what requires a gradient still does. The
/// source is read, and sent to the device, piece by piece.
///
/// ```
/// # fn main() -> tabtune::Result<()> {
/// # #[cfg(feature = "cpu")] {
/// # fn block_on<T>(future: impl Future<Output = T>) -> T {
/// #     let mut future = std::pin::pin!(future);
/// #     loop {
/// #         let mut context = std::task::Context::from_waker(std::task::Waker::noop());
/// #         if let std::task::Poll::Ready(value) = future.as_mut().poll(&mut context) { return value }
/// #         std::thread::yield_now();
/// #     }
/// # }
/// # block_on(async {
/// use burn::nn::BatchNormConfig;
/// use tabtune::bundle::MemorySource;
/// use tabtune::interrupt::Interrupt;
/// use tabtune::parameters::{load, save};
///
/// let device = tabtune::device::Device::cpu().autodiff();
/// let norm = BatchNormConfig::new(8).init(&device);
/// let file = MemorySource::new("norm.safetensors", save(&norm).await?);
/// let norm = load(BatchNormConfig::new(8).init(&device), &file, &Interrupt::none()).await?;
/// assert!(norm.gamma.val().is_require_grad());
/// # Ok::<(), tabtune::Error>(())
/// # })?;
/// # }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// The codes of safetensors for bytes that are no such file; `model.tensor.missing`, `model.tensor.unexpected` and `model.tensor.shape` for a file
/// of another module; `config.invalid` for another dtype, for an integer that the module's dtype does not have, and for a truth value other than 0
/// and 1; `call.aborted`; `device.lost`; the errors of the source. `module` is lost then.
pub async fn load<M: Module>(
    module: M,
    source: &dyn ByteSource,
    interrupt: &Interrupt,
) -> Result<M> {
    // Counts that running statistics have not taken up yet must not follow what is loaded.
    drop(module.valid());
    let file = SafetensorsFile::open(source)?.tensors;
    let mut wanted = Wanted::default();
    visit(&module, &mut wanted);
    let stored: BTreeMap<&str, &FileTensor> = file
        .iter()
        .map(|tensor| (tensor.name.as_str(), tensor))
        .collect();
    wanted.check(&stored)?;
    let mut loaded = Loaded::default();
    for want in wanted.0 {
        let tensor = stored[want.name.as_str()];
        let value = want.read(source, tensor, interrupt).await?;
        loaded.0.insert(want.name, value);
    }
    Ok(map(module, &mut loaded))
}

/// A parameter that a file must have.
struct Want {
    name: String,
    shape: Vec<usize>,
    /// Dtype word that the file must have.
    word: &'static str,
    dtype: DType,
    /// The device, without autodiff.
    device: Device,
}

/// All that a module takes from a file.
#[derive(Default)]
struct Wanted(Vec<Want>);

impl Wanted {
    fn add(&mut self, name: &str, shape: &[usize], word: &'static str, form: (DType, Device)) {
        let (dtype, device) = form;
        self.0.push(Want {
            name: name.to_string(),
            shape: shape.to_vec(),
            word,
            dtype,
            device: device.inner(),
        });
    }
}

impl ParamVisitor for Wanted {
    fn visit<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) {
        let word = float_word(tensor.dtype()).unwrap_or("a float dtype");
        let form = (tensor.dtype(), tensor.device());
        self.add(name, &tensor.dims(), word, form);
    }

    fn visit_int<const D: usize>(&mut self, name: &str, tensor: Tensor<D, Int>) {
        let form = (tensor.dtype(), tensor.device());
        self.add(name, &tensor.dims(), int_word(tensor.dtype()), form);
    }

    fn visit_bool<const D: usize>(&mut self, name: &str, tensor: Tensor<D, Bool>) {
        let form = (tensor.dtype(), tensor.device());
        self.add(name, &tensor.dims(), "BOOL", form);
    }
}

impl Wanted {
    /// Refuses a file whose tensors are not those of the module.
    fn check(&self, stored: &BTreeMap<&str, &FileTensor>) -> Result<()> {
        let names: BTreeSet<&str> = self.0.iter().map(|want| want.name.as_str()).collect();
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_string).collect();
        let missing: Vec<&str> = names
            .iter()
            .copied()
            .filter(|name| !stored.contains_key(name))
            .collect();
        if !missing.is_empty() {
            return Err(Error::MissingTensors(owned(missing)));
        }
        let unexpected: Vec<&str> = stored
            .keys()
            .copied()
            .filter(|name| !names.contains(name))
            .collect();
        if !unexpected.is_empty() {
            return Err(Error::UnexpectedTensors(owned(unexpected)));
        }
        let mut faults = Vec::new();
        for want in &self.0 {
            let found = stored[want.name.as_str()];
            let shape: Vec<usize> = found.shape.iter().map(|&dim| dim as usize).collect();
            if shape != want.shape {
                return Err(Error::TensorShape {
                    name: want.name.clone(),
                    expected: want.shape.clone(),
                    found: shape,
                });
            }
            if found.dtype != want.word {
                faults.push(Fault::new(&want.name, want.word, &found.dtype));
            }
        }
        Error::of_faults(faults)
    }
}

/// Values on their way into a module.
enum Value {
    Float(Box<Tensor<1>>),
    Data(TensorData),
}

impl Want {
    /// Reads the values.
    async fn read(
        &self,
        source: &dyn ByteSource,
        tensor: &FileTensor,
        interrupt: &Interrupt,
    ) -> Result<Value> {
        let elements = self.shape.iter().product();
        if matches!(self.dtype, DType::F32 | DType::BF16) {
            let mut upload = Upload::new(elements, self.dtype, &self.device);
            let (mut at, mut run) = (tensor.begin, Vec::new());
            while at < tensor.end() {
                let length = (tensor.end() - at).min(RUN_BYTES as u64);
                run.resize(length as usize, 0);
                source.read_at(at, &mut run)?;
                upload.put_bytes(&run)?;
                upload.settle(interrupt).await?;
                at += length;
            }
            return Ok(Value::Float(Box::new(upload.finish()?)));
        }
        interrupt.check()?;
        let mut bytes = vec![0; (tensor.end() - tensor.begin) as usize];
        source.read_at(tensor.begin, &mut bytes)?;
        let data = match (self.word, self.dtype) {
            ("BOOL", _) => {
                if let Some(other) = bytes.iter().find(|byte| **byte > 1) {
                    return Err(Error::invalid(&self.name, "truth values, 0 or 1", other));
                }
                let values: Vec<bool> = bytes.iter().map(|byte| *byte == 1).collect();
                TensorData::new(values, self.shape.clone())
            }
            ("U64", dtype) => TensorData::from_bytes_vec(bytes, self.shape.clone(), dtype),
            ("I64", dtype) => {
                let values: Vec<i64> = bytemuck::pod_collect_to_vec(&bytes);
                if let Some(large) = values.iter().find(|value| !holds(dtype, **value)) {
                    let rule = format!("integers of {dtype:?}");
                    return Err(Error::invalid(&self.name, rule, large));
                }
                TensorData::new(values, self.shape.clone()).convert_dtype(dtype)
            }
            (_, dtype) => {
                let data = TensorData::from_bytes_vec(bytes, [elements], dtype);
                let options = (&self.device, dtype);
                let tensor = Tensor::from_data(data, options);
                return Ok(Value::Float(Box::new(tensor)));
            }
        };
        Ok(Value::Data(data))
    }
}

/// The values of a file, by name.
#[derive(Default)]
struct Loaded(BTreeMap<String, Value>);

impl ParamMap for Loaded {
    fn map<const D: usize>(&mut self, name: &str, tensor: Tensor<D>) -> Tensor<D> {
        let Some(Value::Float(value)) = self.0.remove(name) else {
            return tensor;
        };
        let value = value.reshape(tensor.dims());
        if !tensor.is_autodiff() {
            return value;
        }
        let strategy = tensor.gradient_checkpointing_strategy();
        let value = strategy
            .into_iter()
            .fold(Tensor::from_inner(value), |value, strategy| {
                value.with_gradient_checkpointing_strategy(strategy)
            });
        value.set_require_grad(tensor.is_require_grad())
    }

    fn map_int<const D: usize>(&mut self, name: &str, tensor: Tensor<D, Int>) -> Tensor<D, Int> {
        match self.0.remove(name) {
            Some(Value::Data(data)) => Tensor::from_data(data, (&tensor.device(), tensor.dtype())),
            _ => tensor,
        }
    }

    fn map_bool<const D: usize>(&mut self, name: &str, tensor: Tensor<D, Bool>) -> Tensor<D, Bool> {
        match self.0.remove(name) {
            Some(Value::Data(data)) => Tensor::from_data(data, &tensor.device()),
            _ => tensor,
        }
    }
}
