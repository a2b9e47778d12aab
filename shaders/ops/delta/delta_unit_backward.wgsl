// Gradient of the rows that the delta rule reads. For a query or key y = s r x, r = 1/√(Σ x² + 1e-6), with the sum g of
// the gradients of the M / G value heads that read it: dx = s r (g − x r² (x·g)). The gradient of the values is dv.
// x, dx [n, 2 G D + M E], dq, dk [n, M D], dv [n, M E]. One thread: one head of a row. Twin: ops/delta/kernels.rs
struct Params {
  n: u32,
  key_heads: u32,
  heads: u32,
  key_dim: u32,
  value_dim: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> dq: array<f32>;
@group(0) @binding(2) var<storage, read_write> dk: array<f32>;
@group(0) @binding(3) var<storage, read_write> dv: array<f32>;
@group(0) @binding(4) var<storage, read_write> dx: array<f32>;
@group(0) @binding(5) var<storage, read_write> params: Params;

// Sum of the gradients of component c of a key head of a row, over the value heads that read it.
fn gathered(row: u32, head: u32, is_key: bool, c: u32) -> f32 {
  let readers = params.heads / params.key_heads;
  var sum = 0.0;
  for (var k = 0u; k < readers; k++) {
    let at = (row * params.heads + head * readers + k) * params.key_dim + c;
    if (is_key) {
      sum += dk[at];
    } else {
      sum += dq[at];
    }
  }
  return sum;
}

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  let both = 2u * params.key_heads;
  let all = max(both + params.heads, 1u);
  if (i >= params.n * all) {
    return;
  }
  let row = i / all;
  let head = i % all;
  let begin = row * (both * params.key_dim + params.heads * params.value_dim);
  if (head >= both) {
    let from_v = (row * params.heads + head - both) * params.value_dim;
    let to_x = begin + both * params.key_dim + (head - both) * params.value_dim;
    for (var c = 0u; c < params.value_dim; c++) {
      dx[to_x + c] = dv[from_v + c];
    }
    return;
  }
  let is_key = head >= params.key_heads;
  let own = head % params.key_heads;
  let at = begin + head * params.key_dim;
  var sum = 0.0;
  var along = 0.0;
  for (var c = 0u; c < params.key_dim; c++) {
    let v = x[at + c];
    sum += v * v;
    along += v * gathered(row, own, is_key, c);
  }
  let r = 1.0 / sqrt(sum + 1e-6);
  var scale = r;
  if (!is_key) {
    scale = scale / sqrt(f32(params.key_dim));
  }
  let back = along * r * r;
  for (var c = 0u; c < params.key_dim; c++) {
    dx[at + c] = scale * (gathered(row, own, is_key, c) - x[at + c] * back);
  }
}
