// SGD without momentum on n elements, in place (shaders/README.md, "SGD"). One thread: two elements, one packed word
// (bf16) or two (f32).
//   g ← bounded(g)·scale    p ← p·d − η·g        d = 1 − ηλ. Twin: optim/sgd/kernel.rs
struct Params {
  n: u32,
  rate: f32,
  d: f32,
  scale: f32,
  @align(16) noise: Noise,
}

@group(0) @binding(0) var<storage, read_write> g: array<f32>;
@group(0) @binding(1) var<storage, read_write> p: array<u32>;
@group(0) @binding(2) var<storage, read_write> params: Params;

fn element(p0: f32, i: u32) -> f32 {
  return p0 * params.d - params.rate * (bounded(g[i]) * params.scale);
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let pair = grid_index(group, groups, lane, 256u);
  let i = 2u * pair;
  if (i >= params.n) {
    return;
  }
  let paired = i + 1u < params.n;
  if (params.noise.rounding == ROUND_F32) {
    p[i] = bitcast<u32>(element(bitcast<f32>(p[i]), i));
    if (paired) {
      p[i + 1u] = bitcast<u32>(element(bitcast<f32>(p[i + 1u]), i + 1u));
    }
    return;
  }
  let x0 = element(bf16_low(p[pair]), i);
  var x1 = 0.0;
  if (paired) {
    x1 = element(bf16_high(p[pair]), i + 1u);
  }
  let words = noise_words(params.noise, pair);
  p[pair] = bf16_pair(x0, x1, words.z, params.noise.rounding);
}
