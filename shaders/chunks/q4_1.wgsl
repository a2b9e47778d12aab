// Q4_1: 32 weights q·d + m. A block has 4 words of q (the low four bits of byte j are element j, the high ones
// element j + 16), and d and m in the second plane.
fn fours(at: u32) -> vec4<f32> {
  let block = at / 8u;
  let q = bytes(w[4u * block + at % 4u] >> (at & 4u), 15u);
  let scales = scale_and_minimum(block);
  return vec4<f32>(q) * scales.x + scales.y;
}
