//! Tracks steps that were submitted and whose reports are still on the device (shaders/README.md, "A step without a wait").

use std::collections::{BTreeMap, VecDeque};

use burn::tensor::{DType, Tensor};

use super::report::StepReport;
use crate::config::TrainConfig;
use crate::data::LoaderState;
use crate::error::{Error, Result};
use crate::gpu::{Buffer, StartedRead};
use crate::optim::SquareSum;
use crate::optim::gate::{self, Gate};
use crate::platform::Stopwatch;

/// Number of steps that are submitted while the reports of those before are on their way.
const LAG: usize = 2;

/// A submitted step, as far as the host knows it.
pub(super) struct Submitted {
    /// Number of the step, counted from 1.
    pub step: u64,
    /// Number of passes over the data at its end.
    pub epoch: f64,
    /// Factor that turns the sums of losses into their mean: one over the counted targets.
    pub scale: f64,
    /// Number of counted targets.
    pub tokens: u64,
    /// Rate of the step.
    pub learning_rate: f64,
    /// State of the run before the step.
    pub before: Before,
    /// Time since the step began.
    pub clock: Stopwatch,
}

/// State of a run before a step.
#[derive(Debug)]
pub(super) struct Before {
    pub loader: LoaderState,
    pub tokens: u64,
    pub state_steps: BTreeMap<String, u64>,
}

/// Steps whose rows are in one buffer and are read together.
struct Window {
    width: usize,
    /// The steps, each with the name and the number of partials of its gradients.
    steps: Vec<(Submitted, Vec<(String, usize)>)>,
}

/// A window that is being read.
struct Reading {
    read: StartedRead,
    window: Window,
    /// Number of steps that were submitted since.
    age: usize,
}

/// The steps whose reports are still on the device, and the gate through which they pass.
#[derive(Default)]
pub(super) struct Outstanding {
    gate: Option<Gate>,
    window: Option<Window>,
    reading: VecDeque<Reading>,
    /// Number of words and buffer of the rows, which all windows use in turn.
    rows: Option<(usize, Buffer)>,
    /// Time since the reports of a window arrived.
    arrived: Option<Stopwatch>,
    /// Refusal of a step that has not been reported yet.
    pub failed: Option<Error>,
    /// True if one value is read after each step, for pacing; `marks` are the last of these reads.
    pub paced: bool,
    marks: VecDeque<StartedRead>,
}

/// Results of reading.
pub(super) struct Collected {
    /// Reports of the steps that were taken, in their order.
    pub reports: Vec<StepReport>,
    /// The first step that was not finite: neither it nor those after it have written anything.
    pub refused: Option<(Before, u64, Error)>,
}

impl Outstanding {
    /// Returns the number of steps whose reports are still on the device.
    pub fn len(&self) -> usize {
        self.reading
            .iter()
            .map(|reading| &reading.window)
            .chain(&self.window)
            .map(|window| window.steps.len())
            .sum()
    }

    /// Judges a step on its device by its `losses [k]`, one sum per micro-batch, and Σg² of its gradients. Returns the gate that its
    /// updates pass.
    ///
    /// # Errors
    /// The errors of the launch.
    pub fn judge(
        &mut self,
        losses: Tensor<1>,
        squares: SquareSum,
        config: &TrainConfig,
    ) -> Result<Gate> {
        let width = gate::HEAD + losses.dims()[0];
        let words = config.report_every * width;
        let device = losses.device();
        let rows = match self.rows.take() {
            Some((of, rows)) if of == words => rows,
            _ => squares.partials.empty_like([words], DType::F32),
        };
        let gate = self.gate.take().unwrap_or_else(|| Gate::open(1.0, &device));
        let first = self.window.as_ref().map_or(0, |window| window.steps.len()) * width;
        let (gate, rows) = gate.next(losses, squares, config.max_grad_norm, rows, first)?;
        self.rows = Some((words, rows));
        self.gate = Some(gate.clone());
        Ok(gate)
    }

    /// Records that a judged step is submitted: its report is in a window of `report_every`. `partials` are those of its gradients, by
    /// name.
    pub fn submitted(
        &mut self,
        step: Submitted,
        micro_batches: usize,
        partials: Vec<(String, usize)>,
    ) {
        let width = gate::HEAD + micro_batches;
        self.window
            .get_or_insert_with(|| Window {
                width,
                steps: Vec::new(),
            })
            .steps
            .push((step, partials));
        self.reading.iter_mut().for_each(|reading| reading.age += 1);
    }

