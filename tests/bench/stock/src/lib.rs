//! The benchmark's work and its model in Burn's own operations: what `tabtune-dev bench step --stock` and, in the browser, the stock
//! peer of `npm run lab -- bench tiny` measure tabtune against.

pub mod stock;
pub mod work;

#[cfg(target_family = "wasm")]
mod page;
