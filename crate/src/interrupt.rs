//! Cancelling long work, and letting other work run in between.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// A future that lets other work run. In a browser's worker: one round of its event loop, in which messages arrive.
pub type GiveWay = fn() -> Pin<Box<dyn Future<Output = ()>>>;

/// Passed to long work, which checks it between pieces. Clones share the request.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
    give_way: Option<GiveWay>,
}

impl Interrupt {
    /// An interrupt that is never requested and never gives way.
    pub fn none() -> Self {
        Self::default()
    }

    /// An interrupt that gives way at every pause.
    pub fn giving_way(give_way: GiveWay) -> Self {
        Self { give_way: Some(give_way), ..Self::default() }
    }

    /// Asks the work to end.
    pub fn request(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Withdraws the request.
    pub fn clear(&self) {
        self.asked.store(false, Ordering::Relaxed);
    }

    /// [`Error::Aborted`] if the work was asked to end.
    pub fn check(&self) -> Result<()> {
        if self.asked.load(Ordering::Relaxed) { Err(Error::Aborted) } else { Ok(()) }
    }

    /// Gives way, then [`Self::check`]s.
    pub async fn pause(&self) -> Result<()> {
        if let Some(give_way) = self.give_way {
            give_way().await;
        }
        self.check()
    }
}
