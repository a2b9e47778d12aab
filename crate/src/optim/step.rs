//! One step of several parameters: those whose rules have the same type are stepped together.

use std::any::TypeId;
use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor};

use super::rule::{Member, Recorded, Rule, Update, another_state};
use super::state::State;
use super::{Gate, Optim, ParamInfo, Slot, guard, unexpected};
use crate::error::{Error, Fault, Result};
use crate::gpu::Buffer;
use crate::gpu::noise::{Noise, Rounding};

/// A parameter with the gradient that will move it, both without autodiff.
pub(crate) struct Moved {
    name: String,
    device: Device,
    /// The parameter.
    pub p: Buffer,
    grad: Buffer,
}

/// The values that the updates of all parameters of a step share.
struct Common<'a> {
    device: &'a Device,
    seed: u64,
    run_step: Option<u64>,
    rate: f64,
    gate: &'a Gate,
    unread: Buffer,
}

/// The parameters of a step whose rules have one type. For each of them `ends` has its name, its step, the number of tensors of its state, and the
/// place for the new state.
#[derive(Default)]
struct Batch<'a> {
    members: Vec<(&'a mut dyn Rule, Member<'a>)>,
    ends: Vec<(String, u64, usize, &'a mut Option<State>)>,
}

impl Common<'_> {
    /// Makes the update of a parameter at `step`. `constant` is the same in all of its steps: factor of the rate, key and first pair of the noise, rounding.
    fn update<'a>(
        &'a self,
        parameter: &'a ParamInfo,
        constant: (f64, [u32; 2], u32, Rounding),
        step: u64,
        recorded: Recorded,
    ) -> Update<'a> {
        let (rate_scale, key, first_pair, rounding) = constant;
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
                rounding: recorded
                    .noise
                    .as_ref()
                    .map_or(rounding, |_| Rounding::Given),
                first_pair,
            },
            given: recorded.noise.unwrap_or_else(|| self.unread.clone()),
            projector: recorded.projector,
            unread: self.unread.clone(),
        }
    }
}

impl Optim {
    /// Pairs a parameter with its gradient for [`Optim::step_all`]; refuses shapes and dtypes that are not those of the parameter.
    pub(crate) fn moved<const D: usize>(
        &self,
        name: &str,
        p: Tensor<D>,
        grad: Tensor<D>,
    ) -> Result<Moved> {
        self.slot(name)?.check_tensors(&p, &grad)?;
        Ok(Moved {
            name: name.to_string(),
            device: p.device(),
            p: Buffer::of(p)?,
            grad: Buffer::of(grad)?,
        })
    }

    /// A buffer of one word, which is bound in place of a buffer that a kernel does not read.
    pub(crate) fn word(&mut self, like: &Buffer) -> Buffer {
        self.unread
            .get_or_insert_with(|| like.floats_like([1]))
            .clone()
    }

    /// Takes one step of these parameters, which must train, and returns the new ones by name.
    pub(crate) fn step_all(
        &mut self,
        moved: Vec<Moved>,
        rate: f64,
        gate: &Gate,
    ) -> Result<Vec<(String, Buffer)>> {
        let Some(Moved { p, device, .. }) = moved.first() else {
            return Ok(Vec::new());
        };
        let (unread, device) = (self.word(p), &device.clone());
        let common = Common {
            device,
            seed: self.seed,
            run_step: self.run_step,
            rate,
            gate,
            unread,
        };
        let mut slots: Vec<Option<&mut Slot>> = moved.iter().map(|_| None).collect();
        let places: BTreeMap<&str, usize> = moved
            .iter()
            .enumerate()
            .map(|(at, Moved { name, .. })| (name.as_str(), at))
            .collect();
        for (name, slot) in &mut self.slots {
            if let Some(at) = places.get(name.as_str()) {
                slots[*at] = Some(slot);
            }
        }
        let mut stepped = Vec::with_capacity(moved.len());
        let mut batches: Vec<(TypeId, Batch<'_>)> = Vec::new();
        for (Moved { name, p, grad, .. }, slot) in moved.into_iter().zip(slots) {
            let recorded = self.recorded.remove(&name);
            let slot = slot.ok_or_else(|| unexpected(&name))?;
            slot.check_devices(&p, &grad, recorded.as_ref())?;
            let State {
                step,
                tensors: state,
            } = match slot.state.take() {
                Some(state) => state,
                None => slot.zeros(device)?,
            };
            let step = step + 1;
            // A tensor without elements needs no dispatch; its step still counts.
            if slot.info.elements() == 0 {
                slot.state = Some(State {
                    step,
                    tensors: state,
                });
                stepped.push((name, p));
                continue;
            }
            let Slot {
                info,
                rule,
                state: place,
                rate_scale,
                fallback,
                key,
                first_pair,
                rounding,
                layout,
                ..
            } = slot;
            let scale = *rate_scale * fallback.unwrap_or(1.0);
            let constant = (scale, *key, *first_pair, *rounding);
            let update = common.update(info, constant, step, recorded.unwrap_or_default());
            if !rule.binds_gate() {
                let (p, tensors) = guard::step(&mut **rule, layout, &update, [p, grad], state)?;
                *place = Some(State { step, tensors });
                stepped.push((name, p));
                continue;
            }
            let of: TypeId = (**rule).type_id();
            let at = batches
                .iter()
                .position(|(other, _)| *other == of)
                .unwrap_or_else(|| {
                    batches.push((of, Batch::default()));
                    batches.len() - 1
                });
            let batch = &mut batches[at].1;
            batch.members.push((
                &mut **rule,
                Member {
                    update,
                    p,
                    grad,
                    state,
                },
            ));
            batch.ends.push((name, step, layout.0.len(), place));
        }
        for (_, Batch { members, ends }) in batches {
            let mut members = members.into_iter();
            let Some((rule, own)) = members.next() else {
                continue;
            };
            let made = rule.step_many(own, members.collect())?;
            if made.len() != ends.len() {
                let names: Vec<String> = ends.into_iter().map(|(name, ..)| name).collect();
                return Err(Error::StateMismatch(vec![Fault::new(
                    names.join(", "),
                    format!("{} stepped parameters", names.len()),
                    made.len(),
                )]));
            }
            for ((name, step, expected, place), (p, tensors)) in ends.into_iter().zip(made) {
                if tensors.len() != expected {
                    return Err(another_state(&name, expected, tensors.len()));
                }
                *place = Some(State { step, tensors });
                stepped.push((name, p));
            }
        }
        Ok(stepped)
    }
}
