//! Times passes of recorded launches: by the device's timestamps around each launch, or by the host's clock around all of them.

use crate::error::Result;
use crate::gpu::profile::{KernelTimes, Profile, Timing};
use crate::measure::Repeated;
use crate::platform::Stopwatch;

pub(super) struct Clock {
    timing: Timing,
}

impl Clock {
    /// Creates a clock for a device with or without timestamps.
    pub fn new(timestamps: bool) -> Self {
        Self {
            timing: if timestamps {
                Timing::Device
            } else {
                Timing::System
            },
        }
    }

    /// Returns the clock that was used: timestamps, unless the device turned out to have none.
    pub fn timing(&self) -> Timing {
        self.timing
    }

    /// Returns the mean seconds of a pass.
    ///
    /// # Errors
    /// The errors of the launches and of the device.
    pub async fn secs(&mut self, work: &mut Repeated, passes: usize) -> Result<f64> {
        if self.timing == Timing::Device
            && let Some(secs) = self.by_timestamps(work, passes).await?
        {
            return Ok(secs);
        }
        work.settled().await?;
        let clock = Stopwatch::start();
        work.settled().await?;
        let waiting = clock.secs();
        let clock = Stopwatch::start();
        (0..passes).try_for_each(|_| work.pass())?;
        work.settled().await?;
        // Subtracts the wait itself, but never more than nine tenths.
        let secs = clock.secs();
        Ok((secs - waiting).max(secs / 10.0) / passes as f64)
    }

    /// Returns the mean seconds of a pass; `None` if the device has no timestamps, or its clock is too coarse for these launches.
    async fn by_timestamps(&mut self, work: &mut Repeated, passes: usize) -> Result<Option<f64>> {
        let profile = Profile::start();
        (0..passes).try_for_each(|_| work.pass())?;
        let mut times = KernelTimes::default();
        profile.add_to(&mut times).await;
        let report = times.report();
        if report.timing == Timing::System {
            self.timing = Timing::System;
        }
        let short = 2.0 * report.unmeasured as f64 > report.dispatches;
        Ok(
            (report.timing == Timing::Device && !short && report.ms > 0.0)
                .then_some(report.ms / 1e3 / passes as f64),
        )
    }
}
