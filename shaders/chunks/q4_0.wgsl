// Q4_0: 32 weights (q − 8)·d. A block has 4 words of q (the low four bits of byte j are element j, the high ones
// element j + 16), and d in the second plane.
fn fours(at: u32) -> vec4<f32> {
  let block = at / 8u;
  let q = bytes(w[4u * block + at % 4u] >> (at & 4u), 15u);
  return (vec4<f32>(q) - 8.0) * scale_of(block);
}
