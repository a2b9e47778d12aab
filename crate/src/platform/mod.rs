//! Clock: the only place where browser and native differ.

#[cfg(not(target_family = "wasm"))]
mod native;
#[cfg(target_family = "wasm")]
mod web;

#[cfg(not(target_family = "wasm"))]
pub use native::Stopwatch;
#[cfg(target_family = "wasm")]
pub use web::Stopwatch;
