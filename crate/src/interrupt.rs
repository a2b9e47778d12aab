//! Cancels long work, and lets other work run in between.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// Future that lets other work run. In a browser's worker: one round of its event loop, in which messages arrive.
#[doc(hidden)]
pub type GiveWay = fn() -> Pin<Box<dyn Future<Output = ()>>>;

/// Cancellation request that long work receives and checks between pieces. Clones share the request ([example](crate)).
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
    give_way: Option<GiveWay>,
}

impl Interrupt {
    /// Creates an interrupt that is never requested and never gives way.
    pub fn none() -> Self {
        Self::default()
    }

    /// Creates an interrupt that gives way at every pause.
    #[doc(hidden)]
    pub fn giving_way(give_way: GiveWay) -> Self {
        Self {
            give_way: Some(give_way),
            ..Self::default()
        }
    }

    /// Creates an interrupt that is requested while this flag is set, for example by the handler of a signal.
    pub fn of(asked: Arc<AtomicBool>) -> Self {
        Self {
            asked,
            give_way: None,
        }
    }

    /// Asks the work to end.
    pub fn request(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Withdraws the request.
    #[doc(hidden)]
    pub fn clear(&self) {
        self.asked.store(false, Ordering::Relaxed);
    }

    /// Checks that the work was not asked to end.
    ///
    /// # Errors
    /// [`Error::Aborted`] if it was.
    #[doc(hidden)]
    pub fn check(&self) -> Result<()> {
        // Values that were set before the request are seen after it.
        if self.asked.load(Ordering::Acquire) {
            Err(Error::Aborted)
        } else {
            Ok(())
        }
    }

    /// Gives way to other work, then [`Self::check`]s.
    ///
    /// # Errors
    /// [`Error::Aborted`] if the work was asked to end.
    #[doc(hidden)]
    pub async fn pause(&self) -> Result<()> {
        if let Some(give_way) = self.give_way {
            give_way().await;
        }
        self.check()
    }
}
