// Q8_0: 32 weights q·d. A block has 8 words of q, signed bytes, and d in the second plane.
fn fours(at: u32) -> vec4<f32> {
  let word = bitcast<vec4<i32>>(vec4<u32>(w[at]) << vec4<u32>(24u, 16u, 8u, 0u));
  return vec4<f32>(word >> vec4<u32>(24u)) * scale_of(at / 8u);
}
