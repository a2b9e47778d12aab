// dx = dy W for any shape: dx[r, i] = Σ_c dy[r, c] w[c, i]. dy [n, m], w [m, k], dx [n, k].
// One thread: 4 rows by 4 columns of dx. Twin: ops/linear/kernels.rs
// Long sums are cut: slice s of dy's columns gives the partial sum dx[s], dx [S, n, k], and column_sum adds them up.
struct Params {
  n: u32,
  m: u32,
  k: u32,
  slice: u32,
  // Where the second plane of w begins.
  plane: u32,
}

@group(0) @binding(1) var<storage, read_write> dy: array<f32>;
@group(0) @binding(2) var<storage, read_write> dx: array<f32>;
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
  let columns = (k + 3u) / 4u;
  let block = grid_index(group, groups, lane, 64u);
  let blocks = (n + 3u) / 4u * columns;
  let above = block / blocks * n;
  let row = block % blocks / columns * 4u;
  let column = block % columns * 4u;
  let start = block / blocks * params.slice;
  if (start >= m) {
    return;
  }
  let end = min(start + params.slice, m);
  // Past the edge the last row or column is read again; its sums are not stored.
  let rows = min(vec4<u32>(row) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(n - 1u)) * m;
  let i = min(vec4<u32>(column) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(k - 1u));
  var a0 = vec4<f32>();
  var a1 = vec4<f32>();
  var a2 = vec4<f32>();
  var a3 = vec4<f32>();
  for (var c = start; c < end; c++) {
    let q = vec4<f32>(weight1(c, i.x), weight1(c, i.y), weight1(c, i.z), weight1(c, i.w));
    a0 += dy[rows.x + c] * q;
    a1 += dy[rows.y + c] * q;
    a2 += dy[rows.z + c] * q;
    a3 += dy[rows.w + c] * q;
  }
  for (var c = 0u; c < 4u && column + c < k; c++) {
    let out = (above + row) * k + column + c;
    dx[out] = a0[c];
    if (row + 1u < n) {
      dx[out + k] = a1[c];
    }
    if (row + 2u < n) {
      dx[out + 2u * k] = a2[c];
    }
    if (row + 3u < n) {
      dx[out + 3u * k] = a3[c];
    }
  }
}
