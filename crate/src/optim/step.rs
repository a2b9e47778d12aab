//! A step of parameters: each by its rule, those of AdamW two by two.

use burn::tensor::{DType, Device, Tensor};

use super::adamw::two::{self, Half};
use super::rule::{Recorded, Update};
use super::state::State;
use super::{Gate, Optim, ParamInfo, Slot};
use crate::error::{Error, Result};
use crate::gpu::Buffer;
use crate::gpu::noise::{Noise, Rounding};

/// A parameter that is to be moved by its gradient, both without autodiff.
pub(crate) struct Moved {
    name: String,
    device: Device,
    /// The parameter.
    pub p: Buffer,
    grad: Buffer,
}

/// A parameter by AdamW that waits for another one.
struct Waiting {
    name: String,
    p: Buffer,
    grad: Buffer,
    step: u64,
    moments: Buffer,
}

/// What an update depends on beside its parameter.
struct Common<'a> {
    device: &'a Device,
    seed: u64,
    run_step: Option<u64>,
    rate: f64,
    gate: &'a Gate,
    unread: Buffer,
}

/// What stays the same in the updates of a parameter.
#[derive(Clone, Copy)]
struct Constant {
    rate_scale: f64,
    key: [u32; 2],
    rounding: Rounding,
}

impl Slot {
    fn constant(&self) -> Constant {
        Constant { rate_scale: self.rate_scale * self.fallback.unwrap_or(1.0), key: self.key, rounding: self.rounding }
    }
}

impl Common<'_> {
    fn update<'a>(&'a self, parameter: &'a ParamInfo, constant: Constant, step: u64, recorded: Recorded) -> Update<'a> {
        let Constant { rate_scale, key, rounding } = constant;
        Update {
            parameter,
            device: self.device,
            seed: self.seed,
            step,
            rate: self.rate * rate_scale,
            gate: self.gate.buffer(),
            noise: Noise {
                key,
                step: self.run_step.unwrap_or(step),
                rounding: recorded.noise.as_ref().map_or(rounding, |_| Rounding::Given),
            },
            given: recorded.noise.unwrap_or_else(|| self.unread.clone()),
            projector: recorded.projector,
            unread: self.unread.clone(),
        }
    }
}

impl Optim {
    /// A parameter and its gradient for [`Optim::step_all`]; refuses shapes and dtypes that are not those of the parameter.
    pub(crate) fn moved<const D: usize>(&self, name: &str, p: Tensor<D>, grad: Tensor<D>) -> Result<Moved> {
        self.slot(name)?.check_tensors(&p, &grad)?;
        Ok(Moved { name: name.to_string(), device: p.device(), p: Buffer::of(p)?, grad: Buffer::of(grad)? })
    }

    /// A buffer of one word, bound in place of a buffer that a kernel does not read.
    pub(crate) fn word(&mut self, like: &Buffer) -> Buffer {
        self.unread.get_or_insert_with(|| like.empty_like([1], DType::F32)).clone()
    }

    /// One step of these parameters, which train. → the new ones by name
    pub(crate) fn step_all(&mut self, moved: Vec<Moved>, rate: f64, gate: &Gate) -> Result<Vec<(String, Buffer)>> {
        let Some(Moved { p, device, .. }) = moved.first() else { return Ok(Vec::new()) };
        let (unread, device) = (self.word(p), &device.clone());
        let common = Common { device, seed: self.seed, run_step: self.run_step, rate, gate, unread };
        let mut stepped = Vec::with_capacity(moved.len());
        let mut waiting = [None, None];
        for Moved { name, p, grad, .. } in moved {
            let recorded = self.recorded.remove(&name);
            let slot = self.slots.get_mut(&name).ok_or_else(|| Error::UnexpectedTensors(vec![name.clone()]))?;
            slot.check_devices(&p, &grad, recorded.as_ref())?;
            let State { step, tensors } = match slot.state.take() {
                Some(state) => state,
                None => slot.zeros(device)?,
            };
            let step = step + 1;
            let moments = match tensors.as_slice() {
                [m, v] if recorded.is_none() => Buffer::whole(m, v),
                _ => None,
            };
            if let Some(moments) = moments {
                drop(tensors);
                let this = Waiting { name, p, grad, step, moments };
                let place = &mut waiting[usize::from(slot.info.dtype == DType::BF16)];
                match place.take() {
                    Some(other) => self.step_two(other, Some(this), &common, &mut stepped)?,
                    None => *place = Some(this),
                }
                continue;
            }
            // A tensor without elements needs no dispatch; its step still counts.
            let (p, tensors) = if slot.info.elements() == 0 {
                (p, tensors)
            } else {
                let update = common.update(&slot.info, slot.constant(), step, recorded.unwrap_or_default());
                let (p, tensors) = slot.rule.step(&update, p, grad, tensors)?;
                if tensors.len() != slot.layout.0.len() {
                    return Err(update.another_state(slot.layout.0.len(), tensors.len()));
                }
                (p, tensors)
            };
            slot.state = Some(State { step, tensors });
            stepped.push((name, p));
        }
        for alone in waiting.into_iter().flatten() {
            self.step_two(alone, None, &common, &mut stepped)?;
        }
        Ok(stepped)
    }

    /// A step of one or two parameters whose m and v lie side by side.
    fn step_two(&mut self, first: Waiting, other: Option<Waiting>, common: &Common<'_>, stepped: &mut Vec<(String, Buffer)>) -> Result<()> {
        let mut spare = self.spare.take();
        let mut kept = vec![(first.name.clone(), first.step)];
        kept.extend(other.iter().map(|other| (other.name.clone(), other.step)));
        let slots: Vec<&Slot> = kept.iter().map(|(name, _)| self.slot(name)).collect::<Result<_>>()?;
        let updates =
            slots.iter().zip(&kept).map(|(slot, (_, step))| common.update(&slot.info, slot.constant(), *step, Recorded::default()));
        let updates: Vec<Update<'_>> = updates.collect();
        let mut of_each = slots.iter().zip(&updates);
        let mut half = |Waiting { p, grad, moments, .. }: Waiting| {
            let (slot, update) = of_each.next()?;
            Some(Half { rule: slot.adamw()?, update, p, g: grad, moments })
        };
        let first = half(first).expect("m and v lie side by side for AdamW alone");
        let made = two::step(first, other.and_then(half), &mut spare)?;
        drop(updates);
        self.spare = spare;
        for ((name, step), [p, moments]) in kept.into_iter().zip(made) {
            if let Some(slot) = self.slots.get_mut(&name) {
                let tensors = moments.halves(slot.info.elements(), slot.info.dtype).into();
                slot.state = Some(State { step, tensors });
            }
            stepped.push((name, p));
        }
        Ok(())
    }
}
