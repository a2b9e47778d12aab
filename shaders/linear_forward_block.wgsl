// y = x Wᵀ for many rows: y[r, c] = Σ_i x[r, i] w[c, i]. x [n, k] f32, w [m, k] f32,
// y [n, m]; k = 4 k4. One thread: 16 rows by 8 columns of y, sums in registers, no barriers: loads are what a software adapter
// pays for, and this block does 21 multiplications for each. Twin: kernels/linear/kernels.rs
struct Params {
  n: u32,
  m: u32,
  k4: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> w: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<storage, read_write> params: Params;

fn dots(p: vec4<f32>, a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>) -> vec4<f32> {
  return vec4<f32>(dot(p, a), dot(p, b), dot(p, c), dot(p, d));
}

fn store(row: u32, column: u32, low: vec4<f32>, high: vec4<f32>) {
  let m = params.m;
  if (row >= params.n) {
    return;
  }
  for (var c = 0u; c < 4u; c++) {
    if (column + c < m) {
      y[row * m + column + c] = low[c];
    }
    if (column + 4u + c < m) {
      y[row * m + column + 4u + c] = high[c];
    }
  }
}

@compute @workgroup_size(32)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let n = params.n;
  let m = params.m;
  let k4 = params.k4;
  let columns = (m + 7u) / 8u;
  let block = grid_index(group, groups, lane, 32u);
  let row = block / columns * 16u;
  let column = block % columns * 8u;
  if (row >= n) {
    return;
  }
  // Past the edge the last row or column is read again; its sums are not stored.
  let x0 = min(row + 0u, n - 1u) * k4;
  let x1 = min(row + 1u, n - 1u) * k4;
  let x2 = min(row + 2u, n - 1u) * k4;
  let x3 = min(row + 3u, n - 1u) * k4;
  let x4 = min(row + 4u, n - 1u) * k4;
  let x5 = min(row + 5u, n - 1u) * k4;
  let x6 = min(row + 6u, n - 1u) * k4;
  let x7 = min(row + 7u, n - 1u) * k4;
  let x8 = min(row + 8u, n - 1u) * k4;
  let x9 = min(row + 9u, n - 1u) * k4;
  let x10 = min(row + 10u, n - 1u) * k4;
  let x11 = min(row + 11u, n - 1u) * k4;
  let x12 = min(row + 12u, n - 1u) * k4;
  let x13 = min(row + 13u, n - 1u) * k4;
  let x14 = min(row + 14u, n - 1u) * k4;
  let x15 = min(row + 15u, n - 1u) * k4;
  let w0 = min(column + 0u, m - 1u) * k4;
  let w1 = min(column + 1u, m - 1u) * k4;
  let w2 = min(column + 2u, m - 1u) * k4;
  let w3 = min(column + 3u, m - 1u) * k4;
  let w4 = min(column + 4u, m - 1u) * k4;
  let w5 = min(column + 5u, m - 1u) * k4;
  let w6 = min(column + 6u, m - 1u) * k4;
  let w7 = min(column + 7u, m - 1u) * k4;
  var a0 = vec4<f32>(); var b0 = vec4<f32>();
  var a1 = vec4<f32>(); var b1 = vec4<f32>();
  var a2 = vec4<f32>(); var b2 = vec4<f32>();
  var a3 = vec4<f32>(); var b3 = vec4<f32>();
  var a4 = vec4<f32>(); var b4 = vec4<f32>();
  var a5 = vec4<f32>(); var b5 = vec4<f32>();
  var a6 = vec4<f32>(); var b6 = vec4<f32>();
  var a7 = vec4<f32>(); var b7 = vec4<f32>();
  var a8 = vec4<f32>(); var b8 = vec4<f32>();
  var a9 = vec4<f32>(); var b9 = vec4<f32>();
  var a10 = vec4<f32>(); var b10 = vec4<f32>();
  var a11 = vec4<f32>(); var b11 = vec4<f32>();
  var a12 = vec4<f32>(); var b12 = vec4<f32>();
  var a13 = vec4<f32>(); var b13 = vec4<f32>();
  var a14 = vec4<f32>(); var b14 = vec4<f32>();
  var a15 = vec4<f32>(); var b15 = vec4<f32>();
  for (var i = 0u; i < k4; i++) {
    let q0 = w[w0 + i];
    let q1 = w[w1 + i];
    let q2 = w[w2 + i];
    let q3 = w[w3 + i];
    let q4 = w[w4 + i];
    let q5 = w[w5 + i];
    let q6 = w[w6 + i];
    let q7 = w[w7 + i];
    let p0 = x[x0 + i]; a0 += dots(p0, q0, q1, q2, q3); b0 += dots(p0, q4, q5, q6, q7);
    let p1 = x[x1 + i]; a1 += dots(p1, q0, q1, q2, q3); b1 += dots(p1, q4, q5, q6, q7);
    let p2 = x[x2 + i]; a2 += dots(p2, q0, q1, q2, q3); b2 += dots(p2, q4, q5, q6, q7);
    let p3 = x[x3 + i]; a3 += dots(p3, q0, q1, q2, q3); b3 += dots(p3, q4, q5, q6, q7);
    let p4 = x[x4 + i]; a4 += dots(p4, q0, q1, q2, q3); b4 += dots(p4, q4, q5, q6, q7);
    let p5 = x[x5 + i]; a5 += dots(p5, q0, q1, q2, q3); b5 += dots(p5, q4, q5, q6, q7);
    let p6 = x[x6 + i]; a6 += dots(p6, q0, q1, q2, q3); b6 += dots(p6, q4, q5, q6, q7);
    let p7 = x[x7 + i]; a7 += dots(p7, q0, q1, q2, q3); b7 += dots(p7, q4, q5, q6, q7);
    let p8 = x[x8 + i]; a8 += dots(p8, q0, q1, q2, q3); b8 += dots(p8, q4, q5, q6, q7);
    let p9 = x[x9 + i]; a9 += dots(p9, q0, q1, q2, q3); b9 += dots(p9, q4, q5, q6, q7);
    let p10 = x[x10 + i]; a10 += dots(p10, q0, q1, q2, q3); b10 += dots(p10, q4, q5, q6, q7);
    let p11 = x[x11 + i]; a11 += dots(p11, q0, q1, q2, q3); b11 += dots(p11, q4, q5, q6, q7);
    let p12 = x[x12 + i]; a12 += dots(p12, q0, q1, q2, q3); b12 += dots(p12, q4, q5, q6, q7);
    let p13 = x[x13 + i]; a13 += dots(p13, q0, q1, q2, q3); b13 += dots(p13, q4, q5, q6, q7);
    let p14 = x[x14 + i]; a14 += dots(p14, q0, q1, q2, q3); b14 += dots(p14, q4, q5, q6, q7);
    let p15 = x[x15 + i]; a15 += dots(p15, q0, q1, q2, q3); b15 += dots(p15, q4, q5, q6, q7);
  }
  store(row + 0u, column, a0, b0);
  store(row + 1u, column, a1, b1);
  store(row + 2u, column, a2, b2);
  store(row + 3u, column, a3, b3);
  store(row + 4u, column, a4, b4);
  store(row + 5u, column, a5, b5);
  store(row + 6u, column, a6, b6);
  store(row + 7u, column, a7, b7);
  store(row + 8u, column, a8, b8);
  store(row + 9u, column, a9, b9);
  store(row + 10u, column, a10, b10);
  store(row + 11u, column, a11, b11);
  store(row + 12u, column, a12, b12);
  store(row + 13u, column, a13, b13);
  store(row + 14u, column, a14, b14);
  store(row + 15u, column, a15, b15);
}
