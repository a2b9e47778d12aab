// Weights in ggml's blocks, which the next text decodes: fours(at) gives the elements 4 at … 4 at + 3 of w, counted
// through all of its rows, with the bits of the decoders in crate/src/quants. w has two planes of words: first the
// bytes of each block that are not in the second plane, in the order of the file; then, from the word `plane` of the
// stem's Params on, the scales.
@group(0) @binding(0) var<storage, read_write> w: array<u32>;

// The four bytes of a word, each masked by `mask`.
fn bytes(word: u32, mask: u32) -> vec4<u32> {
  return (vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(mask);
}

// The scale of a block where the second plane has two scales per word.
fn scale_of(block: u32) -> f32 {
  return f16_value((w[params.plane + block / 2u] >> (16u * (block & 1u))) & 0xffffu);
}

// Scale and minimum of a block where the second plane has both in one word.
fn scale_and_minimum(block: u32) -> vec2<f32> {
  let word = w[params.plane + block];
  return vec2<f32>(f16_low(word), f16_high(word));
}
