// dx = dy W: dx[r, i] = Σ_c dy[r, c] w[c, i]. dy [n, m] f32, w [m, k], dx [n, k]; m = 4 m4, k = 4 k4.
// One thread: 4 rows by 4 columns of dx, sums in registers, no barriers. Twin: ops/linear/kernels.rs
// Long sums are cut: slice s of dy's columns gives the partial sum dx[s], dx [S, n, k], and column_sum adds them up.
struct Params {
  n: u32,
  m4: u32,
  k4: u32,
  slice4: u32,
  // Where the second plane of w begins.
  plane: u32,
}

@group(0) @binding(1) var<storage, read_write> dy: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> dx: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let n = params.n;
  let m4 = params.m4;
  let k4 = params.k4;
  let block = grid_index(group, groups, lane, 64u);
  let blocks = (n + 3u) / 4u * k4;
  let above = block / blocks * n;
  let row = block % blocks / k4 * 4u;
  let column = block % k4;
  let start = block / blocks * params.slice4;
  if (start >= m4) {
    return;
  }
  let end = min(start + params.slice4, m4);
  // Past the edge the last row is read again; its sums are not stored.
  let d0 = row * m4;
  let d1 = min(row + 1u, n - 1u) * m4;
  let d2 = min(row + 2u, n - 1u) * m4;
  let d3 = min(row + 3u, n - 1u) * m4;
  var a0 = vec4<f32>();
  var a1 = vec4<f32>();
  var a2 = vec4<f32>();
  var a3 = vec4<f32>();
  for (var c = start; c < end; c++) {
    let q0 = weight4(4u * c, column);
    let q1 = weight4(4u * c + 1u, column);
    let q2 = weight4(4u * c + 2u, column);
    let q3 = weight4(4u * c + 3u, column);
    let p0 = dy[d0 + c];
    a0 += p0.x * q0 + p0.y * q1 + p0.z * q2 + p0.w * q3;
    let p1 = dy[d1 + c];
    a1 += p1.x * q0 + p1.y * q1 + p1.z * q2 + p1.w * q3;
    let p2 = dy[d2 + c];
    a2 += p2.x * q0 + p2.y * q1 + p2.z * q2 + p2.w * q3;
    let p3 = dy[d3 + c];
    a3 += p3.x * q0 + p3.y * q1 + p3.z * q2 + p3.w * q3;
  }
  dx[(above + row) * k4 + column] = a0;
  if (row + 1u < n) {
    dx[(above + row + 1u) * k4 + column] = a1;
  }
  if (row + 2u < n) {
    dx[(above + row + 2u) * k4 + column] = a2;
  }
  if (row + 3u < n) {
    dx[(above + row + 3u) * k4 + column] = a3;
  }
}
