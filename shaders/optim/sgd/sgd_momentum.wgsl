// SGD with momentum, optionally Nesterov's, on n elements, in place (shaders/README.md, "SGD"). One thread: two
// elements, one packed word of p and buf (bf16) or two (f32).
//   g ← bounded(g)·factor    b = μ·buf + g    u = nesterov ? g + μ·b : b    p ← p·d − η·u    buf ← b
// b is rounded with stream m, p with stream p. Twin: optim/sgd/momentum.rs
struct Params {
  n: u32,
  rate: f32,
  d: f32,
  momentum: f32,
  nesterov: u32,
  @align(16) noise: Noise,
}

@group(0) @binding(0) var<storage, read_write> g: array<f32>;
@group(0) @binding(1) var<storage, read_write> gate: Gate;
@group(0) @binding(2) var<storage, read_write> p: array<u32>;
@group(0) @binding(3) var<storage, read_write> buf: array<u32>;
@group(0) @binding(4) var<storage, read_write> params: Params;

// b and x of one element.
fn element(p0: f32, b0: f32, i: u32) -> vec2<f32> {
  let gi = bounded(g[i]) * gate.factor;
  let b = params.momentum * b0 + gi;
  let u = select(b, gi + params.momentum * b, params.nesterov != 0u);
  return vec2<f32>(b, p0 * params.d - params.rate * u);
}

fn store_f32(i: u32) {
  let r = element(bitcast<f32>(p[i]), bitcast<f32>(buf[i]), i);
  buf[i] = bitcast<u32>(r.x);
  p[i] = bitcast<u32>(r.y);
}

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
  let paired = i + 1u < params.n;
  if (params.noise.rounding == ROUND_F32) {
    store_f32(i);
    if (paired) {
      store_f32(i + 1u);
    }
    return;
  }
  let r0 = element(bf16_low(p[pair]), bf16_low(buf[pair]), i);
  var r1 = vec2<f32>(0.0);
  if (paired) {
    r1 = element(bf16_high(p[pair]), bf16_high(buf[pair]), i + 1u);
  }
  let words = noise_words(params.noise, pair);
  buf[pair] = bf16_pair(r0.x, r1.x, words.x, params.noise.rounding);
  p[pair] = bf16_pair(r0.y, r1.y, words.z, params.noise.rounding);
}
