// Q5_K: 256 weights (d·s)·q − e·t. A block has 4 words of scales, 8 words with the high bits of q (bit n of a byte is
// that of run n), and 32 words with the others, of which each 8 hold two runs: the low four bits of the bytes are the
// even run, the high ones the odd run. One plane.
fn fours(at: u32) -> vec4<f32> {
  let first = 44u * (at / 64u);
  let run = at % 64u / 8u;
  let low = bytes(w[first + 12u + 8u * (run / 2u) + at % 8u] >> (4u * (run % 2u)), 15u);
  let high = bytes(w[first + 4u + at % 8u] >> run, 1u);
  let scales = run_scales(first, run);
  return vec4<f32>(low | (high << vec4<u32>(4u))) * scales.x - scales.y;
}
