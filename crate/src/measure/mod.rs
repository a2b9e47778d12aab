//! Measures a device: its peak arithmetic, with [`fma`](crate::gpu::fma), the bytes that it moves, with [`copy`](crate::gpu::copy), and how
//! near the kernels of a training step come to these at fixed shapes.
//!
//! A shape is divided by powers of two until one pass takes no longer than [`Effort::pass_secs`], so that a measurement of a software
//! adapter ends too; a report states for each kernel whether its shape is whole.

mod clock;
#[doc(hidden)]
pub mod reference;
mod repeated;
mod report;

pub use repeated::Repeated;
pub use report::{GpuReport, KernelRate, Measure, linear_of_step};

use crate::device::Device;
use crate::error::{Error, Result};
use crate::gpu::launch::{compiler_of, is_software};
use crate::interrupt::Interrupt;
use clock::Clock;
use reference::{LINEAR_OF_STEP, REFERENCE, Reference, Work};

/// Time that a measurement may take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// Longest pass of a kernel at the chosen shape.
    pub pass_secs: f64,
    /// Approximate time for which passes are repeated, three times; the median counts.
    pub repeat_secs: f64,
    /// True if the products of a step of SmolLM2-135M are measured too, each by itself.
    pub products_of_step: bool,
    /// True if the device has timestamps. A browser may lack them.
    pub timestamps: bool,
}

impl Effort {
    /// Returns the effort of a benchmark: some ten seconds on a GPU.
    pub fn whole() -> Self {
        Self {
            pass_secs: 0.1,
            repeat_secs: 0.1,
            products_of_step: true,
            timestamps: true,
        }
    }

    /// Returns the effort that the user of a page, or a test, waits for: a second or two on a GPU.
    pub fn quick() -> Self {
        Self {
            pass_secs: 0.01,
            repeat_secs: 0.02,
            products_of_step: false,
            timestamps: true,
        }
    }
}

/// Number of repetitions, from which the median is taken.
const REPETITIONS: usize = 3;

/// Maximum number of passes in one repetition.
const MOST_PASSES: f64 = 200.0;

/// Duration that a clock measures well: the timestamps of browsers have ticks of 0.1 ms, and a wait for the device varies as much.
const ENOUGH_SECS: f64 = 0.005;

struct Bench<'a> {
    device: &'a Device,
    effort: &'a Effort,
    interrupt: &'a Interrupt,
    clock: Clock,
}

/// One kernel at the chosen shape, with its time.
struct Timed {
    divisor: usize,
    kernels: Vec<String>,
    secs: f64,
}

