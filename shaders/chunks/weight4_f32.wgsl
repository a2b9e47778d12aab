// Weights in f32, four at a time: w [rows, 4 k4], with k4 of the stem's Params.
@group(0) @binding(0) var<storage, read_write> w: array<vec4<f32>>;

// The elements 4 i … 4 i + 3 of a row of w.
fn weight4(row: u32, i: u32) -> vec4<f32> {
  return w[row * params.k4 + i];
}
