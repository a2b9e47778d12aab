// APOLLO, pass 2 of 3 (optimizers.md §6.2, 4–6): the tensor's scale (mini) and the growth limiter. One workgroup.
//   mini: s = √Σ‖R̃‖²/(√Σ‖R‖² + 1e-8)    n = front·√Σ(s·‖g‖)²    ℓ = N ≥ threshold ? max(n/(N + 1e-8), γ)/γ : 1    N ← n/ℓ
// stats [4, channels] as apollo_project writes them; norm [1] = N; factors [2] = s (mini), ℓ. Twin: kernels/apollo_combine.rs
struct Params {
  channels: u32,
  mini: u32,
  front: f32,
  threshold: f32,
  gamma: f32,
}

@group(0) @binding(0) var<storage, read_write> stats: array<f32>;
@group(0) @binding(1) var<storage, read_write> norm: array<f32>;
@group(0) @binding(2) var<storage, read_write> factors: array<f32>;
@group(0) @binding(3) var<storage, read_write> params: Params;

const SIZE: u32 = 256u;
var<workgroup> part: array<vec3<f32>, 256>;

@compute @workgroup_size(SIZE)
fn main(@builtin(local_invocation_index) lane: u32) {
  let channels = params.channels;
  for (var k = lane; k < 256u; k += SIZE) {
    var sum = vec3<f32>(0.0);
    for (var c = k; c < channels; c += 256u) {
      let length = stats[channels + c];
      let s = stats[c];
      sum += vec3<f32>(select(s * s * length, length, params.mini != 0u), stats[2u * channels + c], stats[3u * channels + c]);
    }
    part[k] = sum;
  }
  workgroupBarrier();
  for (var stride = 128u; stride > 0u; stride /= 2u) {
    for (var k = lane; k < stride; k += SIZE) {
      part[k] += part[k + stride];
    }
    workgroupBarrier();
  }
  if (lane == 0u) {
    var s = 1.0;
    if (params.mini != 0u) {
      s = sqrt(part[0].y) / (sqrt(part[0].z) + 1e-8);
    }
    let n = params.front * (s * sqrt(part[0].x));
    var limit = 1.0;
    if (norm[0] >= params.threshold) {
      let growth = n / (norm[0] + 1e-8);
      limit = select(max(growth, params.gamma), growth, is_nan_bits(bitcast<u32>(growth))) / params.gamma;
    }
    norm[0] = n / limit;
    factors[0] = s;
    factors[1] = limit;
  }
}
