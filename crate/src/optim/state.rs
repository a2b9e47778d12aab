//! Per-parameter state: its layout, its bytes (`optimizers.md` §10). Saving only reads; loading restores bits and casts nothing.

use burn::tensor::{DType, Device, Tensor, TensorData};

use super::{Optim, ParamInfo, Slot, apollo};
use crate::config::OptimizerConfig;
use crate::error::{Error, Fault, Result};
use crate::kernels::Buffer;

/// Largest step that a JSON number still holds exactly.
const MAX_STEP: u64 = (1 << 53) - 1;

/// The tensors of one parameter's state, without values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layout(pub Vec<(&'static str, Vec<usize>, DType)>);

/// Values of a state, in the order of its layout.
#[derive(Debug)]
pub(super) struct State {
    pub step: u64,
    pub tensors: Vec<Buffer>,
}

impl Layout {
    pub fn of(rule: &OptimizerConfig, info: &ParamInfo) -> Self {
        let like = |name| (name, info.shape.clone(), info.dtype);
        Self(match (rule, info.matrix()) {
            (OptimizerConfig::Adamw(_), _) => vec![like("m"), like("v")],
            (OptimizerConfig::Adafactor(_), Some((rows, cols))) => vec![("row", vec![rows], DType::F32), ("col", vec![cols], DType::F32)],
            (OptimizerConfig::Adafactor(_), None) => vec![("row", info.shape.clone(), DType::F32)],
            (OptimizerConfig::Apollo(rule), matrix) => {
                let side = apollo::Side::of(matrix.unwrap_or((1, info.elements())));
                let moments = vec![rule.rank(), side.channels];
                vec![("m", moments.clone(), DType::F32), ("v", moments, DType::F32), ("norm", Vec::new(), DType::F32)]
            }
            (OptimizerConfig::Sgd(rule), _) if rule.momentum > 0.0 => vec![like("momentum")],
            (OptimizerConfig::Sgd(_), _) => Vec::new(),
        })
    }

    /// Bytes of the tensors.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|(_, shape, dtype)| (shape.iter().product::<usize>() * dtype.size()) as u64).sum()
    }

    /// A fresh state: every tensor zero, no step taken.
    pub fn zeros(&self, device: &Device) -> State {
        let zero = |(_, shape, dtype): &(_, Vec<usize>, DType)| {
            let n = shape.iter().product::<usize>();
            upload(vec![0; n * dtype.size()], n, *dtype, device)
        };
        State { step: 0, tensors: self.0.iter().map(zero).collect() }
    }
}

fn upload(bytes: Vec<u8>, n: usize, dtype: DType, device: &Device) -> Buffer {
    Tensor::<1>::from_data(TensorData::from_bytes_vec(bytes, [n], dtype), (device, dtype)).into()
}

/// safetensors' word for a state's dtype.
fn word(dtype: DType) -> &'static str {
    if dtype == DType::BF16 { "BF16" } else { "F32" }
}

/// Where a state's values are.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "a handle for each tensor of a model: few, and short-lived")]
pub enum StateData {
    /// A counter on the host.
    Step(u64),
    /// A tensor on the device; the handle is shared, not copied.
    Tensor(Tensor<1>),
}

/// One entry of the optimizer file.
#[derive(Debug, Clone)]
pub struct StateTensor {
    /// Shape in the file.
    pub shape: Vec<usize>,
    /// `U64`, `F32` or `BF16`.
    pub dtype: &'static str,
    /// The values.
    pub data: StateData,
}

impl StateTensor {
    /// Length of [`Self::bytes`].
    pub fn len_bytes(&self) -> usize {
        let size = match self.dtype {
            "U64" => 8,
            "BF16" => 2,
            _ => 4,
        };
        self.shape.iter().product::<usize>() * size
    }

    /// The values as little-endian bytes, row-major.
    pub async fn bytes(&self) -> Result<Vec<u8>> {
        match &self.data {
            StateData::Step(step) => Ok(step.to_le_bytes().to_vec()),
            StateData::Tensor(tensor) => {
                let data = tensor.clone().into_data_async().await.map_err(|e| Error::DeviceLost { reason: e.to_string() })?;
                Ok(data.as_bytes()[..self.len_bytes()].to_vec())
            }
        }
    }
}

/// One entry read from an optimizer file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedState {
    /// `<param>:<state>`.
    pub name: String,
    /// safetensors' word.
    pub dtype: String,
    /// Shape in the file.
    pub shape: Vec<usize>,
    /// Little-endian values.
    pub bytes: Vec<u8>,
}

