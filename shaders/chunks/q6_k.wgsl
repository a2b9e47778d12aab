// Q6_K: 256 weights (d·s)·(q − 32), in two halves of four runs of 32. A block has 32 words with the low four bits of q,
// 16 per half: 8 words hold the runs 0 and 2, 8 the runs 1 and 3, in the low and high bits of the bytes; 16 words with
// the high two bits, 8 per half: the bits from 2n on of a byte are those of run n; 4 words of s, a signed byte for each
// 16 weights; and d in the second plane.
fn fours(at: u32) -> vec4<f32> {
  let block = at / 64u;
  let first = 52u * block;
  let four = at % 64u;
  let part = four / 32u;
  let run = four % 32u / 8u;
  let low = bytes(w[first + 16u * part + four % 16u] >> (4u * (run / 2u)), 15u);
  let high = bytes(w[first + 32u + 8u * part + four % 8u] >> (2u * run), 3u);
  let s = bitcast<i32>(w[first + 48u + four / 16u] << (24u - 8u * (four / 4u % 4u))) >> 24u;
  return (scale_of(block) * f32(s)) * (vec4<f32>(low | (high << vec4<u32>(4u))) - 32.0);
}
