// Sums of squares of a gradient of n elements, one for each block of 256 (chunks/norm_blocks.wgsl).
// Twin: optim/norm/blocks.rs
struct Params {
  n: u32,
  first: u32,
}

@group(0) @binding(0) var<storage, read_write> g: array<f32>;
@group(0) @binding(1) var<storage, read_write> partials: array<f32>;
@group(0) @binding(2) var<storage, read_write> params: Params;

fn share_of(group: u32) -> Share {
  return Share(0u, params.n, params.first, group);
}

fn value(gradient: u32, i: u32) -> f32 {
  return g[i];
}
