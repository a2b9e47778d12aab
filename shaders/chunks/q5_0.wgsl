// Q5_0: 32 weights (q − 16)·d. A block has a word with the high bits of q, 4 words with the others (the low four bits
// of byte j are element j, the high ones element j + 16), and d in the second plane.
fn fours(at: u32) -> vec4<f32> {
  let block = at / 8u;
  let high = vec4<u32>(w[5u * block]) >> (vec4<u32>(0u, 1u, 2u, 3u) + 4u * (at % 8u));
  let q = bytes(w[5u * block + 1u + at % 4u] >> (at & 4u), 15u) | ((high & vec4<u32>(1u)) << vec4<u32>(4u));
  return (vec4<f32>(q) - 16.0) * scale_of(block);
}
