// sum = x + sum, y = sum r (w + offset) with r = 1 / sqrt(mean(sum²) + eps): the residual stream and the norm that
// reads it in one dispatch. x, sum, y [n, C], w [C], scales [n] = r; C a multiple of 4. One thread: one row, four
// columns at a time. Twin: ops/norm/rms.rs
struct Params {
  n: u32,
  width: u32,
  eps: f32,
  offset: f32,
}

@group(0) @binding(0) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> w: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> sum: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> scales: array<f32>;
@group(0) @binding(5) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  let quarters = params.width / 4u;
  if (i >= params.n) {
    return;
  }
  let row = i * quarters;
  var sums = vec4<f32>();
  for (var c = 0u; c < quarters; c++) {
    let v = x[row + c] + sum[row + c];
    sum[row + c] = v;
    sums += v * v;
  }
  let squares = (sums.x + sums.y) + (sums.z + sums.w);
  let r = 1.0 / sqrt(squares / f32(params.width) + params.eps);
  for (var c = 0u; c < quarters; c++) {
    y[row + c] = sum[row + c] * r * (w[c] + params.offset);
  }
  scales[i] = r;
}
