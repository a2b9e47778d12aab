// dx = r (dy w − x r² mean(dy w x)). x, dy, dx [n, C], w [C], scales [n] = r. One thread: one row. Twin: kernels/rms_norm.rs
struct Params {
  n: u32,
  width: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> w: array<f32>;
@group(0) @binding(2) var<storage, read_write> scales: array<f32>;
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
  var sum = 0.0;
  for (var c = 0u; c < width; c++) {
    sum += dy[row + c] * w[c] * x[row + c];
  }
  let r = scales[i];
  let mean = sum / f32(width) * r * r;
  for (var c = 0u; c < width; c++) {
    dx[row + c] = r * (dy[row + c] * w[c] - x[row + c] * mean);
  }
}
