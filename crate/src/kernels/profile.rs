//! Time of each kernel: those of the catalogue and those that Burn generates, by the device's timestamps where it has them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use super::launch::{LaunchObservation, LaunchObserver, ProfileDuration, TimingMethod, TimingRequest, dispatches};

thread_local! {
    /// Whether launches of this thread are timed: the observer is the process's, its kernels are this thread's.
    static TIMED: Cell<bool> = const { Cell::new(false) };
    /// The kernel of the catalogue that this thread is launching.
    static LAUNCHING: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Runs `launch`, whose kernel is `name` of the catalogue.
pub(super) fn launching(name: &'static str, launch: impl FnOnce()) {
    LAUNCHING.set(Some(name));
    launch();
    LAUNCHING.set(None);
}

/// `a::b::Kernel<c::D>` → `Burn: Kernel`.
fn shown(type_name: &str) -> String {
    let path = type_name.split('<').next().unwrap_or(type_name);
    format!("Burn: {}", path.rsplit("::").next().unwrap_or(path))
}

/// The name of the kernel that this thread launches, which calls itself `type_name`.
fn name_of(type_name: &str) -> String {
    LAUNCHING.get().map_or_else(|| shown(type_name), str::to_owned)
}

#[derive(Default)]
struct Launches {
    count: BTreeMap<String, u64>,
    /// Times that nobody has waited for yet.
    pending: Vec<(String, ProfileDuration)>,
}

#[derive(Default)]
struct Record(Mutex<Launches>);

impl Record {
    fn launches(&self) -> MutexGuard<'_, Launches> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LaunchObserver for Record {
    fn launched(&self, kernel: &'static str) {
        if TIMED.get() {
            *self.launches().count.entry(name_of(kernel)).or_default() += 1;
        }
    }

    fn timing(&self) -> TimingRequest {
        if TIMED.get() { TimingRequest::Deferred } else { TimingRequest::None }
    }

    fn profiled(&self, kernel: &'static str, profile: ProfileDuration) {
        self.launches().pending.push((name_of(kernel), profile));
    }
}

/// Times every launch of this thread while it lives: one step. Each kernel is submitted by itself, so that the step takes longer, its
/// kernels do not.
pub struct Profile {
    record: Arc<Record>,
    dispatches: u64,
    _observation: LaunchObservation,
}

impl Profile {
    /// Begins to time.
    pub fn start() -> Self {
        let record = Arc::new(Record::default());
        TIMED.set(true);
        Self { record: record.clone(), dispatches: dispatches(), _observation: LaunchObservation::new(record) }
    }

    /// Ends, waits for the times and adds them to `times` as those of one more step.
    pub async fn add_to(self, times: &mut KernelTimes) {
        TIMED.set(false);
        let Launches { count, pending } = std::mem::take(&mut *self.record.launches());
        times.steps += 1;
        times.dispatches += dispatches() - self.dispatches;
        times.unmeasured += count.values().sum::<u64>();
        for (name, launches) in count {
            times.kernels.entry(name).or_default().0 += launches;
        }
        for (name, profile) in pending {
            times.by_system |= profile.timing_method() == TimingMethod::System;
            if let Some(ticks) = profile.resolve().await {
                times.unmeasured -= 1;
                times.kernels.entry(name).or_default().1 += ticks.duration().as_secs_f64() * 1e3;
            }
        }
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        TIMED.set(false);
    }
}

/// Launches and milliseconds of each kernel, summed over steps.
#[derive(Debug, Clone, Default)]
pub struct KernelTimes {
    steps: u64,
    kernels: BTreeMap<String, (u64, f64)>,
    dispatches: u64,
    unmeasured: u64,
    by_system: bool,
}

/// What took the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Timing {
    /// The device's timestamps around each kernel.
    Device,
    /// The host's clock, from the launch of each kernel to the end of the wait for it.
    System,
}

/// One kernel in a [`ProfileReport`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelTime {
    /// Its stem; a kernel that Burn generated is `Burn: ` and its type.
    pub kernel: String,
    /// Launches of a step, mean.
    pub launches: f64,
    /// Milliseconds of a step, mean.
    pub ms: f64,
    /// Part of all kernels' time, 0 to 1.
    pub share: f64,
}

/// Where the device's time of a step goes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProfileReport {
    /// Steps that were timed.
    pub steps: u64,
    /// What took the time.
    pub timing: Timing,
    /// Milliseconds of all kernels in a step, mean.
    pub ms: f64,
    /// Launches of the catalogue's kernels in a step, mean, by the counter of [`dispatches`].
    pub dispatches: f64,
    /// Launches in all steps without a time: shorter than the tick of the device's clock.
    pub unmeasured: u64,
    /// The kernels, dearest first.
    pub kernels: Vec<KernelTime>,
}

impl KernelTimes {
    /// Means over the steps.
    pub fn report(&self) -> ProfileReport {
        let steps = self.steps.max(1) as f64;
        let total: f64 = self.kernels.values().map(|(_, ms)| ms).sum();
        let row = |(kernel, &(launches, ms)): (&String, &(u64, f64))| KernelTime {
            kernel: kernel.clone(),
            launches: launches as f64 / steps,
            ms: ms / steps,
            share: if total > 0.0 { ms / total } else { 0.0 },
        };
        let mut kernels: Vec<KernelTime> = self.kernels.iter().map(row).collect();
        kernels.sort_by(|a, b| b.ms.total_cmp(&a.ms));
        let timing = if self.by_system { Timing::System } else { Timing::Device };
        let dispatches = self.dispatches as f64 / steps;
        ProfileReport { steps: self.steps, timing, ms: total / steps, dispatches, unmeasured: self.unmeasured, kernels }
    }
}