    /// Returns whether a step with so many micro-batches has its row in the window that is open.
    pub fn takes(&self, micro_batches: usize) -> bool {
        self.window
            .as_ref()
            .is_none_or(|window| window.width == gate::HEAD + micro_batches)
    }

    /// Returns the buffer of the rows, after the first step.
    pub fn rows(&self) -> Option<&Buffer> {
        self.rows.as_ref().map(|(_, rows)| rows)
    }

    /// Starts to read the first words of the rows.
    async fn first_words(&self, words: usize) -> Option<StartedRead> {
        let (_, rows) = self.rows.as_ref()?;
        Some(StartedRead::of_first(rows, words).await)
    }

    /// Starts to read a window that has `report_every` steps, and waits for those that are old enough; with `all`, for every step there is.
    ///
    /// # Errors
    /// The errors of the device. A step that is not finite is not an error here: it is returned as `refused`.
    pub async fn collect(&mut self, report_every: usize, all: bool) -> Result<Collected> {
        if let Some(window) = self
            .window
            .take_if(|window| all || window.steps.len() >= report_every)
        {
            let words = window.steps.len() * window.width;
            self.reading
                .extend(self.first_words(words).await.map(|read| Reading {
                    read,
                    window,
                    age: 0,
                }));
        }
        if self.paced && self.window.is_some() {
            self.marks.extend(self.first_words(1).await);
        }
        while self.marks.len() > if all { 0 } else { LAG } {
            if let Some(mark) = self.marks.pop_front() {
                mark.values().await?;
            }
        }
        let mut collected = Collected {
            reports: Vec::new(),
            refused: None,
        };
        let lag = if report_every == 1 || all { 0 } else { LAG };
        while let Some(reading) = self.reading.pop_front_if(|reading| reading.age >= lag) {
            let Reading {
                read,
                window: Window { width, steps },
                ..
            } = reading;
            let words: Vec<u32> = read.values().await?.into_iter().map(f32::to_bits).collect();
            // Windows overlap by the steps that are submitted before one is read: only the time since the last arrival belongs to this
            // window.
            let since_first = steps.first().map_or(0.0, |(first, _)| first.clock.secs());
            let secs = self
                .arrived
                .map_or(since_first, |arrived| arrived.secs().min(since_first))
                / steps.len() as f64;
            self.arrived = Some(Stopwatch::start());
            for ((submitted, gradients), row) in steps.into_iter().zip(words.chunks(width)) {
                match submitted.judged(row, &gradients, secs) {
                    Ok(report) => collected.reports.push(report),
                    Err(error) => {
                        let Submitted { step, before, .. } = submitted;
                        // A buffer must be kept until its read has completed. The steps after this one have changed nothing.
                        while let Some(later) = self.reading.pop_front() {
                            later.read.values().await?;
                        }
                        (self.gate, self.window) = (None, None);
                        collected.refused = Some((before, step, error));
                        return Ok(collected);
                    }
                }
            }
        }
        Ok(collected)
    }
}

impl Submitted {
    /// Returns the report of a step from its row; `gradients` are the name and number of partials of each of its gradients.
    fn judged(&self, row: &[u32], gradients: &[(String, usize)], secs: f64) -> Result<StepReport> {
        let Self {
            step,
            epoch,
            learning_rate,
            tokens,
            ..
        } = *self;
        let value = |word: u32| f64::from(f32::from_bits(word));
        let loss = row[gate::HEAD..]
            .iter()
            .map(|&loss| value(loss))
            .sum::<f64>()
            * self.scale;
        let grad_norm = value(row[2]).sqrt();
        if row[0] == gate::TAKEN {
            return Ok(StepReport {
                step,
                epoch,
                loss,
                grad_norm,
                learning_rate,
                tokens,
                secs,
            });
        }
        if !loss.is_finite() {
            return Err(Error::NonFinite {
                step,
                tensor: "loss".into(),
                value: loss,
            });
        }
        let mut end = 0;
        let bad = gradients.iter().find(|(_, blocks)| {
            end += blocks;
            (row[1] as usize) < end
        });
        let tensor = bad.map_or("grad_norm".into(), |(name, _)| {
            format!("gradient of {name}")
        });
        Err(Error::NonFinite {
            step,
            tensor,
            value: grad_norm,
        })
    }
}
