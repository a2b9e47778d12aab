//! The state of one parameter: told, given, dropped.

use std::collections::BTreeMap;

use burn::tensor::Tensor;

use super::Optim;
use super::state::{State, word};
use crate::error::{Error, Fault, Result};

impl Optim {
    /// From now on the parameters that `rests` names have no gradient, no state and no update, and the others train: those that rested begin
    /// anew. What is random in an update is from now on that of `step` of the run: a parameter that trains again counts its own steps from
    /// 1, and would be rounded by the noise of its last turn.
    pub fn rest(&mut self, step: u64, rests: &dyn Fn(&str) -> bool) {
        self.run_step = Some(step);
        for (name, slot) in &mut self.slots {
            slot.rests = rests(name);
            if slot.rests {
                slot.state = None;
            }
        }
    }

    /// Whether the steps of all parameters that train now [repeat](super::Rule::repeats), with nothing given for the next.
    pub(crate) fn repeats(&self) -> bool {
        self.recorded.is_empty() && self.slots.values().filter(|slot| slot.trains()).all(|slot| slot.rule.repeats())
    }

    /// Step and names of the state tensors of `name`, without `step`; `None` without state.
    pub fn state_of(&self, name: &str) -> Option<(u64, Vec<&'static str>)> {
        let slot = self.slots.get(name)?;
        let state = slot.state.as_ref()?;
        Some((state.step, slot.layout.0.iter().map(|(word, ..)| *word).collect()))
    }

    /// Gives the parameter `name` this state: its step, and a flat tensor for each name of its layout. Those that are frozen or at rest have none.
    ///
    /// # Errors
    /// `optim.state-mismatch` for other names, numbers of elements or dtypes than those of its rule: all of them.
    pub(crate) fn put_state(&mut self, name: &str, step: u64, mut tensors: BTreeMap<&str, Tensor<1>>) -> Result<()> {
        let slot = self.slots.get_mut(name).ok_or_else(|| Error::UnexpectedTensors(vec![name.to_string()]))?;
        let (mut faults, mut kept) = (Vec::new(), Vec::new());
        for (key, shape, dtype) in &slot.layout.0 {
            let rule = || format!("{} {shape:?}", word(*dtype));
            match tensors.remove(*key) {
                Some(tensor) if tensor.dtype() == *dtype && tensor.dims() == [shape.iter().product::<usize>()] => kept.push(tensor.into()),
                Some(tensor) => {
                    let found = format!("{:?} of {:?} elements", tensor.dtype(), tensor.dims());
                    faults.push(Fault::new(format!("{name}:{key}"), rule(), found));
                }
                None => faults.push(Fault::new(format!("{name}:{key}"), rule(), "none")),
            }
        }
        faults.extend(tensors.keys().map(|key| Fault::new(format!("{name}:{key}"), "no such state", "an entry without a place")));
        if !faults.is_empty() {
            return Err(Error::StateMismatch(faults));
        }
        slot.state = slot.trains().then_some(State { step, tensors: kept });
        Ok(())
    }
}
