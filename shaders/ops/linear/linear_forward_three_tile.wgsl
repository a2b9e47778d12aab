// Three products y_p = x W_pᵀ for GPUs in one dispatch, by tiles (chunks/forward_tile.wgsl) of their columns one after
// another. x [n, k] f32, w0 [m0, k], w1 [m1, k], w2 [m − m0 − m1, k], y_p [n, m_p]; k = 4 k4.
// Twin: ops/linear/joint.rs
struct Params {
  n: u32,
  // Number of columns of all y.
  m: u32,
  k4: u32,
  m0: u32,
  m1: u32,
}

@group(0) @binding(3) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> y0: array<f32>;
@group(0) @binding(5) var<storage, read_write> y1: array<f32>;
@group(0) @binding(6) var<storage, read_write> y2: array<f32>;
@group(0) @binding(7) var<storage, read_write> params: Params;

fn put(row: u32, column: u32, value: f32) {
  let m0 = params.m0; let m1 = params.m1;
  if (column < m0) {
    y0[row * m0 + column] = value;
  } else if (column < m0 + m1) {
    y1[row * m1 + column - m0] = value;
  } else {
    y2[row * (params.m - m0 - m1) + column - m0 - m1] = value;
  }
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
