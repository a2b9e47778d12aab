//! Runs steps again as they were recorded: the host goes through the optimizer only, and launches cost it nothing.

use burn::tensor::Tensor;

use super::backward::{NamedGradients, Scale, accumulate_placed};
use super::place::Placed;
use super::trainer::Trainer;
use crate::data::Batch;
use crate::error::{Error, Result};
use crate::gpu::capture::Varied;
use crate::gpu::counter::varying_dispatches;
use crate::gpu::graph::{Recording, RunBuffer};
use crate::gpu::{Buffer, trace};
use crate::ops::DropoutStep;
use crate::optim::{SquareSum, blocks_of, sum_of_squares};

/// Number of steps of one kind in a row that are launched before one is recorded: the first makes what is kept, and the recorded step takes
/// the memory of the last.
const BEFORE: usize = 2;

/// Maximum number of attempts to record a step, if the memory was not there.
const TRIES: usize = 4;

/// Properties that two steps must share to be the same launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    batch_size: usize,
    seq_len: usize,
    documents: bool,
}

/// Results of a backward pass: the sum of losses of each micro-batch, Σg², and the gradients.
#[derive(Clone)]
struct Passed {
    losses: Tensor<1>,
    squares: SquareSum,
    gradients: NamedGradients,
}

/// A recorded step.
struct Recorded {
    /// Forward and backward pass, and their results.
    passes: Recording,
    passed: Passed,
    /// Judging and updates, if they can be recorded.
    conclusion: Option<Recording>,
}

/// State of recording and repeating the steps of a run.
#[derive(Default)]
pub(super) struct Repeats {
    /// True if steps are to be recorded at all.
    pub allowed: bool,
    /// Kind of the last step.
    kind: Option<Kind>,
    /// Number of steps of this kind in a row that were launched.
    count: usize,
    tries: usize,
    /// Number of launches of the last step whose parameters vary.
    varying: usize,
    /// Data that differ between the runs of the recording, allocated before the steps whose memory the recording takes.
    buffer: Option<RunBuffer>,
    recorded: Option<Recorded>,
}

impl Repeats {
    /// Drops the recording and the memory that is kept for it. The next steps are launched again before one is recorded.
    pub fn forget(&mut self) {
        (self.kind, self.count, self.buffer, self.recorded) = (None, 0, None, None);
    }
}

/// A step to submit: the values that decide on its launches, the rate, and the factor of its loss.
pub(super) struct Submit<'a> {
    pub batches: &'a [Batch],
    pub step: u64,
    pub learning_rate: f64,
    pub scale: f64,
}