impl Optim {
    /// Every state tensor as `(<param>:<state>, tensor)`, sorted by name; parameters that never had a gradient have none. While the handles
    /// live, a step copies instead of working in place.
    pub fn state_tensors(&self) -> Vec<(String, StateTensor)> {
        let mut entries = Vec::new();
        for (name, slot) in &self.slots {
            let Some(state) = &slot.state else { continue };
            for ((key, shape, dtype), buffer) in slot.layout.0.iter().zip(&state.tensors) {
                let data = StateData::Tensor(buffer.clone().float());
                entries.push((format!("{name}:{key}"), StateTensor { shape: shape.clone(), dtype: word(*dtype), data }));
            }
            entries.push((format!("{name}:step"), StateTensor { shape: Vec::new(), dtype: "U64", data: StateData::Step(state.step) }));
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        entries
    }

    /// Replaces all state by the saved one. Unknown parameters, missing or extra entries, other dtypes, shapes or lengths are refused, all
    /// of them listed, and nothing is changed then.
    pub fn load_state(&mut self, saved: Vec<SavedState>, device: &Device) -> Result<()> {
        let mut faults = Vec::new();
        let mut found = std::collections::BTreeMap::new();
        for entry in saved {
            let (param, key) = entry.name.rsplit_once(':').unwrap_or((&entry.name, ""));
            let known = self.slots.get(param).filter(|slot| !slot.frozen).is_some_and(|slot| slot.knows(key));
            if !known {
                faults.push(Fault::new(&entry.name, "a state of this run", "an entry without a place"));
            } else if let Some(twice) = found.insert((param.to_string(), key.to_string()), entry.clone()) {
                faults.push(Fault::new(twice.name, "one entry", "two"));
            }
        }
        let mut loaded = Vec::new();
        for (name, slot) in &self.slots {
            let mut take = |key: &str| found.remove(&(name.clone(), key.to_string()));
            let step = take("step");
            let entries: Vec<_> = slot.layout.0.iter().map(|(key, ..)| take(key)).collect();
            if step.is_none() && entries.iter().all(Option::is_none) {
                continue;
            }
            if let Some(state) = slot.read(step, entries, device, &mut faults) {
                loaded.push((name.clone(), state));
            }
        }
        if !faults.is_empty() {
            return Err(Error::StateMismatch(faults));
        }
        for slot in self.slots.values_mut() {
            (slot.state, slot.projector) = (None, None);
        }
        for (name, state) in loaded {
            if let Some(slot) = self.slots.get_mut(&name) {
                slot.state = Some(state);
            }
        }
        Ok(())
    }
}

impl Slot {
    fn knows(&self, key: &str) -> bool {
        key == "step" || self.layout.0.iter().any(|(name, ..)| *name == key)
    }

    /// The state in these entries, or its faults.
    fn read(&self, step: Option<SavedState>, entries: Vec<Option<SavedState>>, device: &Device, faults: &mut Vec<Fault>) -> Option<State> {
        let before = faults.len();
        let name = &self.info.name;
        let step_key = format!("{name}:step");
        let step = step.map(|entry| (<[u8; 8]>::try_from(entry.bytes.as_slice()).map(u64::from_le_bytes), entry.dtype, entry.shape));
        let step = match step {
            Some((Ok(step), dtype, shape)) if dtype == "U64" && shape.is_empty() && step <= MAX_STEP => step,
            Some((step, dtype, shape)) => {
                faults.push(Fault::new(step_key, "U64 [] of at most 2⁵³ − 1", format!("{dtype} {shape:?} {step:?}")));
                0
            }
            None => {
                faults.push(Fault::new(step_key, "an entry", "none"));
                0
            }
        };
        let mut tensors = Vec::new();
        for ((key, shape, dtype), entry) in self.layout.0.iter().zip(entries) {
            let n = shape.iter().product::<usize>();
            match entry {
                None => faults.push(Fault::new(format!("{name}:{key}"), "an entry", "none")),
                Some(entry) if entry.dtype != word(*dtype) || entry.shape != *shape || entry.bytes.len() != n * dtype.size() => {
                    let rule = format!("{} {shape:?}", word(*dtype));
                    faults.push(Fault::new(entry.name, rule, format!("{} {:?} of {} bytes", entry.dtype, entry.shape, entry.bytes.len())));
                }
                Some(entry) if faults.len() == before => tensors.push(upload(entry.bytes, n, *dtype, device)),
                Some(_) => {}
            }
        }
        (faults.len() == before).then_some(State { step, tensors })
    }
}
