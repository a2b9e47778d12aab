// Text in front of every kernel: indices past 65,535 workgroups, tests of NaN and Inf on bits, bf16 and f16 in halves
// of a word, Philox noise, rounding, the gate of a step.

// Number of this workgroup in the folded grid (x <= 65535).
fn group_index(group: vec3<u32>, groups: vec3<u32>) -> u32 {
  return group.y * groups.x + group.x;
}

// Number of this invocation in the folded grid.
fn grid_index(group: vec3<u32>, groups: vec3<u32>, lane: u32, size: u32) -> u32 {
  return (group.y * groups.x + group.x) * size + lane;
}

fn is_nan_bits(bits: u32) -> bool {
  return (bits & 0x7fffffffu) > 0x7f800000u;
}

fn is_finite_bits(bits: u32) -> bool {
  return (bits & 0x7f800000u) != 0x7f800000u;
}

// The even element of a packed word.
fn bf16_low(word: u32) -> f32 {
  return bitcast<f32>(word << 16u);
}

// The odd element of a packed word.
fn bf16_high(word: u32) -> f32 {
  return bitcast<f32>(word & 0xffff0000u);
}

// The four elements of two packed words.
fn bf16_four(words: vec2<u32>) -> vec4<f32> {
  return vec4<f32>(bf16_low(words.x), bf16_high(words.x), bf16_low(words.y), bf16_high(words.y));
}

// Half precision as f32, by integers: a shader may treat a subnormal half, which the scale of a block can be, as zero.
fn f16_value(bits: u32) -> f32 {
  let rest = bits & 0x7fffu;
  // 112 more in the exponent; Infinity and NaN keep all of its bits.
  let normal = (rest << 13u) + select(0x38000000u, 0x70000000u, rest >= 0x7c00u);
  let subnormal = bitcast<u32>(f32(rest) * 5.9604644775390625e-8);
  return bitcast<f32>(((bits & 0x8000u) << 16u) | select(normal, subnormal, rest < 0x400u));
}

// The even element of a packed word of halves.
fn f16_low(word: u32) -> f32 {
  return f16_value(word & 0xffffu);
}

// The odd element of a packed word of halves.
fn f16_high(word: u32) -> f32 {
  return f16_value(word >> 16u);
}

// f32 bits to bf16, to nearest even; NaN becomes the quiet NaN of its sign.
fn bf16_nearest(bits: u32) -> u32 {
  let rounded = (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
  return select(rounded, ((bits >> 16u) & 0x8000u) | 0x7fc0u, is_nan_bits(bits));
}

// The high word of the 64-bit product.
fn mul_high(a: u32, b: u32) -> u32 {
  let al = a & 0xffffu;
  let ah = a >> 16u;
  let bl = b & 0xffffu;
  let bh = b >> 16u;
  let mid = ((al * bl) >> 16u) + ((al * bh) & 0xffffu) + ((ah * bl) & 0xffffu);
  return ah * bh + ((al * bh) >> 16u) + ((ah * bl) >> 16u) + (mid >> 16u);
}

// Philox4x32-10 (Salmon et al., SC 2011). Twin: random.rs
fn philox(counter: vec4<u32>, key: vec2<u32>) -> vec4<u32> {
  var c = counter;
  var k = key;
  for (var round = 0u; round < 10u; round++) {
    c = vec4<u32>(
      mul_high(c.z, 0xcd9e8d57u) ^ c.y ^ k.x, c.z * 0xcd9e8d57u,
      mul_high(c.x, 0xd2511f53u) ^ c.w ^ k.y, c.x * 0xd2511f53u,
    );
    k += vec2<u32>(0x9e3779b9u, 0xbb67ae85u);
  }
  return c;
}

// f32 bits to bf16, away from zero with probability frac/65536; noise of 16 bits. NaN and Inf stay, finite values
// saturate.
fn bf16_stochastic(bits: u32, noise: u32) -> u32 {
  let high = bits >> 16u;
  if ((bits & 0x7f800000u) == 0x7f800000u) {
    return select(high, (high & 0x8000u) | 0x7fc0u, (bits & 0x7fffffu) != 0u);
  }
  let rounded = high + select(0u, 1u, noise < (bits & 0xffffu));
  return select(rounded, high, (rounded & 0x7fffu) == 0x7f80u);
}

// The gate of a step. `closed` is 0 if the step writes; it is not 0 once a loss or norm is not finite, in this step and
// the following ones. `factor` is the factor of the gradients, which clips them. Twin: optim/gate.rs
struct Gate {
  closed: u32,
  factor: f32,
}

// The source of the rounding of one step of one parameter. The last field of `Params`, at a multiple of 16 bytes.
// Twin: random.rs
struct Noise {
  key: vec2<u32>,
  // Low and high word.
  step: vec2<u32>,
  rounding: u32,
  // Index of the first pair of elements, in a tensor that holds some rows of a parameter; 0 in any other.
  first_pair: u32,
}

// The noise words of elements 2·pair and 2·pair + 1, one word of two halves for each of the streams m, v, p.
fn noise_words(noise: Noise, pair: u32) -> vec4<u32> {
  return philox(vec4<u32>(noise.first_pair + pair, 0u, noise.step), noise.key);
}

// The rounding of a write: random.rs, Rounding. F32 means that the tensor is not packed.
const ROUND_F32: u32 = 0u;
const ROUND_NEAREST: u32 = 1u;
const ROUND_STOCHASTIC: u32 = 2u;
const ROUND_GIVEN: u32 = 3u;

// Two f32 values as one packed word; the low half of `noise` holds the 16 bits of the low element.
fn bf16_pair(low: f32, high: f32, noise: u32, rounding: u32) -> u32 {
  let a = bitcast<u32>(low);
  let b = bitcast<u32>(high);
  if (rounding == ROUND_NEAREST) {
    return bf16_nearest(a) | (bf16_nearest(b) << 16u);
  }
  return bf16_stochastic(a, noise & 0xffffu) | (bf16_stochastic(b, noise >> 16u) << 16u);
}

// Bounds a finite gradient by ±1e15; NaN and Inf pass.
fn bounded(g: f32) -> f32 {
  let bits = bitcast<u32>(g);
  // One test for 1e15 < |g| < ∞: for smaller values the difference wraps around.
  let beyond = (bits & 0x7fffffffu) - 0x58635faau < 0x271ca056u;
  return select(g, bitcast<f32>((bits & 0x80000000u) | 0x58635fa9u), beyond);
}

// a + w (b - a), computed from the nearer end, so that w = 0 and w = 1 give a and b exactly.
fn lerp(a: f32, b: f32, w: f32) -> f32 {
  if (w < 0.5) {
    return a + w * (b - a);
  }
  return b - (b - a) * (1.0 - w);
}
