//! Steps that were submitted and whose reports are still on the device (shaders/README.md, "A step without a wait").

use std::collections::{BTreeMap, VecDeque};

use burn::tensor::{DType, Tensor};

use super::backward::NamedGradients;
use super::report::StepReport;
use crate::data::LoaderState;
use crate::error::{Error, Result};
use crate::gpu::{Buffer, StartedRead};
use crate::optim::gate::{self, Gate};
use crate::optim::{SquareSum, blocks_of, sum_of_squares};
use crate::platform::Stopwatch;

/// Steps that are submitted while the reports of those before are on their way.
const LAG: usize = 2;

/// What a step leaves on the host.
pub(super) struct Submitted {
    /// Counted from 1.
    pub step: u64,
    /// Mean of the losses' sums over the counted targets.
    pub scale: f64,
    /// Counted targets.
    pub tokens: u64,
    /// Rate of the step.
    pub learning_rate: f64,
    /// Where the run stood before.
    pub before: Before,
    /// Name and partials of each gradient.
    gradients: Vec<(String, usize)>,
}

/// Where a run stood before a step.
#[derive(Debug)]
pub(super) struct Before {
    pub loader: LoaderState,
    pub tokens: u64,
    pub state_steps: BTreeMap<String, u64>,
}

/// Steps whose rows are in one buffer.
struct Window {
    rows: Buffer,
    width: usize,
    steps: Vec<Submitted>,
    clock: Stopwatch,
}

/// A window that is being read.
struct Reading {
    read: StartedRead,
    window: Window,
    /// Steps that were submitted since.
    age: usize,
}

/// The steps whose reports are still on the device, and the gate through which they pass.
#[derive(Default)]
pub(super) struct Outstanding {
    gate: Option<Gate>,
    window: Option<Window>,
    reading: VecDeque<Reading>,
    /// Rows that were read, and their words: the next window has them again.
    spare: Option<(usize, Buffer)>,
    /// The refusal of a step that is still to be told.
    pub failed: Option<Error>,
    /// Whether a word is read after each step, and the last of these reads.
    pub paced: bool,
    marks: VecDeque<StartedRead>,
}

/// What was read.
pub(super) struct Collected {
    /// Of the steps that were taken, in their order.
    pub reports: Vec<StepReport>,
    /// The first step that was not finite: nothing was written by it and those after it.
    pub refused: Option<(Before, u64, Error)>,
}

/// A step as it is submitted.
pub(super) struct Submission<'a> {
    pub step: u64,
    pub scale: f64,
    pub tokens: u64,
    pub learning_rate: f64,
    pub before: Before,
    /// A sum for each micro-batch.
    pub losses: Vec<Tensor<1>>,
    pub gradients: &'a NamedGradients,
    /// Since the step began.
    pub clock: Stopwatch,
}

impl Outstanding {
    /// Number of steps whose reports are still on the device.
    pub fn len(&self) -> usize {
        self.reading.iter().map(|reading| &reading.window).chain(&self.window).map(|window| window.steps.len()).sum()
    }

    /// Judges a step on its device: the gate that its updates pass. Its report is in a window of `report_every`.
    pub fn submit(&mut self, submission: Submission<'_>, max_grad_norm: f64, report_every: usize) -> Result<Gate> {
        let Submission { step, scale, tokens, learning_rate, before, losses, gradients, clock } = submission;
        let flat = gradients.values().map(|g| (Buffer::from(g.clone()), g.dims()[0])).collect();
        let none = || losses[0].zeros_like();
        let squares = match sum_of_squares(flat)? {
            Some(squares) => squares,
            None => SquareSum { sum: none(), partials: none().into(), blocks: 0 },
        };
        let (device, width) = (losses[0].device(), gate::HEAD + losses.len());
        let gradients = gradients.iter().map(|(name, g)| (name.clone(), blocks_of(g.dims()[0]))).collect();
        let submitted = Submitted { step, scale, tokens, learning_rate, before, gradients };
        let words = report_every * width;
        let mut window = self.window.take().unwrap_or_else(|| {
            let spare = self.spare.take().filter(|(of, _)| *of == words);
            let rows = spare.map_or_else(|| squares.partials.empty_like([words], DType::F32), |(_, rows)| rows);
            Window { rows, width, steps: Vec::new(), clock }
        });
        let gate = self.gate.take().unwrap_or_else(|| Gate::open(1.0, &device));
        let first = window.steps.len() * width;
        let (gate, rows) = gate.next(Tensor::cat(losses, 0), squares, max_grad_norm, window.rows, first)?;
        window.rows = rows;
        window.steps.push(submitted);
        self.gate = Some(gate.clone());
        self.window = Some(window);
        self.reading.iter_mut().for_each(|reading| reading.age += 1);
        Ok(gate)
    }

