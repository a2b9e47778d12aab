// Queries and keys of length 1: x / √(Σ x² + 1e-6) of each head, queries also times 1/√D. x [n, width] begins with the
// queries and the keys of G heads, y [n, 2 G D]; `keys` [n, G D] has the keys once more, since a kernel cannot bind one
// buffer twice. One thread: one head of a row. Twin: ops/delta/kernels.rs
struct Params {
  n: u32,
  width: u32,
  heads: u32,
  dim: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> keys: array<f32>;
@group(0) @binding(3) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  let both = max(2u * params.heads, 1u);
  if (i >= params.n * both) {
    return;
  }
  let from_x = i / both * params.width + i % both * params.dim;
  let to_y = i * params.dim;
  var sum = 0.0;
  for (var c = 0u; c < params.dim; c++) {
    let v = x[from_x + c];
    sum += v * v;
  }
  var scale = 1.0 / sqrt(sum + 1e-6);
  let is_query = i % both < params.heads;
  if (is_query) {
    scale = scale / sqrt(f32(params.dim));
  }
  let to_keys = (i / both * params.heads + i % both - params.heads) * params.dim;
  for (var c = 0u; c < params.dim; c++) {
    let v = x[from_x + c] * scale;
    y[to_y + c] = v;
    if (!is_query) {
      keys[to_keys + c] = v;
    }
  }
}
