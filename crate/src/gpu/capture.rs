//! The treatment of a thread's launches while a tape is set: they are recorded, or rehearsed without being launched.

use std::cell::RefCell;

use crate::error::{Refusal, Result, word};
use crate::gpu::AnyKernel;
use crate::gpu::allocation::{Handle, part};

/// Alignment of the parts of a [`RunBuffer`](crate::gpu::graph::RunBuffer) in bytes: no device requires more of a binding.
pub(super) const ALIGNMENT: usize = 256;

/// A launch with its parameters in one run.
pub(super) struct Run {
    kernel: &'static AnyKernel,
    pub params: Vec<u32>,
}

/// The parameters of a sequence of launches, in launch order.
#[derive(Default)]
pub struct Varied(Vec<Run>);

impl Varied {
    /// Returns the launches whose parameters differ from run to run.
    pub(super) fn varying(&self) -> impl Iterator<Item = &Run> {
        self.0.iter().filter(|run| run.kernel.varies)
    }

    /// Returns the names of the kernels.
    pub(super) fn kernels(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|run| run.kernel.name)
    }

    /// Checks that parameters which are not declared as varying are the same in `other`, another run of the same launches.
    pub(super) fn check(&self, other: &Self) -> Result<()> {
        let fixed = self
            .0
            .iter()
            .zip(&other.0)
            .filter(|(run, _)| !run.kernel.varies);
        for (run, other) in fixed {
            if let Some(at) = run
                .params
                .iter()
                .zip(&other.params)
                .position(|(a, b)| a != b)
            {
                let field = run.kernel.params.get(at).map_or("noise", |(name, _)| name);
                let refusal = Refusal::new(word!("kernel.parameter"))
                    .of(run.kernel.name)
                    .subject(field);
                let refusal = refusal
                    .expected("the same in each step, or parameters declared as varying")
                    .found("another in this step");
                return Err(refusal
                    .hint("write `varying` after the struct of its parameters in kernel!")
                    .into());
            }
        }
        Ok(())
    }
}

/// The treatment of this thread's launches while a tape is set.
pub(super) enum CaptureMode {
    /// They are recorded; varying parameters are read from slots.
    Recorded(Slots),
    /// They are rehearsed: their parameters are collected and nothing is launched.
    Rehearsed {
        /// True if a buffer that is updated in place has other owners, who keep its contents: a launch would have copied it first.
        shared: bool,
    },
}

/// The launches so far, and how they are treated.
pub(super) struct Tape {
    pub mode: CaptureMode,
    pub varied: Varied,
}

/// The part of a buffer that has the parameters of recorded launches.
pub(super) struct Slots {
    pub handle: Handle,
    /// Index of its first byte.
    pub first: usize,
    /// Number of launches.
    pub count: usize,
}

thread_local! {
    static TAPE: RefCell<Option<Tape>> = const { RefCell::new(None) };
}

/// The place of a launch's parameters.
pub(super) enum Params {
    /// A buffer of their own.
    Own,
    /// This part of a [`RunBuffer`](crate::gpu::graph::RunBuffer).
    Slot(Handle),
    /// No place, since nothing is launched.
    Nowhere,
}

/// Returns true if launches are only rehearsed, in which case the buffer `update` is left as it is, and notes whether that buffer is shared.
pub(super) fn rehearses(update: &Handle) -> bool {
    TAPE.with_borrow_mut(|tape| match tape {
        Some(Tape {
            mode: CaptureMode::Rehearsed { shared },
            ..
        }) => {
            *shared |= !update.can_mut();
            true
        }
        _ => false,
    })
}

/// Returns true if this thread's launches are recorded or rehearsed.
pub(super) fn records() -> bool {
    TAPE.with_borrow(Option::is_some)
}

/// Returns the place of the parameters of a launch of this thread, and adds them to the tape if there is one.
pub(super) fn place(kernel: &'static AnyKernel, params: &[u32]) -> Params {
    TAPE.with_borrow_mut(|tape| {
        let Some(Tape { mode, varied }) = tape else {
            return Params::Own;
        };
        let index = varied.varying().count();
        varied.0.push(Run {
            kernel,
            params: params.to_vec(),
        });
        match mode {
            CaptureMode::Rehearsed { .. } => Params::Nowhere,
            CaptureMode::Recorded(slots) if kernel.varies && index < slots.count => {
                Params::Slot(part(
                    &slots.handle,
                    slots.first + index * ALIGNMENT,
                    params.len().next_multiple_of(4),
                ))
            }
            CaptureMode::Recorded(_) => Params::Own,
        }
    })
}

/// Runs `work` with a tape; returns the result and the tape.
pub(super) fn with_tape<T>(mode: CaptureMode, work: impl FnOnce() -> T) -> (T, Option<Tape>) {
    /// Removes the tape on a panic too.
    struct Taped;
    impl Drop for Taped {
        fn drop(&mut self) {
            TAPE.set(None);
        }
    }
    TAPE.set(Some(Tape {
        mode,
        varied: Varied::default(),
    }));
    let _taped = Taped;
    let result = work();
    (result, TAPE.take())
}