    /// Whether a step with so many micro-batches has its row in the window that is open.
    pub fn takes(&self, micro_batches: usize) -> bool {
        self.window.as_ref().is_none_or(|window| window.width == gate::HEAD + micro_batches)
    }

    /// Starts to read a window that has `report_every` steps, and waits for those whose age it is; with `all` for every step there is.
    pub async fn collect(&mut self, report_every: usize, all: bool) -> Result<Collected> {
        if let Some(window) = self.window.take_if(|window| all || window.steps.len() >= report_every) {
            let words = window.steps.len() * window.width;
            let rows = window.rows.clone().float::<1>().narrow(0, 0, words);
            self.reading.push_back(Reading { read: StartedRead::of(rows).await, window, age: 0 });
        }
        if let Some(window) = self.window.as_ref().filter(|_| self.paced) {
            self.marks.push_back(StartedRead::of(window.rows.clone().float::<1>().narrow(0, 0, 1)).await);
        }
        while self.marks.len() > if all { 0 } else { LAG } {
            if let Some(mark) = self.marks.pop_front() {
                mark.values().await?;
            }
        }
        let mut collected = Collected { reports: Vec::new(), refused: None };
        let last = if report_every == 1 || all { 0 } else { LAG };
        while let Some(reading) = self.reading.pop_front() {
            if reading.age < last && self.reading.is_empty() {
                self.reading.push_front(reading);
                break;
            }
            let Reading { read, window: Window { rows, width, steps, clock }, .. } = reading;
            let words: Vec<u32> = read.values().await?.into_iter().map(f32::to_bits).collect();
            self.spare = Some((report_every * width, rows));
            let secs = clock.secs() / steps.len() as f64;
            for (submitted, row) in steps.into_iter().zip(words.chunks(width)) {
                match submitted.judged(row, secs) {
                    Ok(report) => collected.reports.push(report),
                    Err(error) => {
                        let Submitted { step, before, .. } = submitted;
                        // A buffer must be kept until the read of it has completed. The steps after this one have changed nothing.
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
    /// The report of a step from its row.
    fn judged(&self, row: &[u32], secs: f64) -> Result<StepReport> {
        let Self { step, learning_rate, tokens, .. } = *self;
        let value = |word: u32| f64::from(f32::from_bits(word));
        let loss = row[gate::HEAD..].iter().map(|&loss| value(loss)).sum::<f64>() * self.scale;
        let grad_norm = value(row[2]).sqrt();
        if row[0] == gate::TAKEN {
            return Ok(StepReport { step, loss, grad_norm, learning_rate, tokens, secs });
        }
        if !loss.is_finite() {
            return Err(Error::NonFinite { step, tensor: "loss".into(), value: loss });
        }
        let mut end = 0;
        let bad = self.gradients.iter().find(|(_, blocks)| {
            end += blocks;
            (row[1] as usize) < end
        });
        let tensor = bad.map_or("grad_norm".into(), |(name, _)| format!("gradient of {name}"));
        Err(Error::NonFinite { step, tensor, value: grad_norm })
    }
}
