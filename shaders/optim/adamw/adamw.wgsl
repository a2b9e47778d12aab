// AdamW on an f32 tensor of n elements, in place (shaders/README.md, "AdamW"; arXiv:1711.05101). One thread per
// element.
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

@group(0) @binding(0) var<storage, read_write> g: array<f32>;
@group(0) @binding(1) var<storage, read_write> gate: Gate;
@group(0) @binding(2) var<storage, read_write> p: array<f32>;
@group(0) @binding(3) var<storage, read_write> m: array<f32>;
@group(0) @binding(4) var<storage, read_write> v: array<f32>;
@group(0) @binding(5) var<storage, read_write> params: Params;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 256u);
  if (i >= params.n || gate.closed != 0u) {
    return;
  }
  let gi = bounded(g[i]) * gate.factor;
  let mi = lerp(m[i], gi, params.w1);
  let vi = lerp(v[i], gi * gi, params.w2);
  m[i] = mi;
  v[i] = vi;
  p[i] = p[i] * params.d - params.alpha * (mi / (sqrt(vi) + params.eps));
}
