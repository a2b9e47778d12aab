// Weights in f32, one at a time, for rows of any length: w [rows, k], with k of the stem's Params.
@group(0) @binding(0) var<storage, read_write> w: array<f32>;

// Element i of a row of w.
fn weight1(row: u32, i: u32) -> f32 {
  return w[row * params.k + i];
}
