// Products of two values of each head of a row, y (+)= f a·b. a, b [n, M, E], y [n, M]. One thread: one head of a row.
// Twin: ops/delta/kernels.rs
struct Params {
  n: u32,
  dim: u32,
  add: u32,
  factor: f32,
}

@group(0) @binding(0) var<storage, read_write> a: array<f32>;
@group(0) @binding(1) var<storage, read_write> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  if (i >= params.n) {
    return;
  }
  var sum = 0.0;
  for (var c = 0u; c < params.dim; c++) {
    sum += a[i * params.dim + c] * b[i * params.dim + c];
  }
  var value = params.factor * sum;
  if (params.add != 0u) {
    value += y[i];
  }
  y[i] = value;
}
