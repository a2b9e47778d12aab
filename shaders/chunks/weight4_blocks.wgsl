// Four weights of blocks: w [rows, 4 k4], with k4 of the stem's Params.

// The elements 4 i … 4 i + 3 of a row of w.
fn weight4(row: u32, i: u32) -> vec4<f32> {
  return fours(row * params.k4 + i);
}
