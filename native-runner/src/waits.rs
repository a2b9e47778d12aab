//! Waiting for the device. When a wait reports the loss of a device, wgpu panics in the thread in which CubeCL polls it, and reads that are
//! waiting never end.

use std::future::{Future, poll_fn};
use std::panic;
use std::sync::{Mutex, PoisonError};
use std::task::{Poll, Waker};

use futures_lite::future;
use tabtune::{Error, Result};

/// Beginning of the message with which wgpu panics.
const OF_POLLING: &str = "Error in Device::poll";

/// The loss that a polling thread has noticed, and the waiting thread.
struct Noticed {
    loss: Option<String>,
    waiting: Option<Waker>,
}

static NOTICED: Mutex<Noticed> = Mutex::new(Noticed {
    loss: None,
    waiting: None,
});

fn noticed<T>(work: impl FnOnce(&mut Noticed) -> T) -> T {
    work(&mut NOTICED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Takes the panics of polling threads as losses of the device, without printing them.
pub fn install() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| match info.payload_as_str() {
        Some(message) if message.starts_with(OF_POLLING) => {
            let waiting = noticed(|noticed| {
                noticed.loss = Some(message.to_owned());
                noticed.waiting.take()
            });
            waiting.into_iter().for_each(Waker::wake);
        }
        _ => usual(info),
    }));
}

/// Forgets a loss, because another device has been opened.
pub fn forget() {
    noticed(|noticed| noticed.loss = None);
}

/// Waits for `work`, which needs the device.
///
/// # Errors
/// The errors of `work`; `device.lost` if it would wait for a lost device.
pub fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let lost = poll_fn(|context| {
        noticed(|noticed| match &noticed.loss {
            Some(loss) => Poll::Ready(Err(Error::device_lost(loss))),
            None => {
                noticed.waiting = Some(context.waker().clone());
                Poll::Pending
            }
        })
    });
    future::block_on(future::or(work, lost))
}
