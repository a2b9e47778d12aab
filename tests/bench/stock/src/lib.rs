//! The benchmark's work and its model in Burn's own operations: what `tabtune-dev bench step --stock` and, in the browser, `npm run bench -- tiny
//! --peers stock` measure tabtune against.

pub mod stock;
pub mod work;

#[cfg(target_family = "wasm")]
mod page;
