// AdamW on an f32 tensor of n elements, n a multiple of 4, in place (shaders/README.md, "AdamW"; arXiv:1711.05101). One
// thread: four elements.
//   g ← bounded(g)·factor    m ← lerp(m, g, w1)    v ← lerp(v, g², w2)    p ← p·d − α·m/(√v + ε)
// w1 = 1 − β1, w2 = 1 − β2, d = 1 − ηλ, α = η·√(1 − β2ᵗ)/(1 − β1ᵗ). Twin: optim/adamw/kernel.rs
struct Params {
  n: u32,
  w1: f32,
  w2: f32,
  d: f32,
  alpha: f32,
  eps: f32,
}

@group(0) @binding(0) var<storage, read_write> g: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> gate: Gate;
@group(0) @binding(2) var<storage, read_write> p: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> m: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> v: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> params: Params;

fn lerp4(a: vec4<f32>, b: vec4<f32>, w: f32) -> vec4<f32> {
  return vec4<f32>(lerp(a.x, b.x, w), lerp(a.y, b.y, w), lerp(a.z, b.z, w), lerp(a.w, b.w, w));
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 256u);
  if (i >= params.n / 4u || gate.closed != 0u) {
    return;
  }
  let raw = g[i];
  let gi = vec4<f32>(bounded(raw.x), bounded(raw.y), bounded(raw.z), bounded(raw.w)) * gate.factor;
  let mi = lerp4(m[i], gi, params.w1);
  let vi = lerp4(v[i], gi * gi, params.w2);
  m[i] = mi;
  v[i] = vi;
  p[i] = p[i] * params.d - params.alpha * (mi / (sqrt(vi) + params.eps));
}
