// Adafactor on a vector of n elements, pass 2 of 2 (shaders/README.md, "Adafactor"; arXiv:1804.04235), f32 or packed
// bf16, in place. `Params` are those of a matrix [n, 1].
//   r = √(Σp²/N)    η ← relative_step ? max(ε₂, r)·η : η    d = 1 − η·λ
//   u = g/√row    c = max(√(Σu²/N)/clip, 1)    x = p·d − η·(u/c)
// Every workgroup adds the 2·L sums of pass 1 itself (by 16 threads, then by one) and updates 2048 pairs. `noise` is
// read in recorded replays only: 16 bits of element i in word i.
// Twin: optim/adafactor/vector_apply.rs
struct Params {
  rows: u32,
  cols: u32,
  lanes: u32,
  rate: f32,
  decay: f32,
  d: f32,
  clip: f32,
  eps2: f32,
  relative_step: u32,
  @align(16) noise: Noise,
}

@group(0) @binding(0) var<storage, read_write> g: array<f32>;
@group(0) @binding(1) var<storage, read_write> row: array<f32>;
@group(0) @binding(2) var<storage, read_write> sums: array<f32>;
@group(0) @binding(3) var<storage, read_write> noise: array<u32>;
@group(0) @binding(4) var<storage, read_write> gate: Gate;
@group(0) @binding(5) var<storage, read_write> p: array<u32>;
@group(0) @binding(6) var<storage, read_write> params: Params;

const SIZE: u32 = 64u;
var<workgroup> part: array<vec2<f32>, 16>;

// The maximum, except that NaN stays NaN.
fn at_least(x: f32, least: f32) -> f32 {
  return select(max(x, least), x, is_nan_bits(bitcast<u32>(x)));
}

// The step's scalars: c, η, d.
fn scalars() -> vec3<f32> {
  let n = f32(params.rows);
  let c = at_least(sqrt(part[0].x / n) / params.clip, 1.0);
  if (params.relative_step == 0u) {
    return vec3<f32>(c, params.rate, params.d);
  }
  let rate = at_least(sqrt(part[0].y / n), params.eps2) * params.rate;
  return vec3<f32>(c, rate, 1.0 - rate * params.decay);
}

fn element(p0: f32, i: u32, s: vec3<f32>) -> f32 {
  let u = (bounded(g[i]) * gate.factor / sqrt(row[i])) / s.x;
  return p0 * s.z - s.y * u;
}

fn pair_noise(pair: u32, paired: bool) -> u32 {
  if (params.noise.rounding == ROUND_STOCHASTIC) {
    return noise_words(params.noise, pair).z;
  }
  var halves = 0u;
  if (params.noise.rounding == ROUND_GIVEN) {
    halves = noise[2u * pair];
    if (paired) {
      halves |= noise[2u * pair + 1u] << 16u;
    }
  }
  return halves;
}

// The sums of lane k.
fn lane_sums(k: u32) -> vec2<f32> {
  if (k >= params.lanes) {
    return vec2<f32>(0.0);
  }
  return vec2<f32>(sums[k], sums[params.lanes + k]);
}

@compute @workgroup_size(SIZE)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  // Strides 128, 64, 32, 16 …
  for (var k = lane; k < 16u; k += SIZE) {
    var x: array<vec2<f32>, 8>;
    for (var e = 0u; e < 8u; e++) {
      x[e] = lane_sums(k + 16u * e) + lane_sums(k + 16u * e + 128u);
    }
    part[k] = ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
  }
  workgroupBarrier();
  // … and 8, 4, 2, 1.
  if (lane == 0u) {
    for (var stride = 8u; stride > 0u; stride /= 2u) {
      for (var k = 0u; k < stride; k++) {
        part[k] += part[k + stride];
      }
    }
  }
  workgroupBarrier();
  if (gate.closed != 0u) {
    return;
  }
  let s = scalars();
  let first = group_index(group, groups) * 2048u;
  if (params.noise.rounding == ROUND_F32) {
    for (var i = 2u * first + lane; i < min(2u * first + 4096u, params.rows); i += SIZE) {
      p[i] = bitcast<u32>(element(bitcast<f32>(p[i]), i, s));
    }
    return;
  }
  for (var pair = first + lane; pair < min(first + 2048u, (params.rows + 1u) / 2u); pair += SIZE) {
    let i = 2u * pair;
    let paired = i + 1u < params.rows;
    let x0 = element(bf16_low(p[pair]), i, s);
    var x1 = 0.0;
    if (paired) {
      x1 = element(bf16_high(p[pair]), i + 1u, s);
    }
    p[pair] = bf16_pair(x0, x1, pair_noise(pair, paired), params.noise.rounding);
  }
}
