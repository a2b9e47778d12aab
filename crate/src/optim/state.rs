//! The state of each parameter as it is saved and loaded (crate/FORMATS.md, "Checkpoint folder"). Saving only reads; loading restores the bits
//! and converts nothing.

use std::collections::{BTreeMap, BTreeSet};

use burn::tensor::{DType, Device};

use super::saved::SavedState;
use super::state_tensor::{StateData, StateTensor};
use super::{Optim, Slot};
use crate::error::{Error, Fault, Result};
use crate::gpu::Buffer;
use crate::gpu::launch::words_for;
use crate::gpu::paired_buffer::{distance, paired_zeros};
use crate::gpu::transfer::{self, Flat, Upload};
use crate::interrupt::Interrupt;
use crate::parameters::{part_of, whole_name};

/// Largest step that a JSON number represents exactly.
const MAX_STEP: u64 = (1 << 53) - 1;

/// The state of one parameter: its step, and its tensors in the order of the layout.
#[derive(Debug)]
pub(super) struct State {
    pub step: u64,
    pub tensors: Vec<Buffer>,
}

/// Allocates lasting tensors in buffers of their own: where every buffer has a page, as in browsers, small states would otherwise keep the
/// large pages that activations left.
pub(super) fn persistent<T: Send>(
    device: &Device,
    make: impl Fn() -> Result<T> + Send,
) -> Result<T> {
    device.memory_persistent_allocations((), move |()| make())
}

impl Slot {
    /// Makes a fresh state: every tensor zero, no step taken.
    pub(super) fn zeros(&self, device: &Device) -> Result<State> {
        let zero = |(_, shape, dtype): &(_, Vec<usize>, DType)| {
            let (elements, dtype) = placed(shape, *dtype);
            Ok(transfer::zeros(elements, dtype, device)?.into())
        };
        let tensors = match self.paired(device)? {
            Some(both) => both.halves(self.info.elements(), self.info.dtype).into(),
            None => {
                let layout = &self.layout;
                persistent(device, || layout.0.iter().map(zero).collect())?
            }
        };
        Ok(State { step: 0, tensors })
    }

    /// Allocates zeros for the two tensors of a state if they lie side by side.
    fn paired(&self, device: &Device) -> Result<Option<Buffer>> {
        let (elements, dtype) = (self.info.elements(), self.info.dtype);
        if self.rule.pairs_state(&self.info) {
            persistent(device, || paired_zeros(elements, dtype, device))
        } else {
            Ok(None)
        }
    }
}

impl Optim {
    /// Returns the number of steps that each parameter with a state has taken.
    pub(crate) fn state_steps(&self) -> BTreeMap<String, u64> {
        self.slots
            .iter()
            .filter_map(|(name, slot)| Some((name.clone(), slot.state.as_ref()?.step)))
            .collect()
    }

    /// Restores the counts of an earlier [`Self::state_steps`]: the steps since then have changed no value.
    pub(crate) fn go_back(&mut self, steps: &BTreeMap<String, u64>) {
        for (name, slot) in &mut self.slots {
            match (steps.get(name), &mut slot.state) {
                (Some(step), Some(state)) => state.step = *step,
                _ => slot.state = None,
            }
        }
    }
}

/// Dtypes of a state, with their words in safetensors.
pub(super) const DTYPES: [(DType, &str); 5] = [
    (DType::F32, "F32"),
    (DType::BF16, "BF16"),
    (DType::I32, "I32"),
    (DType::U32, "U32"),
    (DType::U8, "U8"),
];

/// Returns the dtype word of safetensors for a state.
pub(super) fn word(dtype: DType) -> &'static str {
    let own = DTYPES.iter().find(|(own, _)| *own == dtype);
    own.map_or("F32", |(_, word)| word)
}

/// The tensor on the device that a state lies in, by elements and dtype: packed bf16, or words.
pub(super) fn placed(shape: &[usize], dtype: DType) -> (usize, DType) {
    let elements: usize = shape.iter().product();
    match dtype {
        DType::BF16 => (elements, dtype),
        _ => (words_for(elements, dtype), DType::F32),
    }
}

/// A state whose entries have the right shapes and dtypes, before its values are read.
struct Fitting<'a> {
    step: u64,
    entries: Vec<SavedState<'a>>,
}

