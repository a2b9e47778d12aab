// Scales of Q4_K and Q5_K: a block of 8 runs of 32 weights begins with a word of the halves d and e and three words
// of six-bit numbers s and t of the runs. The bytes of the first word have s of the runs 0 … 3, those of the second
// one t. The third one has the low four bits of both for the runs 4 … 7, whose high two bits lie above the six bits
// of the runs 0 … 3 in the first two words.

// d·s and e·t of a run of the block that begins with the word `first`.
fn run_scales(first: u32, run: u32) -> vec2<f32> {
  let shift = 8u * (run % 4u);
  let near = vec2<u32>(w[first + 1u], w[first + 2u]) >> vec2<u32>(shift);
  let low = vec2<u32>(w[first + 3u]) >> (vec2<u32>(0u, 4u) + shift);
  let far = (low & vec2<u32>(15u)) | ((near >> vec2<u32>(2u)) & vec2<u32>(48u));
  let word = w[first];
  return vec2<f32>(f16_low(word), f16_high(word)) * vec2<f32>(select(near & vec2<u32>(63u), far, run >= 4u));
}
