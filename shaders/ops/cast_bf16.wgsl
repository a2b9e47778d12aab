// y = bf16(x), packed, n elements (shaders/README.md, "Rounding to bf16"): rounded to nearest, or stochastically with
// the noise of one stream (0 m, 1 v, 2 p) or with given noise, 16 bits of element i in word i. One thread per word.
// Twin: ops/cast_bf16.rs
struct Params {
  n: u32,
  stream: u32,
  first_pair_low: u32,
  first_pair_high: u32,
  @align(16) noise: Noise,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> noise: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@group(0) @binding(3) var<storage, read_write> params: Params;

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
  var halves = 0u;
  if (params.noise.rounding == ROUND_STOCHASTIC) {
    let low = params.first_pair_low + pair;
    let high = params.first_pair_high + select(0u, 1u, low < pair);
    let words = philox(vec4<u32>(low, high, params.noise.step), params.noise.key);
    halves = words[params.stream];
  } else if (params.noise.rounding == ROUND_GIVEN) {
    halves = noise[i];
    if (paired) {
      halves |= noise[i + 1u] << 16u;
    }
  }
  var odd = 0.0;
  if (paired) {
    odd = x[i + 1u];
  }
  y[pair] = bf16_pair(x[i], odd, halves, params.noise.rounding);
}
