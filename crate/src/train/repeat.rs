//! Runs steps again as they were recorded: the host goes through the optimizer only, and launches cost it nothing.

use burn::tensor::Tensor;

use super::backward::{NamedGradients, Scale, accumulate_on_device};
use super::device_batch::DeviceBatch;
use super::recorded_step::{BackwardOutput, Kind, Recorded};
use super::trainer::Trainer;
use crate::data::Batch;
use crate::error::{Error, Result};
use crate::gpu::capture::Varied;
use crate::gpu::counter::varying_dispatches;
use crate::gpu::graph::{Recording, RunBuffer};
use crate::gpu::trace;
use crate::ops::DropoutStep;

/// Number of steps of one kind in a row that are launched before one is recorded: the first makes what is kept, and the recorded step takes
/// the memory of the last.
const WARMUP_STEPS: usize = 2;

/// Maximum number of attempts to record a step, if the memory was not there.
const MAX_ATTEMPTS: usize = 4;

/// How a step runs.
#[allow(
    clippy::large_enum_variant,
    reason = "one, which lives for the time of a step"
)]
enum Turn {
    /// By its launches.
    Launch,
    /// By its launches, which are recorded.
    Record,
    /// As it was recorded.
    Replay(Recorded),
}

/// A step to submit: the values that decide on its launches, the rate, and the factor of its loss.
pub(super) struct Submit<'a> {
    pub batches: &'a [Batch],
    pub step: u64,
    pub learning_rate: f64,
    pub scale: f64,
}

impl Submit<'_> {
    /// The scale as a word for the device, in addition to the inputs: it follows the number of counted targets, which differs from
    /// step to step.
    fn factor(&self) -> [i32; 1] {
        [(self.scale as f32).to_bits().cast_signed()]
    }
}

#[doc(hidden)]
impl Trainer {
    /// Enables recording: a step that repeats the one before is recorded, and those after it run as recorded. This applies to steps with
    /// one micro-batch of equal length, without gradient release, block-coordinate training and dropout, and with rules that
    /// [repeat](crate::optim::Rule::repeats). The results are the same bits. No other thread may use the device while this one trains; call
    /// [`Trainer::forget_recording`] before the device is used for something else that takes much memory.
    pub fn record_steps(&mut self) {
        self.repeats.get_mut().allowed = true;
    }

    /// Frees the memory that is kept for steps that run as recorded. Evaluation does so by itself.
    pub fn forget_recording(&self) {
        self.repeats.borrow_mut().forget();
    }

    /// Returns whether the last step was recorded or ran as recorded.
    pub fn runs_as_recorded(&self) -> bool {
        self.repeats.borrow().recorded.is_some()
    }

    fn kind(&self, batches: &[Batch]) -> Option<Kind> {
        let [batch] = batches else { return None };
        let masks = self
            .config
            .adapter
            .as_ref()
            .is_some_and(|adapter| adapter.dropout > 0.0);
        // A rule that is launched may move a parameter that is not uniquely owned away from where a recording reads it.
        let fits = !(masks || self.block_coordinate.is_some() || trace::observing())
            && self.optim.repeats();
        let Batch {
            batch_size,
            seq_len,
            ref document_starts,
            ..
        } = *batch;
        fits.then(|| Kind {
            batch_size,
            seq_len,
            documents: document_starts.is_some(),
        })
    }

    /// Submits a step: by its launches, by recording them, or by running what was recorded. Returns the number of partials of each
    /// gradient's norm.
    pub(super) async fn submit_step(
        &mut self,
        submit: &Submit<'_>,
    ) -> Result<Vec<(String, usize)>> {
        let kind = self
            .kind(submit.batches)
            .filter(|_| self.repeats.get_mut().allowed);
        let repeats = self.repeats.get_mut();
        if kind.is_none() || kind != repeats.kind {
            repeats.forget();
            repeats.kind = kind;
        }
        let turn = match repeats.recorded.take() {
            Some(recorded) => Turn::Replay(recorded),
            None if repeats.count >= WARMUP_STEPS => Turn::Record,
            None => Turn::Launch,
        };
        match turn {
            Turn::Replay(recorded) => {
                if self.replay_step(submit, &recorded)? {
                    return Ok(self.keep(recorded));
                }
                self.forget_recording();
            }
            Turn::Record => {
                if let Some(recorded) = self.record(submit)? {
                    return Ok(self.keep(recorded));
                }
                let repeats = self.repeats.get_mut();
                repeats.attempts += 1;
                repeats.allowed = repeats.attempts < MAX_ATTEMPTS;
                repeats.forget();
            }
            Turn::Launch => {
                if kind.is_some() && self.repeats.get_mut().count == WARMUP_STEPS - 1 {
                    self.reserve_recording(submit)?;
                }
            }
        }
        self.launch_step(submit).await
    }

    /// The inputs of a recorded step: those of its batch, and the factor of the loss as its last.
    fn inputs<'a>(&self, submit: &Submit<'a>, factor: &'a [i32]) -> Result<Vec<&'a [i32]>> {
        let mut inputs = DeviceBatch::inputs(self.model(), &submit.batches[0])?;
        inputs.push(factor);
        Ok(inputs)
    }

