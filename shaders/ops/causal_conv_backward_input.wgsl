// Gradient of causal_conv_forward for its rows: dx_t = Σ_k w_k dy_{t + κ − 1 − k} over the later positions of the
// document. w [C, κ], starts [B·T], dy, dx [B·T, C]. One thread: one element. Twin: ops/causal_conv.rs
struct Params {
  n: u32,
  width: u32,
  taps: u32,
  len: u32,
  documents: u32,
}

@group(0) @binding(0) var<storage, read_write> w: array<f32>;
@group(0) @binding(1) var<storage, read_write> starts: array<u32>;
@group(0) @binding(2) var<storage, read_write> dy: array<f32>;
@group(0) @binding(3) var<storage, read_write> dx: array<f32>;
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
  var sum = 0.0;
  for (var later = 0u; later < params.taps; later++) {
    if (t + later < params.len) {
      var first = 0u;
      if (params.documents != 0u) {
        first = starts[row + later];
      }
      if (first <= t) {
        sum += w[c * params.taps + params.taps - 1u - later] * dy[(row + later) * width + c];
      }
    }
  }
  dx[i] = sum;
}
