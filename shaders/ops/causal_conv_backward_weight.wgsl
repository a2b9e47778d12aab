// Gradient of causal_conv_forward for its taps: dw[c, k] = Σ_t dy_t x_{t − κ + 1 + k} over the `rows` rows of each of P
// parts; column_sum adds the parts. x, dy [B·T, C], starts [B·T], dw [P, C · κ]. One thread: one tap of a part.
// Twin: ops/causal_conv.rs
struct Params {
  n: u32,
  width: u32,
  taps: u32,
  len: u32,
  documents: u32,
  rows: u32,
  parts: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> starts: array<u32>;
@group(0) @binding(2) var<storage, read_write> dy: array<f32>;
@group(0) @binding(3) var<storage, read_write> dw: array<f32>;
@group(0) @binding(4) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  let width = params.width;
  let columns = max(width * params.taps, 1u);
  if (i >= params.parts * columns) {
    return;
  }
  let c = i % columns / params.taps;
  let back = params.taps - 1u - i % columns % params.taps;
  let begin = i / columns * params.rows;
  let end = min(begin + params.rows, params.n);
  var sum = 0.0;
  for (var row = begin; row < end; row++) {
    let t = row % params.len;
    var first = 0u;
    if (params.documents != 0u) {
      first = starts[row];
    }
    if (t >= back && t - back >= first) {
      sum += dy[row * width + c] * x[(row - back) * width + c];
    }
  }
  dw[i] = sum;
}
