// One weight of blocks: w [rows, k], with k of the stem's Params.

// Element i of a row of w.
fn weight1(row: u32, i: u32) -> f32 {
  let at = row * params.k + i;
  return fours(at / 4u)[at % 4u];
}
