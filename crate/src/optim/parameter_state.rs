//! Access to the state of one parameter: reading, replacing and dropping it.

use super::Optim;
use crate::parameters::whole_name;

#[doc(hidden)]
impl Optim {
    /// Returns true if `name` needs no gradient: it is in a frozen group, rests, or is unknown.
    pub fn frozen(&self, name: &str) -> bool {
        self.slots_of(name).all(|slot| !slot.trains())
    }

    /// The number of steps that `name` has taken.
    pub fn step_count(&self, name: &str) -> u64 {
        let state = self
            .slots_of(name)
            .next()
            .and_then(|slot| slot.state.as_ref());
        state.map_or(0, |state| state.step)
    }

    /// Gives the parameter `name` a state of zeros after `step` steps.
    ///
    /// # Errors
    ///
    /// `model.tensor.unexpected` for an unknown parameter, and errors of the device.
    #[cfg(feature = "replay")]
    pub(crate) fn begin_after(
        &mut self,
        name: &str,
        step: u64,
        device: &burn::tensor::Device,
    ) -> crate::error::Result<()> {
        let slot = self.slot_mut(name)?;
        let zeros = slot.zeros(device)?;
        slot.state = slot
            .trains()
            .then_some(super::state::State { step, ..zeros });
        Ok(())
    }

    /// Puts the parameters that `rests` names to rest: they have no gradient, no state and no update. The others train; those that rested before
    /// start again. Updates draw the random numbers of `step`, a step of the run, until the next call: a parameter that trains again counts its own
    /// steps from 1, and would otherwise be rounded by the noise of its last turn.
    pub fn rest(&mut self, step: u64, rests: &dyn Fn(&str) -> bool) {
        self.run_step = Some(step);
        for (name, slot) in &mut self.slots {
            slot.rests = rests(whole_name(name));
            if slot.rests {
                slot.state = None;
            }
        }
    }

    /// Returns true if the steps of all parameters that train [repeat](super::Rule::repeats), and no recorded randomness is given for the next one.
    pub(crate) fn repeats(&self) -> bool {
        self.recorded.is_empty() && self.trained().all(|slot| slot.rule.repeats())
    }

    /// The step of `name` and the names of its state tensors, without `step`; `None` without state.
    pub fn state_of(&self, name: &str) -> Option<(u64, Vec<&'static str>)> {
        let slot = self.slots_of(name).next()?;
        let state = slot.state.as_ref()?;
        Some((
            state.step,
            slot.layout.0.iter().map(|(word, ..)| *word).collect(),
        ))
    }
}
