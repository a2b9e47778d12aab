// y = x Wᵀ for few rows (generation): y[r, c] = Σ_i x[r, i] w[c, i]. x [n, k] f32, w [m, k], y [n, m]; k = 4 k4.
// One workgroup: 8 elements of a row of y, x read once for all; neighbouring threads read neighbouring words of w.
// Twin: ops/linear/kernels.rs
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

var<workgroup> partials: array<f32, 256>;

// The products of p with four rows of w at i.
fn dots(p: vec4<f32>, rows: vec4<u32>, i: u32) -> vec4<f32> {
  return vec4<f32>(
    dot(p, weight4(rows.x, i)), dot(p, weight4(rows.y, i)), dot(p, weight4(rows.z, i)), dot(p, weight4(rows.w, i)),
  );
}

@compute @workgroup_size(32)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = group_index(group, groups);
  let m = params.m;
  let k4 = params.k4;
  let columns = (m + 7u) / 8u;
  let row = i / columns;
  let first = i % columns * 8u;
  if (row < params.n) {
    let from_x = row * k4;
    // Past the edge the last row of w is read again; its sum is not stored.
    let low = min(vec4<u32>(first) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(m - 1u));
    let high = min(vec4<u32>(first) + vec4<u32>(4u, 5u, 6u, 7u), vec4<u32>(m - 1u));
    var a = vec4<f32>();
    var b = vec4<f32>();
    for (var j = lane; j < k4; j += 32u) {
      let p = x[from_x + j];
      a += dots(p, low, j);
      b += dots(p, high, j);
    }
    for (var c = 0u; c < 4u; c++) {
      partials[c * 32u + lane] = a[c];
      partials[(c + 4u) * 32u + lane] = b[c];
    }
  }
  workgroupBarrier();
  if (row < params.n && lane < 8u && first + lane < m) {
    var total = 0.0;
    for (var j = 0u; j < 32u; j++) {
      total += partials[lane * 32u + j];
    }
    y[row * m + first + lane] = total;
  }
}
