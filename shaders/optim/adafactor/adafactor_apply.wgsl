// Adafactor, pass 4 of 4 (shaders/README.md, "Adafactor"; arXiv:1804.04235): the update of a matrix [rows, cols], f32
// or packed bf16, in place.
//   S = Σ row    r = √(Σp²/N)    η ← relative_step ? max(ε₂, r)·η : η    d = 1 − η·λ
//   u = (g·1/√(row/S))·1/√col    c = max(√(Σu²/N)/clip, 1), Σu² = S·Σa²    x = p·d − η·(u/c)    store by stream p
// Every workgroup adds the 3·L sums of pass 3 itself (by 16 threads, then by one) and updates 2048 pairs. `noise` is
// read in recorded replays only: 16 bits of element i in word i.
// Twin: optim/adafactor/apply.rs
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
@group(0) @binding(2) var<storage, read_write> col: array<f32>;
@group(0) @binding(3) var<storage, read_write> sums: array<f32>;
@group(0) @binding(4) var<storage, read_write> noise: array<u32>;
@group(0) @binding(5) var<storage, read_write> gate: Gate;
@group(0) @binding(6) var<storage, read_write> p: array<u32>;
@group(0) @binding(7) var<storage, read_write> params: Params;

const SIZE: u32 = 64u;
var<workgroup> part: array<vec3<f32>, 16>;

// The maximum, except that NaN stays NaN.
fn at_least(x: f32, least: f32) -> f32 {
  return select(max(x, least), x, is_nan_bits(bitcast<u32>(x)));
}

// The step's scalars: S, c, η, d.
fn scalars() -> vec4<f32> {
  let n = f32(params.rows) * f32(params.cols);
  let size = sqrt(part[0].z / n) * sqrt(part[0].x);
  let c = at_least(size / params.clip, 1.0);
  if (params.relative_step == 0u) {
    return vec4<f32>(part[0].z, c, params.rate, params.d);
  }
  let rate = at_least(sqrt(part[0].y / n), params.eps2) * params.rate;
  return vec4<f32>(part[0].z, c, rate, 1.0 - rate * params.decay);
}

// 1/√(row/S). A row with tiny gradients next to one of 1e15 would leave f32's normal range: then the quotient of the
// roots is used.
fn row_factor(sum: f32, total: f32) -> f32 {
  let share = sum / total;
  if (share < 1.17549435e-38) {
    return sqrt(total) / sqrt(sum);
  }
  return 1.0 / sqrt(share);
}

fn element(p0: f32, at: u32, i: u32, j: u32, s: vec4<f32>) -> f32 {
  let rho = row_factor(row[i], s.x);
  let kappa = 1.0 / sqrt(col[j]);
  let u = ((bounded(g[at]) * gate.factor * rho) * kappa) / s.y;
  return p0 * s.w - s.z * u;
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
fn lane_sums(k: u32) -> vec3<f32> {
  if (k >= params.lanes) {
    return vec3<f32>(0.0);
  }
  return vec3<f32>(sums[k], sums[params.lanes + k], sums[2u * params.lanes + k]);
}

@compute @workgroup_size(SIZE)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  // Strides 128, 64, 32, 16 …
  for (var k = lane; k < 16u; k += SIZE) {
    var x: array<vec3<f32>, 8>;
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
  let n = params.rows * params.cols;
  let first = group_index(group, groups) * 2048u;
  if (params.noise.rounding == ROUND_F32) {
    for (var at = 2u * first + lane; at < min(2u * first + 4096u, n); at += SIZE) {
      let i = at / params.cols;
      p[at] = bitcast<u32>(element(bitcast<f32>(p[at]), at, i, at - i * params.cols, s));
    }
    return;
  }
  for (var pair = first + lane; pair < min(first + 2048u, (n + 1u) / 2u); pair += SIZE) {
    let at = 2u * pair;
    let paired = at + 1u < n;
    let i = at / params.cols;
    let j = at - i * params.cols;
    let x0 = element(bf16_low(p[pair]), at, i, j, s);
    var x1 = 0.0;
    if (paired) {
      // The next in the row, or the first of the next row.
      let wraps = j + 1u == params.cols;
      x1 = element(bf16_high(p[pair]), at + 1u, select(i, i + 1u, wraps), select(j + 1u, 0u, wraps), s);
    }
    p[pair] = bf16_pair(x0, x1, pair_noise(pair, paired), params.noise.rounding);
  }
}
