// y[p, c] = Σ x[r, c] over the p-th `rows` rows. x [n, C], y [P, C]. One thread: one column of one part.
// Twin: ops/column_sum.rs
struct Params {
  n: u32,
  width: u32,
  rows: u32,
  parts: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  let width = params.width;
  if (i >= params.parts * width) {
    return;
  }
  let column = i % width;
  let first = i / width * params.rows;
  let end = min(first + params.rows, params.n);
  var sum = 0.0;
  for (var r = first; r < end; r++) {
    sum += x[r * width + column];
  }
  y[i] = sum;
}
