// Weights in f16, one at a time, for rows of any length: w [rows, k], with k of the stem's Params; two elements a word.
@group(0) @binding(0) var<storage, read_write> w: array<u32>;

// Element i of a row of w.
fn weight1(row: u32, i: u32) -> f32 {
  let at = row * params.k + i;
  return f16_value((w[at / 2u] >> (16u * (at & 1u))) & 0xffffu);
}
