// dW (+)= dyᵀ x for any shape: dw[c, i] = Σ_r dy[r, c] x[r, i], added to the values in dw if add is 1. dy [n, m], x [n,
// k], dw [m, k].
// One thread: 4 rows by 4 columns of dW. Twin: ops/linear/kernels.rs
struct Params {
  n: u32,
  m: u32,
  k: u32,
  add: u32,
}

@group(0) @binding(0) var<storage, read_write> dy: array<f32>;
@group(0) @binding(1) var<storage, read_write> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> dw: array<f32>;
@group(0) @binding(3) var<storage, read_write> params: Params;

fn begin(at: u32) -> f32 {
  return select(0.0, dw[at], params.add == 1u);
}

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
  let row = block / columns * 4u;
  let column = block % columns * 4u;
  if (row >= m) {
    return;
  }
  // Past the edge the last row or column is read again; its sums are not stored.
  let rows = min(vec4<u32>(row) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(m - 1u));
  let columns4 = min(vec4<u32>(column) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(k - 1u));
  var a0 = vec4<f32>();
  var a1 = vec4<f32>();
  var a2 = vec4<f32>();
  var a3 = vec4<f32>();
  for (var r = 0u; r < n; r++) {
    let at = columns4 + vec4<u32>(r * k);
    let q = vec4<f32>(x[at.x], x[at.y], x[at.z], x[at.w]);
    let from_row = r * m;
    a0 += dy[from_row + rows.x] * q;
    a1 += dy[from_row + rows.y] * q;
    a2 += dy[from_row + rows.z] * q;
    a3 += dy[from_row + rows.w] * q;
  }
  for (var c = 0u; c < 4u && column + c < k; c++) {
    let out = row * k + column + c;
    dw[out] = begin(out) + a0[c];
    if (row + 1u < m) {
      dw[out + k] = begin(out + k) + a1[c];
    }
    if (row + 2u < m) {
      dw[out + 2u * k] = begin(out + 2u * k) + a2[c];
    }
    if (row + 3u < m) {
      dw[out + 3u * k] = begin(out + 3u * k) + a3[c];
    }
  }
}