impl Optim {
    /// Returns every state tensor as `(<param>:<state>, tensor)`, sorted by name; parameters that never had a gradient have none. As long as the
    /// handles exist, a step copies the state instead of working in place.
    pub fn state_tensors(&self) -> Vec<(String, StateTensor)> {
        let mut entries: Vec<(String, StateTensor)> = Vec::new();
        for slot in self.slots.values() {
            let Some(state) = &slot.state else { continue };
            let part = part_of(&slot.info.name);
            let name = whole_name(&slot.info.name);
            let follows = part.is_some_and(|(_, rows)| rows.start > 0);
            for ((key, shape, dtype), buffer) in slot.layout.0.iter().zip(&state.tensors) {
                let (name, flat) = (format!("{name}:{key}"), Flat::from(buffer.clone().float()));
                let before = entries
                    .iter_mut()
                    .find(|(other, _)| follows && *other == name);
                if let Some((_, before)) = before {
                    before.append_rows(shape[0], flat);
                    continue;
                }
                entries.push((
                    name,
                    StateTensor {
                        shape: shape.clone(),
                        dtype: word(*dtype),
                        data: StateData::Tensor(flat),
                    },
                ));
            }
            if follows {
                continue;
            }
            entries.push((
                format!("{name}:step"),
                StateTensor {
                    shape: Vec::new(),
                    dtype: "U64",
                    data: StateData::Step(state.step),
                },
            ));
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        entries
    }

    /// Returns the names of the parameters that have state.
    pub fn with_state(&self) -> Vec<String> {
        let with_state = self.slots.values().filter(|slot| slot.state.is_some());
        let mut names: Vec<String> = with_state
            .map(|slot| whole_name(&slot.info.name).to_string())
            .collect();
        names.dedup();
        names
    }

    /// Replaces all state by the saved state of the parameters that `with_state` names. Saved state of parameters that are frozen or at rest is left
    /// out, and their names are returned.
    ///
    /// # Errors
    ///
    /// `optim.state-mismatch` for unknown parameters, missing or extra entries, and other dtypes, shapes or lengths, all of them listed;
    /// `device.lost`, `call.aborted`, and the errors of reading the values. Nothing is changed then.
    pub async fn load_state(
        &mut self,
        saved: Vec<SavedState<'_>>,
        with_state: &[String],
        device: &Device,
        interrupt: &Interrupt,
    ) -> Result<Vec<String>> {
        let (fitting, dropped) = self.fitting(saved, with_state)?;
        let mut loaded = Vec::with_capacity(fitting.len());
        for (name, Fitting { step, entries }) in fitting {
            let Some(slot) = self.slots.get(&name) else {
                continue;
            };
            let (elements, dtype) = (slot.info.elements(), slot.info.dtype);
            let mut both = slot.paired(device)?;
            let (joined, mut tensors) = (both.is_some(), Vec::with_capacity(entries.len()));
            for (at, ((_, shape, dtype), entry)) in slot.layout.0.iter().zip(&entries).enumerate() {
                interrupt.check()?;
                let upload = match both.take() {
                    Some(target) => Upload::into(
                        target,
                        at * distance(elements, *dtype),
                        elements,
                        *dtype,
                        device,
                    ),
                    None => {
                        let (elements, dtype) = placed(shape, *dtype);
                        Upload::new(elements, dtype, device)
                    }
                };
                let sent = entry.upload(upload, interrupt).await?;
                if joined {
                    both = Some(sent)
                } else {
                    tensors.push(sent)
                }
            }
            tensors.extend(
                both.into_iter()
                    .flat_map(|both| both.halves(elements, dtype)),
            );
            loaded.push((name, State { step, tensors }));
        }
        for slot in self.slots.values_mut() {
            slot.state = None;
        }
        for (name, state) in loaded {
            if let Some(slot) = self.slots.get_mut(&name) {
                slot.state = Some(state);
            }
        }
        Ok(dropped)
    }

    /// Cuts the saved state of a parameter that lies in parts into theirs; any other entry stays whole.
    fn in_parts<'a>(&self, entry: SavedState<'a>) -> Vec<SavedState<'a>> {
        let (param, key) = entry.name.rsplit_once(':').unwrap_or((&entry.name, ""));
        let slots = self.slots_of(param);
        let parts = slots.filter_map(|slot| {
            let (_, rows) = part_of(&slot.info.name)?;
            Some((format!("{}:{key}", slot.info.name), rows))
        });
        let parts: Vec<_> = parts.collect();
        if parts.is_empty() {
            vec![entry]
        } else {
            entry.cut(parts)
        }
    }

    /// Returns the states that fit, by parameter, and the names of the parameters that do not train, whose state is left out.
    #[allow(clippy::type_complexity, reason = "one use")]
    fn fitting<'a>(
        &self,
        saved: Vec<SavedState<'a>>,
        with_state: &[String],
    ) -> Result<(Vec<(String, Fitting<'a>)>, Vec<String>)> {
        let (mut faults, mut found, mut dropped) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        for entry in saved.into_iter().flat_map(|entry| self.in_parts(entry)) {
            let (param, key) = entry.name.rsplit_once(':').unwrap_or((&entry.name, ""));
            match self.slots.get(param) {
                Some(slot) if !slot.trains() => {
                    dropped.insert(whole_name(param).to_string());
                }
                Some(slot) if slot.knows(key) => {
                    if let Some(twice) = found.insert((param.to_string(), key.to_string()), entry) {
                        faults.push(Fault::new(twice.name, "one entry", "two"));
                    }
                }
                _ => faults.push(Fault::new(
                    &entry.name,
                    "a state of this run",
                    "an entry without a place",
                )),
            }
        }
        let unknown = with_state
            .iter()
            .filter(|name| self.slots_of(name).next().is_none());
        faults.extend(
            unknown
                .map(|name| Fault::new(name, "a parameter of this run", "a name without a place")),
        );
        let expected: BTreeSet<&str> = with_state.iter().map(String::as_str).collect();
        let mut fitting = Vec::new();
        for (name, slot) in self.slots.iter().filter(|(_, slot)| slot.trains()) {
            let mut take = |key: &str| found.remove(&(name.clone(), key.to_string()));
            let step = take("step");
            let entries: Vec<_> = slot.layout.0.iter().map(|(key, ..)| take(key)).collect();
            let absent = step.is_none() && entries.iter().all(Option::is_none);
            match (absent, expected.contains(whole_name(name))) {
                (true, false) => {}
                (false, false) => faults.push(Fault::new(
                    name,
                    "no state, as the checkpoint says",
                    "entries of one",
                )),
                (_, true) => fitting.extend(
                    slot.fits(step, entries, &mut faults)?
                        .map(|state| (name.clone(), state)),
                ),
            }
        }
        if faults.is_empty() {
            Ok((fitting, dropped.into_iter().collect()))
        } else {
            Err(Error::StateMismatch(faults))
        }
    }
}

