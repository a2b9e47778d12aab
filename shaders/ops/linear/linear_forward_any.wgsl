// y = x Wᵀ for any shape: y[r, c] = Σ_i x[r, i] w[c, i]. x [n, k], w [m, k], y [n, m].
// One thread: 4 rows by 4 columns of y. Twin: ops/linear/kernels.rs
struct Params {
  n: u32,
  m: u32,
  k: u32,
  // Where the second plane of w begins.
  plane: u32,
}

@group(0) @binding(1) var<storage, read_write> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let n = params.n;
  let m = params.m;
  let k = params.k;
  let columns = (m + 3u) / 4u;
  let block = grid_index(group, groups, lane, 64u);
  let row = block / columns * 4u;
  let column = block % columns * 4u;
  if (row >= n) {
    return;
  }
  // Past the edge the last row or column is read again; its sums are not stored.
  let rows = min(vec4<u32>(row) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(n - 1u)) * k;
  let columns4 = min(vec4<u32>(column) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(m - 1u));
  var a0 = vec4<f32>();
  var a1 = vec4<f32>();
  var a2 = vec4<f32>();
  var a3 = vec4<f32>();
  for (var i = 0u; i < k; i++) {
    let q = vec4<f32>(
      weight1(columns4.x, i),
      weight1(columns4.y, i),
      weight1(columns4.z, i),
      weight1(columns4.w, i),
    );
    a0 += x[rows.x + i] * q;
    a1 += x[rows.y + i] * q;
    a2 += x[rows.z + i] * q;
    a3 += x[rows.w + i] * q;
  }
  for (var c = 0u; c < 4u && column + c < m; c++) {
    let out = row * m + column + c;
    y[out] = a0[c];
    if (row + 1u < n) {
      y[out + m] = a1[c];
    }
    if (row + 2u < n) {
      y[out + 2u * m] = a2[c];
    }
    if (row + 3u < n) {
      y[out + 3u * m] = a3[c];
    }
  }
}
