// Weights of two matrices in f32, four at a time: w0 [m0, 4 k4], w1 [rows, 4 k4], with m0 and k4 of the stem's
// Params.
@group(0) @binding(0) var<storage, read_write> w0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> w1: array<vec4<f32>>;

// The elements 4 i … 4 i + 3 of a row, counted through all matrices.
fn weight4(row: u32, i: u32) -> vec4<f32> {
  let k4 = params.k4; let m0 = params.m0;
  if (row < m0) {
    return w0[row * k4 + i];
  }
  return w1[(row - m0) * k4 + i];
}
