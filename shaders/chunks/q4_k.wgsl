// Q4_K: 256 weights (d·s)·q − e·t. A block has 4 words of scales and 32 words of q, of which each 8 hold two runs: the
// low four bits of the bytes are the even run, the high ones the odd run. One plane.
fn fours(at: u32) -> vec4<f32> {
  let first = 36u * (at / 64u);
  let run = at % 64u / 8u;
  let q = bytes(w[first + 4u + 8u * (run / 2u) + at % 8u] >> (4u * (run % 2u)), 15u);
  let scales = run_scales(first, run);
  return vec4<f32>(q) * scales.x - scales.y;
}
