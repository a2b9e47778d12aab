// y = x Wᵀ for GPUs: y[r, c] = Σ_i x[r, i] w[c, i] by tiles (chunks/forward_tile.wgsl). x [n, k] f32, w [m, k], y [n,
// stride], of which m columns from first on are written; k = 4 k4. Twin: ops/linear/kernels.rs
struct Params {
  n: u32,
  m: u32,
  k4: u32,
  stride: u32,
  first: u32,
  // Where the second plane of w begins.
  plane: u32,
}

@group(0) @binding(1) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<storage, read_write> params: Params;

fn put(row: u32, column: u32, value: f32) {
  y[row * params.stride + params.first + column] = value;
}

// Nothing is added to the sums after the products of x and w.
fn more() -> u32 {
  return 0u;
}

fn more_input(row: u32, i: u32) -> vec4<f32> {
  return vec4<f32>();
}

fn more_weight(row: u32, i: u32) -> vec4<f32> {
  return vec4<f32>();
}
