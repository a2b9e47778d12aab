// Convolution over time: y_t = Σ_k w_k x_{t − κ + 1 + k} of each channel, over the positions from that of the
// document's start on. x [B·T, C], w [C, κ], starts [B·T] (one word without documents), y [B·T, C]. One thread: one
// element. Twin: ops/causal_conv.rs
struct Params {
  n: u32,
  width: u32,
  taps: u32,
  len: u32,
  documents: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> w: array<f32>;
@group(0) @binding(2) var<storage, read_write> starts: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  let width = max(params.width, 1u);
  if (i >= params.n * width) {
    return;
  }
  let row = i / width;
  let c = i % width;
  let t = row % params.len;
  var first = 0u;
  if (params.documents != 0u) {
    first = starts[row];
  }
  var sum = 0.0;
  for (var k = 0u; k < params.taps; k++) {
    let back = params.taps - 1u - k;
    if (t >= back && t - back >= first) {
      sum += w[c * params.taps + k] * x[(row - back) * width + c];
    }
  }
  y[i] = sum;
}
