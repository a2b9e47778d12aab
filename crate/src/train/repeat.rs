//! Steps that run again as they were recorded: the host goes through the optimizer alone, and no launch costs it anything.

use burn::tensor::Tensor;

use super::backward::{NamedGradients, Scale, accumulate_placed};
use super::place::Placed;
use super::trainer::Trainer;
use crate::data::Batch;
use crate::error::{Error, Result};
use crate::gpu::graph::{Recording, RunBuffer, Varied};
use crate::gpu::launch::varying_dispatches;
use crate::gpu::{Buffer, trace};
use crate::ops::Moment;
use crate::optim::{SquareSum, blocks_of, sum_of_squares};

/// Steps of one kind in a row that are launched before one is recorded: the first makes what is kept, and the memory of the last is what the
/// recorded one takes.
const BEFORE: usize = 2;

/// A step is not tried to be recorded more often if the memory was not there.
const TRIES: usize = 4;

/// What a step needs in common with another to be the same launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    batch_size: usize,
    seq_len: usize,
    documents: bool,
}

/// What a backward pass ends in: the sum of losses of each micro-batch, Σg², and the gradients.
#[derive(Clone)]
struct Passed {
    losses: Tensor<1>,
    squares: SquareSum,
    gradients: NamedGradients,
}

/// A step as it was recorded.
struct Recorded {
    /// Forward and backward pass, and what they end in.
    passes: Recording,
    passed: Passed,
    /// Judging and updates, where they can be recorded.
    conclusion: Option<Recording>,
}

/// The steps of a run, as far as they repeat.
#[derive(Default)]
pub(super) struct Repeats {
    /// Whether steps are to be recorded at all.
    pub allowed: bool,
    /// Of the last step.
    kind: Option<Kind>,
    /// Steps of this kind in a row that were launched.
    count: usize,
    tries: usize,
    /// Launches of the last step whose parameters vary.
    varying: usize,
    /// What differs between the runs of the recording, which is there before the steps whose memory it takes.
    buffer: Option<RunBuffer>,
    recorded: Option<Recorded>,
}

impl Repeats {
    /// Lets go of the recording and of the memory that is kept for it. The next steps are launched again before one is recorded.
    pub fn forget(&mut self) {
        (self.kind, self.count, self.buffer, self.recorded) = (None, 0, None, None);
    }
}

/// A step that is submitted: what decides on its launches, the rate, and what its loss is multiplied by.
pub(super) struct Submit<'a> {
    pub batches: &'a [Batch],
    pub step: u64,
    pub learning_rate: f64,
    pub scale: f64,
}

impl Submit<'_> {
    /// The scale as a word on the device, beside the inputs: it follows the number of counted targets, which differs from step to step.
    fn factor(&self) -> [i32; 1] {
        [(self.scale as f32).to_bits().cast_signed()]
    }
}

impl Trainer {
    /// From now on a step that repeats the one before is recorded, and those after it run as recorded: with one micro-batch of equal length,
    /// without gradient release, block-coordinate training and dropout, and by rules that
    /// [repeat](crate::optim::Rule::repeats). The results are the same bits. No other thread may use the device while this one trains, and
    /// [`Trainer::forget_recording`] is to be called before it is used for something else that takes much memory.
    pub fn record_steps(&mut self) {
        self.repeats.get_mut().allowed = true;
    }

    /// Gives back the memory that is kept for steps that run as recorded. Evaluation does so by itself.
    pub fn forget_recording(&self) {
        self.repeats.borrow_mut().forget();
    }

    /// Whether the last step was recorded or ran as recorded.
    pub fn runs_as_recorded(&self) -> bool {
        self.repeats.borrow().recorded.is_some()
    }

    fn kind(&self, batches: &[Batch]) -> Option<Kind> {
        let [batch] = batches else { return None };
        let masks = self.config.adapter.as_ref().is_some_and(|adapter| adapter.dropout > 0.0);
        // A rule that is launched may move a parameter that somebody else holds, from where a recording reads it.
        let fits = !(masks || self.coordinates.is_some() || trace::observing()) && self.optim.repeats();
        let Batch { batch_size, seq_len, ref document_starts, .. } = *batch;
        fits.then(|| Kind { batch_size, seq_len, documents: document_starts.is_some() })
    }

    /// Submits a step: by its launches, by recording them, or by what was recorded. → the number of partials of each gradient's norm.
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

    /// Judges and updates.
    fn conclude(&mut self, passed: Passed, learning_rate: f64) -> Result<()> {
        let Passed { losses, squares, gradients } = passed;
        let gate = self.outstanding.judge(losses, squares, &self.config)?;
        self.update(gradients, learning_rate, &gate);
        Ok(())
    }

    /// Records a step and runs it. `None` where it cannot be recorded.
    fn record(&mut self, submit: &Submit<'_>) -> Result<Option<Recorded>> {
        let batch = &submit.batches[0];
        let (factor, batch_inputs) = (submit.factor(), Placed::inputs(self.model(), batch)?);
        let inputs = [batch_inputs.as_slice(), &[&factor[..]]].concat();
        let Some(buffer) = self.repeats.get_mut().buffer.take() else { return Ok(None) };
        let moment = Moment { step: submit.step, micro_batch: 0 };
        let placed = Placed::on(batch, |index| buffer.input(index)).at(Some(moment));
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
            // It allocates nothing, so that it can be recorded. If it were not, parameters would be lost.
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

    /// Runs a step as recorded. `false`, and nothing has changed, if it would not be the same.
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

    /// The number of partials of each gradient's norm.
    fn partials(&self) -> Vec<(String, usize)> {
        self.gradients.iter().map(|(name, g)| (name.clone(), blocks_of(g.dims()[0]))).collect()
    }
}
