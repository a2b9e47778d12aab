// y = x r (w + offset) with r = 1 / sqrt(mean(x²) + eps). x [n, C], w [C], y [n, C], scales [n] = r. One thread: one
// row. Twin: ops/norm/rms.rs
struct Params {
  n: u32,
  width: u32,
  eps: f32,
  offset: f32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> w: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<storage, read_write> scales: array<f32>;
@group(0) @binding(4) var<storage, read_write> params: Params;

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
    let v = x[row + c];
    sum += v * v;
  }
  let r = 1.0 / sqrt(sum / f32(width) + params.eps);
  for (var c = 0u; c < width; c++) {
    y[row + c] = x[row + c] * r * (w[c] + params.offset);
  }
  scales[i] = r;
}
