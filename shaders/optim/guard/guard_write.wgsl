// p ← x [n] while the gate is open (shaders/README.md, "A rule of another crate"): rounded to packed bf16 with stream
// p, or word for word. One thread: two elements, one packed word (bf16) or two words. Twin: optim/guard/write.rs
struct Params {
  n: u32,
  @align(16) noise: Noise,
}

@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> gate: Gate;
@group(0) @binding(2) var<storage, read_write> p: array<u32>;
@group(0) @binding(3) var<storage, read_write> params: Params;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let pair = grid_index(group, groups, lane, 256u);
  let i = 2u * pair;
  if (i >= params.n || gate.closed != 0u) {
    return;
  }
  let x0 = x[i];
  var x1 = 0u;
  if (i + 1u < params.n) {
    x1 = x[i + 1u];
  }
  if (params.noise.rounding != ROUND_F32) {
    let words = noise_words(params.noise, pair);
    p[pair] = bf16_pair(bitcast<f32>(x0), bitcast<f32>(x1), words.z, params.noise.rounding);
    return;
  }
  p[i] = x0;
  if (i + 1u < params.n) {
    p[i + 1u] = x1;
  }
}
