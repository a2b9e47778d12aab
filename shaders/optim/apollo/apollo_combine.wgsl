// APOLLO, the last pass but one (shaders/README.md, "APOLLO", 3 and 4; limiter: arXiv:2410.01623): the tensor's scale
// (mini) and the growth limiter.
// One workgroup. Lane c of 256 sums the channels c, c + 256, …; the lanes are added by strides 128 … 1. A thread has
// the four lanes k, k + 64, ….
//   mini: s = √Σ‖R̃‖²/(√Σ‖R‖² + 1e-8)    n = front·√Σ(s·‖g‖)²
//   ℓ = N ≥ threshold ? max(n/(N + 1e-8), γ)/γ : 1    N ← n/ℓ
// stats [4, channels] as apollo_project writes them; norm [1] = N; factors [2] = s (mini), ℓ.
// Twin: optim/apollo/combine.rs
struct Params {
  channels: u32,
  mini: u32,
  front: f32,
  threshold: f32,
  gamma: f32,
}

@group(0) @binding(0) var<storage, read_write> stats: array<f32>;
@group(0) @binding(1) var<storage, read_write> gate: Gate;
@group(0) @binding(2) var<storage, read_write> norm: array<f32>;
@group(0) @binding(3) var<storage, read_write> factors: array<f32>;
@group(0) @binding(4) var<storage, read_write> params: Params;

const SIZE: u32 = 64u;
// Factor applied before squaring s·‖g‖: if a projection is nearly zero, s may be 1e8, with entries of 1e15.
const SMALL: f32 = 0x1p-40f;
var<workgroup> part: array<vec3<f32>, 64>;

// The terms that channel c adds to the sums.
fn channel(c: u32) -> vec3<f32> {
  if (c >= params.channels) {
    return vec3<f32>(0.0);
  }
  let length = stats[params.channels + c];
  let s = stats[c];
  let own = s * sqrt(length) * SMALL;
  let squared = select(own * own, length, params.mini != 0u);
  return vec3<f32>(squared, stats[2u * params.channels + c], stats[3u * params.channels + c]);
}

// Eight parts by strides 4, 2, 1 (times `step`).
fn eight(k: u32, step: u32) -> vec3<f32> {
  let a = (part[k] + part[k + 4u * step]) + (part[k + 2u * step] + part[k + 6u * step]);
  return a + ((part[k + step] + part[k + 5u * step]) + (part[k + 3u * step] + part[k + 7u * step]));
}

@compute @workgroup_size(SIZE)
fn main(@builtin(local_invocation_index) lane: u32) {
  for (var k = lane; k < 64u; k += SIZE) {
    var x = array<vec3<f32>, 4>();
    for (var c = k; c < params.channels; c += 256u) {
      for (var e = 0u; e < 4u; e++) {
        x[e] += channel(c + 64u * e);
      }
    }
    part[k] = (x[0] + x[2]) + (x[1] + x[3]);
  }
  workgroupBarrier();
  if (lane == 0u) {
    for (var k = 0u; k < 8u; k++) {
      part[k] = eight(k, 8u);
    }
    part[0] = eight(0u, 1u);
    var s = 1.0;
    var length = sqrt(part[0].x) / SMALL;
    if (params.mini != 0u) {
      s = sqrt(part[0].y) / (sqrt(part[0].z) + 1e-8);
      length = sqrt(part[0].x);
    }
    let n = params.front * (s * length);
    var limit = 1.0;
    if (norm[0] >= params.threshold) {
      let growth = n / (norm[0] + 1e-8);
      limit = select(max(growth, params.gamma), growth, is_nan_bits(bitcast<u32>(growth))) / params.gamma;
    }
    if (gate.closed == 0u) {
      norm[0] = n / limit;
    }
    factors[0] = s;
    factors[1] = limit;
  }
}