impl Slot {
    fn knows(&self, key: &str) -> bool {
        key == "step" || self.layout.0.iter().any(|(name, ..)| *name == key)
    }

    /// Returns the entries if they are the state of this parameter; otherwise adds their faults.
    fn fits<'a>(
        &self,
        step: Option<SavedState<'a>>,
        entries: Vec<Option<SavedState<'a>>>,
        faults: &mut Vec<Fault>,
    ) -> Result<Option<Fitting<'a>>> {
        let before = faults.len();
        let name = &self.info.name;
        let rule = "U64 [] of at most 2⁵³ − 1";
        let step = match step {
            None => Err("none".to_string()),
            Some(entry) if !entry.is("U64", &[], 8) => Err(entry.shown()),
            Some(entry) => {
                let mut bytes = [0; 8];
                (entry.read)(0, &mut bytes)?;
                let step = u64::from_le_bytes(bytes);
                if step <= MAX_STEP {
                    Ok(step)
                } else {
                    Err(step.to_string())
                }
            }
        };
        let step = step.unwrap_or_else(|found| {
            faults.push(Fault::new(format!("{name}:step"), rule, found));
            0
        });
        let mut kept = Vec::with_capacity(entries.len());
        for ((key, shape, dtype), entry) in self.layout.0.iter().zip(entries) {
            let rule = || format!("{} {shape:?}", word(*dtype));
            match entry {
                None => faults.push(Fault::new(format!("{name}:{key}"), rule(), "none")),
                Some(entry)
                    if entry.is(
                        word(*dtype),
                        shape,
                        shape.iter().product::<usize>() * dtype.size(),
                    ) =>
                {
                    kept.push(entry)
                }
                Some(entry) => faults.push(Fault::new(&entry.name, rule(), entry.shown())),
            }
        }
        Ok((faults.len() == before).then_some(Fitting {
            step,
            entries: kept,
        }))
    }
}