impl Submit<'_> {
    /// Returns the scale as a word for the device, in addition to the inputs: it follows the number of counted targets, which differs from
    /// step to step.
    fn factor(&self) -> [i32; 1] {
        [(self.scale as f32).to_bits().cast_signed()]
    }
}

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
        let masks = self.config.adapter.as_ref().is_some_and(|adapter| adapter.dropout > 0.0);
        // A rule that is launched may move a parameter that is not uniquely owned away from where a recording reads it.
        let fits = !(masks || self.coordinates.is_some() || trace::observing()) && self.optim.repeats();
        let Batch { batch_size, seq_len, ref document_starts, .. } = *batch;
        fits.then(|| Kind { batch_size, seq_len, documents: document_starts.is_some() })
    }

    /// Submits a step: by its launches, by recording them, or by running what was recorded. Returns the number of partials of each
    /// gradient's norm.
    pub(super) async fn submit_step(&mut self, submit: &Submit<'_>) -> Result<Vec<(String, usize)>> {
        let kind = self.kind(submit.batches).filter(|_| self.repeats.get_mut().allowed);
        let repeats = self.repeats.get_mut();
        if kind.is_none() || kind != repeats.kind {
            repeats.forget();
            repeats.kind = kind;
        }
        if let Some(recorded) = repeats.recorded.take() {
            if self.again(submit, &recorded)? {
                let partials = recorded.passed.partials();
                self.repeats.get_mut().recorded = Some(recorded);
                return Ok(partials);
            }
            self.forget_recording();
        } else if repeats.count >= BEFORE {
            let recorded = self.record(submit)?;
            let repeats = self.repeats.get_mut();
            if let Some(recorded) = recorded {
                let partials = recorded.passed.partials();
                repeats.recorded = Some(recorded);
                return Ok(partials);
            }
            repeats.tries += 1;
            repeats.allowed = repeats.tries < TRIES;
            repeats.forget();
        } else if repeats.count == BEFORE - 1 && kind.is_some() {
            let factor = submit.factor();
            let inputs = [Placed::inputs(self.model(), &submit.batches[0])?, vec![&factor[..]]].concat();
            let (words, repeats) = (inputs.iter().map(|input| input.len()).collect(), self.repeats.get_mut());
            repeats.buffer = self.outstanding.rows().and_then(|rows| RunBuffer::new(rows, words, repeats.varying));
            repeats.allowed = repeats.buffer.is_some();
        }
        let before = varying_dispatches();
        let (gradients, mut losses) = self.gradients(submit.batches).await?;
        let losses = if losses.len() == 1 { losses.remove(0) } else { Tensor::cat(losses, 0) };
        let passed = Passed::new(losses, gradients)?;
        let partials = passed.partials();
        self.conclude(passed, submit.learning_rate)?;
        let repeats = self.repeats.get_mut();
        (repeats.count, repeats.varying) = (repeats.count + 1, varying_dispatches() - before);
        Ok(partials)
    }

    /// Judges the step and updates the parameters.
    fn conclude(&mut self, passed: Passed, learning_rate: f64) -> Result<()> {
        let Passed { losses, squares, gradients } = passed;
        let gate = self.outstanding.judge(losses, squares, &self.config)?;
        self.update(gradients, learning_rate, &gate);
        Ok(())
    }

    /// Records a step and runs it. Returns `None` if it cannot be recorded.
    fn record(&mut self, submit: &Submit<'_>) -> Result<Option<Recorded>> {
        let batch = &submit.batches[0];
        let (factor, batch_inputs) = (submit.factor(), Placed::inputs(self.model(), batch)?);
        let inputs = [batch_inputs.as_slice(), &[&factor[..]]].concat();
        let Some(buffer) = self.repeats.get_mut().buffer.take() else { return Ok(None) };
        let dropout_step = DropoutStep { step: submit.step, micro_batch: 0 };
        let placed = Placed::on(batch, |index| buffer.input(index)).at(Some(dropout_step));
        let passes = buffer.record(|| {
            let mut gradients = NamedGradients::new();
            let frozen = |name: &str| self.optim.frozen(name);
            let recompute = self.config.gradient_checkpointing;
            let scale = Scale::Given(Box::new(buffer.number(batch_inputs.len())));
            let loss = accumulate_placed(self.model(), placed, scale, recompute, &frozen, &mut gradients)?;
            Passed::new(loss, gradients)
        })?;
        let Some((passes, passed)) = passes else { return Ok(None) };
        let conclusion = if self.optim.repeats() {
            // This allocates nothing, so it can be recorded. If it were not recorded, parameters would be lost.
            let recorded = buffer.record(|| self.conclude(passed.clone(), submit.learning_rate))?;
            let reason = || Error::DeviceLost { reason: "updates were not recorded".into() };
            Some(recorded.map(|(recording, ())| recording).ok_or_else(reason)?)
        } else {
            None
        };
        let none = Varied::default();
        if !buffer.write(&inputs, conclusion.as_ref().map_or(&none, Recording::varied)) {
            return Err(Error::DeviceLost { reason: "a step has updated more parameters than the one before".into() });
        }
        passes.run()?;
        match &conclusion {
            Some(conclusion) => conclusion.run()?,
            None => self.conclude(passed.clone(), submit.learning_rate)?,
        }
        self.repeats.get_mut().buffer = Some(buffer);
        Ok(Some(Recorded { passes, passed, conclusion }))
    }

    /// Runs a step as recorded. Returns `false`, with nothing changed, if it would not be the same.
    fn again(&mut self, submit: &Submit<'_>, recorded: &Recorded) -> Result<bool> {
        let factor = submit.factor();
        let inputs = [Placed::inputs(self.model(), &submit.batches[0])?, vec![&factor[..]]].concat();
        let before = self.optim.state_steps();
        let conclude = |trainer: &mut Self| trainer.conclude(recorded.passed.clone(), submit.learning_rate);
        let rehearsed = match &recorded.conclusion {
            Some(conclusion) => conclusion.rehearse(|| conclude(self)),
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
            None => conclude(self)?,
        }
        Ok(true)
    }
}

impl Passed {
    fn new(losses: Tensor<1>, gradients: NamedGradients) -> Result<Self> {
        let flat = gradients.values().map(|g| (Buffer::from(g.clone()), g.dims()[0])).collect();
        let none = || losses.clone().narrow(0, 0, 1).zeros_like();
        let squares = match sum_of_squares(flat)? {
            Some(squares) => squares,
            None => SquareSum { sum: none(), partials: none().into(), blocks: 0 },
        };
        Ok(Self { losses, squares, gradients })
    }

    /// Returns the number of partials of each gradient's norm.
    fn partials(&self) -> Vec<(String, usize)> {
        self.gradients.iter().map(|(name, g)| (name.clone(), blocks_of(g.dims()[0]))).collect()
    }
}
