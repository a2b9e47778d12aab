// Put in front of every kernel. Indices past 65,535 workgroups, tests of NaN and Inf on bits, bf16 in halves of a word.

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

// f32 bits to bf16, nearest even; NaN becomes the quiet NaN of its sign.
fn bf16_nearest(bits: u32) -> u32 {
  let rounded = (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
  return select(rounded, ((bits >> 16u) & 0x8000u) | 0x7fc0u, is_nan_bits(bits));
}
