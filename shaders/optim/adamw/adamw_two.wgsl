// AdamW on two f32 tensors of n and other_n elements, multiples of 4, in place (shaders/README.md, "AdamW";
// arXiv:1711.05101). s0, s1: m of a tensor from the first element on, v from the vector of index `second` on. One
// thread: four elements.
//   g ← bounded(g)·factor    m ← lerp(m, g, w1)    v ← lerp(v, g², w2)    p ← p·d − α·m/(√v + ε)
// w1 = 1 − β1, w2 = 1 − β2, d = 1 − ηλ, α = η·√(1 − β2ᵗ)/(1 − β1ᵗ). Twin: optim/adamw/two.rs
struct Params {
  n: u32,
  second: u32,
  w1: f32,
  w2: f32,
  d: f32,
  alpha: f32,
  eps: f32,
  other_n: u32,
  other_second: u32,
  other_w1: f32,
  other_w2: f32,
  other_d: f32,
  other_alpha: f32,
  other_eps: f32,
}

@group(0) @binding(0) var<storage, read_write> g0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> g1: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> gate: Gate;
@group(0) @binding(3) var<storage, read_write> p0: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> s0: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> p1: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> s1: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> params: Params;

fn lerp4(a: vec4<f32>, b: vec4<f32>, w: f32) -> vec4<f32> {
  return vec4<f32>(lerp(a.x, b.x, w), lerp(a.y, b.y, w), lerp(a.z, b.z, w), lerp(a.w, b.w, w));
}

fn bounded4(g: vec4<f32>) -> vec4<f32> {
  return vec4<f32>(bounded(g.x), bounded(g.y), bounded(g.z), bounded(g.w));
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let thread = grid_index(group, groups, lane, 256u);
  let vectors = params.n / 4u;
  if (thread >= vectors + params.other_n / 4u || gate.closed != 0u) {
    return;
  }
  if (thread < vectors) {
    let i = thread;
    let g = bounded4(g0[i]) * gate.factor;
    let m = lerp4(s0[i], g, params.w1);
    let v = lerp4(s0[params.second + i], g * g, params.w2);
    s0[i] = m;
    s0[params.second + i] = v;
    p0[i] = p0[i] * params.d - params.alpha * (m / (sqrt(v) + params.eps));
  } else {
    let i = thread - vectors;
    let g = bounded4(g1[i]) * gate.factor;
    let m = lerp4(s1[i], g, params.other_w1);
    let v = lerp4(s1[params.other_second + i], g * g, params.other_w2);
    s1[i] = m;
    s1[params.other_second + i] = v;
    p1[i] = p1[i] * params.other_d - params.other_alpha * (m / (sqrt(v) + params.other_eps));
  }
}
