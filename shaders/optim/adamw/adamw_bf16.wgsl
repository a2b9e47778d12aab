// AdamW on a packed bf16 tensor of n elements with bf16 m and v and an f32 gradient, in place (shaders/README.md,
// "AdamW"; arXiv:1711.05101, 2010.06192). One thread per word, that is per two elements; all arithmetic is f32, and the
// three writes are rounded (to nearest, or stochastically with one Philox call per word).
//   g ← bounded(g)·factor    m′ = lerp(m, g, w1)    v′ = lerp(v, g², w2)    x = p·d − α·m′/(√v′ + ε)    store m′, v′, x
// `noise` is read in recorded replays only: for stream s (m, v, p) and element i the 16 bits in word s·n + i.
// Twin: optim/adamw/packed.rs
struct Params {
  n: u32,
  w1: f32,
  w2: f32,
  d: f32,
  alpha: f32,
  eps: f32,
  @align(16) noise: Noise,
}

@group(0) @binding(0) var<storage, read_write> g: array<f32>;
@group(0) @binding(1) var<storage, read_write> noise: array<u32>;
@group(0) @binding(2) var<storage, read_write> gate: Gate;
@group(0) @binding(3) var<storage, read_write> p: array<u32>;
@group(0) @binding(4) var<storage, read_write> m: array<u32>;
@group(0) @binding(5) var<storage, read_write> v: array<u32>;
@group(0) @binding(6) var<storage, read_write> params: Params;

// m′, v′ and x of one element.
fn element(p0: f32, g0: f32, m0: f32, v0: f32) -> vec3<f32> {
  let gi = bounded(g0) * gate.factor;
  let mi = lerp(m0, gi, params.w1);
  let vi = lerp(v0, gi * gi, params.w2);
  return vec3<f32>(mi, vi, p0 * params.d - params.alpha * (mi / (sqrt(vi) + params.eps)));
}

// The noise of streams m, v, p for the pair, as packed halves.
fn pair_noise(pair: u32, paired: bool) -> vec3<u32> {
  if (params.noise.rounding == ROUND_STOCHASTIC) {
    return noise_words(params.noise, pair).xyz;
  }
  var halves = vec3<u32>(0u);
  if (params.noise.rounding == ROUND_GIVEN) {
    for (var s = 0u; s < 3u; s++) {
      let at = s * params.n + 2u * pair;
      halves[s] = noise[at];
      if (paired) {
        halves[s] |= noise[at + 1u] << 16u;
      }
    }
  }
  return halves;
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let w = grid_index(group, groups, lane, 256u);
  if (w >= (params.n + 1u) / 2u || gate.closed != 0u) {
    return;
  }
  let paired = 2u * w + 1u < params.n;
  let low = element(bf16_low(p[w]), g[2u * w], bf16_low(m[w]), bf16_low(v[w]));
  var high = vec3<f32>(0.0);
  if (paired) {
    high = element(bf16_high(p[w]), g[2u * w + 1u], bf16_high(m[w]), bf16_high(v[w]));
  }
  let bits = pair_noise(w, paired);
  m[w] = bf16_pair(low.x, high.x, bits.x, params.noise.rounding);
  v[w] = bf16_pair(low.y, high.y, bits.y, params.noise.rounding);
  p[w] = bf16_pair(low.z, high.z, bits.z, params.noise.rounding);
}