    /// Keeps the recording for the next step. Returns the number of partials of each gradient's norm.
    fn keep(&mut self, recorded: Recorded) -> Vec<(String, usize)> {
        let partials = recorded.output.partials();
        self.repeats.get_mut().recorded = Some(recorded);
        partials
    }

    /// Reserves the words that differ from step to step for the recording of the next step.
    fn reserve_recording(&mut self, submit: &Submit<'_>) -> Result<()> {
        let factor = submit.factor();
        let inputs = self.inputs(submit, &factor)?;
        let words = inputs.iter().map(|input| input.len()).collect();
        let repeats = self.repeats.get_mut();
        repeats.buffer = self
            .outstanding
            .rows()
            .and_then(|rows| RunBuffer::new(rows, words, repeats.varying));
        repeats.allowed = repeats.buffer.is_some();
        Ok(())
    }

    /// Submits a step by its launches, and counts those that differ from step to step.
    async fn launch_step(&mut self, submit: &Submit<'_>) -> Result<Vec<(String, usize)>> {
        let before = varying_dispatches();
        let (gradients, mut losses) = self.gradients(submit.batches).await?;
        let losses = if losses.len() == 1 {
            losses.remove(0)
        } else {
            Tensor::cat(losses, 0)
        };
        let output = BackwardOutput::new(losses, gradients)?;
        let partials = output.partials();
        self.clip_and_update(output, submit.learning_rate)?;
        let repeats = self.repeats.get_mut();
        (repeats.count, repeats.varying) = (repeats.count + 1, varying_dispatches() - before);
        Ok(partials)
    }

    /// Judges the step and updates the parameters.
    fn clip_and_update(&mut self, output: BackwardOutput, learning_rate: f64) -> Result<()> {
        let BackwardOutput {
            losses,
            squares,
            gradients,
        } = output;
        let gate = self.outstanding.judge(losses, squares, &self.config)?;
        self.update(gradients, learning_rate, &gate);
        Ok(())
    }

    /// Records a step and runs it. Returns `None` if it cannot be recorded.
    fn record(&mut self, submit: &Submit<'_>) -> Result<Option<Recorded>> {
        let batch = &submit.batches[0];
        let factor = submit.factor();
        let inputs = self.inputs(submit, &factor)?;
        let Some(buffer) = self.repeats.get_mut().buffer.take() else {
            return Ok(None);
        };
        let dropout_step = DropoutStep {
            step: submit.step,
            micro_batch: 0,
        };
        let device_batch =
            DeviceBatch::on(batch, |index| buffer.input(index)).at(Some(dropout_step));
        let passes = buffer.record(|| {
            let mut gradients = NamedGradients::new();
            let frozen = |name: &str| self.optim.frozen(name);
            let recompute = self.config.gradient_checkpointing;
            let scale = Scale::Given(Box::new(buffer.number(inputs.len() - 1)));
            let loss = accumulate_on_device(
                self.model(),
                device_batch,
                scale,
                recompute,
                &frozen,
                &mut gradients,
            )?;
            BackwardOutput::new(loss, gradients)
        })?;
        let Some((passes, output)) = passes else {
            return Ok(None);
        };
        let conclusion = if self.optim.repeats() {
            // This allocates nothing, so it can be recorded. If it were not recorded, parameters would be lost.
            let recorded =
                buffer.record(|| self.clip_and_update(output.clone(), submit.learning_rate))?;
            let reason = || Error::DeviceLost {
                reason: "updates were not recorded".into(),
            };
            Some(
                recorded
                    .map(|(recording, ())| recording)
                    .ok_or_else(reason)?,
            )
        } else {
            None
        };
        let none = Varied::default();
        if !buffer.write(
            &inputs,
            conclusion.as_ref().map_or(&none, Recording::varied),
        ) {
            return Err(Error::DeviceLost {
                reason: "a step has updated more parameters than the one before".into(),
            });
        }
        passes.run()?;
        match &conclusion {
            Some(conclusion) => conclusion.run()?,
            None => self.clip_and_update(output.clone(), submit.learning_rate)?,
        }
        self.repeats.get_mut().buffer = Some(buffer);
        Ok(Some(Recorded {
            passes,
            output,
            conclusion,
        }))
    }

    /// Runs a step as recorded. Returns `false`, with nothing changed, if it would not be the same.
    fn replay_step(&mut self, submit: &Submit<'_>, recorded: &Recorded) -> Result<bool> {
        let factor = submit.factor();
        let inputs = self.inputs(submit, &factor)?;
        let before = self.optim.state_steps();
        let clip_and_update = |trainer: &mut Self| {
            trainer.clip_and_update(recorded.output.clone(), submit.learning_rate)
        };
        let rehearsed = match &recorded.conclusion {
            Some(conclusion) => conclusion.rehearse(|| clip_and_update(self)),
            None => Ok(Some(Varied::default())),
        };
        let varied = rehearsed.inspect_err(|_| self.optim.go_back(&before))?;
        let written = varied.is_some_and(|varied| {
            let buffer = self.repeats.get_mut().buffer.as_ref();
            buffer.is_some_and(|buffer| buffer.write(&inputs, &varied))
        });
        if !written {
            self.optim.go_back(&before);
            return Ok(false);
        }
        recorded.passes.run()?;
        match &recorded.conclusion {
            Some(conclusion) => conclusion.run()?,
            None => clip_and_update(self)?,
        }
        Ok(true)
    }
}
