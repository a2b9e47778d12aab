//! What the surroundings of the crate decide: the clock, the one place where browser and native differ, and interruptions.

mod interrupt;
#[cfg(not(target_family = "wasm"))]
mod native;
#[cfg(target_family = "wasm")]
mod web;

pub use interrupt::{GiveWay, Interrupt};
#[cfg(not(target_family = "wasm"))]
pub use native::Stopwatch;
#[cfg(target_family = "wasm")]
pub use web::Stopwatch;