impl Bench<'_> {
    /// Returns the seconds of one pass: the median of means.
    async fn secs(&mut self, work: &mut Repeated, guess: f64) -> Result<f64> {
        let passes = (self.effort.repeat_secs / guess.max(1e-9)).clamp(1.0, MOST_PASSES) as usize;
        let mut secs = Vec::with_capacity(REPETITIONS);
        for _ in 0..REPETITIONS {
            secs.push(self.clock.secs(work, passes).await?);
            self.interrupt.pause().await?;
        }
        secs.sort_by(f64::total_cmp);
        Ok(secs[REPETITIONS / 2])
    }

    /// Returns the approximate seconds of one pass: the shorter of two means, over as many passes as the clock needs.
    async fn once(&mut self, work: &mut Repeated) -> Result<f64> {
        // The first pass compiles.
        self.clock.secs(work, 1).await?;
        let mut passes = 1;
        loop {
            let secs = self
                .clock
                .secs(work, passes)
                .await?
                .min(self.clock.secs(work, passes).await?);
            if secs * passes as f64 >= ENOUGH_SECS || passes as f64 >= MOST_PASSES {
                return Ok(secs);
            }
            passes *= 4;
        }
    }

    /// Times a kernel, going from its smallest shape to the largest whose pass is expected to be short enough.
    async fn time(&mut self, of: &Reference) -> Result<Timed> {
        let mut divisor = of.work.divisors().last().unwrap_or(1);
        loop {
            let launches = of.work.launches(divisor, self.device)?;
            let mut work = Repeated::new(&launches, &self.device.inner(), self.interrupt).await?;
            let once = self.once(&mut work).await?;
            let expected = |larger: usize| once * of.work.amount(larger) / of.work.amount(divisor);
            match of
                .work
                .divisors()
                .find(|&larger| larger < divisor && expected(larger) <= self.effort.pass_secs)
            {
                Some(larger) => divisor = larger,
                None => {
                    let mut kernels: Vec<String> = launches
                        .iter()
                        .map(|launched| launched.kernel.name.to_owned())
                        .collect();
                    kernels.dedup();
                    return Ok(Timed {
                        divisor,
                        kernels,
                        secs: self.secs(&mut work, once).await?,
                    });
                }
            }
            self.interrupt.pause().await?;
        }
    }

    /// Returns the seconds of a copy that moves as many bytes.
    async fn copy_secs(&mut self, bytes: f64) -> Result<f64> {
        let mut work = Repeated::new(
            &Work::copy_of((bytes / 8.0) as usize),
            &self.device.inner(),
            self.interrupt,
        )
        .await?;
        let once = self.once(&mut work).await?;
        self.secs(&mut work, once).await
    }
}

/// Measures `device`. `progress` receives the number of kernels measured so far, and the number of all kernels.
///
/// # Errors
///
/// [`Error::NoAdapter`] if kernels run as their twins; [`Error::Aborted`]; the errors of the device.
pub async fn measure_gpu(
    device: &Device,
    effort: &Effort,
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<GpuReport> {
    if compiler_of(&device.inner()) == "none" {
        return Err(Error::NoAdapter {
            reason: "kernels are measured where they run as WGSL: on a GPU or a software adapter"
                .into(),
        });
    }
    let mut bench = Bench {
        device,
        effort,
        interrupt,
        clock: Clock::new(effort.timestamps),
    };
    let of_step = if effort.products_of_step {
        LINEAR_OF_STEP
    } else {
        &[]
    };
    let list: Vec<&Reference> = REFERENCE.iter().chain(of_step).collect();
    let (mut peak, mut copy) = (f64::NAN, f64::NAN);
    let mut kernels = Vec::with_capacity(list.len());
    for (done, of) in list.iter().enumerate() {
        progress(done, list.len());
        let Timed {
            divisor,
            kernels: names,
            secs,
        } = bench.time(of).await?;
        let (flops, bytes) = (of.work.flops(divisor), of.work.bytes(divisor));
        let rate = flops.unwrap_or(bytes) / secs / 1e9;
        let fraction = match of.work {
            Work::Fma { .. } => {
                peak = rate;
                1.0
            }
            Work::Copy { .. } => {
                copy = rate;
                1.0
            }
            _ if flops.is_some() => rate / peak,
            _ => bench.copy_secs(bytes).await? / secs,
        };
        kernels.push(KernelRate {
            name: of.name.into(),
            shape: of.work.shape(divisor),
            whole: divisor == 1,
            kernels: names,
            ms: secs * 1e3,
            gflop_per_sec: flops.map(|_| rate),
            gb_per_sec: bytes / secs / 1e9,
            fraction,
            of: if flops.is_some() {
                Measure::Peak
            } else {
                Measure::Copy
            },
            in_step: of.in_step,
        });
    }
    progress(list.len(), list.len());
    let info = device.info();
    Ok(GpuReport {
        adapter: info.adapter.clone(),
        driver: info.driver.clone(),
        backend: info.backend.clone(),
        software: is_software(&device.inner()),
        timing: bench.clock.timing(),
        peak_gflop_per_sec: peak,
        copy_gb_per_sec: copy,
        kernels,
    })
}
