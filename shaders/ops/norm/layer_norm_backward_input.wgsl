// dx = r (dy w − mean(dy w) − z mean(dy w z)) with z = (x − mean) r. x, dy, dx [n, C], w [C], stats [n, 2] = mean, r.
// One thread: one row. Twin: ops/norm/layer.rs
struct Params {
  n: u32,
  width: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> w: array<f32>;
@group(0) @binding(2) var<storage, read_write> stats: array<f32>;
@group(0) @binding(3) var<storage, read_write> dy: array<f32>;
@group(0) @binding(4) var<storage, read_write> dx: array<f32>;
@group(0) @binding(5) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  let width = params.width;
  if (i >= params.n) {
    return;
  }
  let row = i * width;
  let mean = stats[2u * i];
  let r = stats[2u * i + 1u];
  var sum = 0.0;
  var sum_z = 0.0;
  for (var c = 0u; c < width; c++) {
    let d = dy[row + c] * w[c];
    sum += d;
    sum_z += d * (x[row + c] - mean) * r;
  }
  let first = sum / f32(width);
  let second = sum_z / f32(width);
  for (var c = 0u; c < width; c++) {
    dx[row + c] = r * (dy[row + c] * w[c] - first - (x[row + c] - mean) * r * second);
  }
}
