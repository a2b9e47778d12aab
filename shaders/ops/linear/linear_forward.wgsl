// y = x Wᵀ: y[r, c] = Σ_i x[r, i] w[c, i]. x [n, k] f32, w [m, k], y [n, m]; k = 4 k4.
// One thread: 4 rows by 4 columns of y, sums in registers, no barriers. Twin: ops/linear/kernels.rs
struct Params {
  n: u32,
  m: u32,
  k4: u32,
  // Where the second plane of w begins.
  plane: u32,
}

@group(0) @binding(1) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<storage, read_write> params: Params;

fn store(row: u32, column: u32, n: u32, m: u32, sums: vec4<f32>) {
  if (row >= n) {
    return;
  }
  for (var c = 0u; c < 4u; c++) {
    if (column + c < m) {
      y[row * m + column + c] = sums[c];
    }
  }
}

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let n = params.n;
  let m = params.m;
  let k4 = params.k4;
  let columns = (m + 3u) / 4u;
  let block = grid_index(group, groups, lane, 64u);
  let row = block / columns * 4u;
  let column = block % columns * 4u;
  if (row >= n) {
    return;
  }
  // Past the edge the last row or column is read again; its sums are not stored.
  let x0 = row * k4;
  let x1 = min(row + 1u, n - 1u) * k4;
  let x2 = min(row + 2u, n - 1u) * k4;
  let x3 = min(row + 3u, n - 1u) * k4;
  let c1 = min(column + 1u, m - 1u);
  let c2 = min(column + 2u, m - 1u);
  let c3 = min(column + 3u, m - 1u);
  var a0 = vec4<f32>();
  var a1 = vec4<f32>();
  var a2 = vec4<f32>();
  var a3 = vec4<f32>();
  for (var i = 0u; i < k4; i++) {
    let q0 = weight4(column, i);
    let q1 = weight4(c1, i);
    let q2 = weight4(c2, i);
    let q3 = weight4(c3, i);
    let p0 = x[x0 + i];
    a0 += vec4<f32>(dot(p0, q0), dot(p0, q1), dot(p0, q2), dot(p0, q3));
    let p1 = x[x1 + i];
    a1 += vec4<f32>(dot(p1, q0), dot(p1, q1), dot(p1, q2), dot(p1, q3));
    let p2 = x[x2 + i];
    a2 += vec4<f32>(dot(p2, q0), dot(p2, q1), dot(p2, q2), dot(p2, q3));
    let p3 = x[x3 + i];
    a3 += vec4<f32>(dot(p3, q0), dot(p3, q1), dot(p3, q2), dot(p3, q3));
  }
  store(row + 0u, column, n, m, a0);
  store(row + 1u, column, n, m, a1);
  store(row + 2u, column, n, m, a2);
  store(row + 3u, column, n, m, a3);
}
