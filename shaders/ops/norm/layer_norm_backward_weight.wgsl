// dw = Σ_rows dy z, db = Σ_rows dy with z = (x − mean) r, in P parts of `rows` rows each; column_sum adds the parts.
// x, dy [n, C], stats [n, 2] = mean, r, dw, db [P, C]. One thread: one column of one part. Twin: ops/norm/layer.rs
struct Params {
  n: u32,
  width: u32,
  rows: u32,
  parts: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> stats: array<f32>;
@group(0) @binding(2) var<storage, read_write> dy: array<f32>;
@group(0) @binding(3) var<storage, read_write> dw: array<f32>;
@group(0) @binding(4) var<storage, read_write> db: array<f32>;
@group(0) @binding(5) var<storage, read_write> params: Params;

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
  var sum_z = 0.0;
  for (var r = first; r < end; r++) {
    let d = dy[r * width + column];
    sum += d;
    sum_z += d * (x[r * width + column] - stats[2u * r]) * stats[2u * r + 1u];
  }
  dw[i] = sum_z;
  db[i] = sum;
}
