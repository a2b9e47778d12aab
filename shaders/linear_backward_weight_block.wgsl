// dW = dyᵀ x: dw[c, i] = Σ_r dy[r, c] x[r, i]. dy [n, m], x [n, k], dw [m, k]; m = 4 m4, k = 4 k4.
// One thread: 16 rows by 8 columns of dW, sums in registers, no barriers. Twin: kernels/linear/kernels.rs
struct Params {
  n: u32,
  m4: u32,
  k4: u32,
}

@group(0) @binding(0) var<storage, read_write> dy: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> dw: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> params: Params;

fn store(row: u32, column: u32, low: vec4<f32>, high: vec4<f32>) {
  let k4 = params.k4;
  if (row < 4u * params.m4) {
    dw[row * k4 + column] = low;
    if (column + 1u < k4) {
      dw[row * k4 + column + 1u] = high;
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
  let m4 = params.m4;
  let k4 = params.k4;
  let columns = (k4 + 1u) / 2u;
  let block = grid_index(group, groups, lane, 32u);
  let row = block / columns * 4u;
  let column = block % columns * 2u;
  if (row >= m4) {
    return;
  }
  // Past the edge the last row or column is read again; its sums are not stored.
  let next = min(column + 1u, k4 - 1u);
  let row1 = min(row + 1u, m4 - 1u);
  let row2 = min(row + 2u, m4 - 1u);
  let row3 = min(row + 3u, m4 - 1u);
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
  for (var r = 0u; r < n; r++) {
    let q = x[r * k4 + column];
    let z = x[r * k4 + next];
    let p0 = dy[r * m4 + row];
    let p1 = dy[r * m4 + row1];
    let p2 = dy[r * m4 + row2];
    let p3 = dy[r * m4 + row3];
    a0 += p0.x * q; b0 += p0.x * z;
    a1 += p0.y * q; b1 += p0.y * z;
    a2 += p0.z * q; b2 += p0.z * z;
    a3 += p0.w * q; b3 += p0.w * z;
    a4 += p1.x * q; b4 += p1.x * z;
    a5 += p1.y * q; b5 += p1.y * z;
    a6 += p1.z * q; b6 += p1.z * z;
    a7 += p1.w * q; b7 += p1.w * z;
    a8 += p2.x * q; b8 += p2.x * z;
    a9 += p2.y * q; b9 += p2.y * z;
    a10 += p2.z * q; b10 += p2.z * z;
    a11 += p2.w * q; b11 += p2.w * z;
    a12 += p3.x * q; b12 += p3.x * z;
    a13 += p3.y * q; b13 += p3.y * z;
    a14 += p3.z * q; b14 += p3.z * z;
    a15 += p3.w * q; b15 += p3.w * z;
  }
  store(row * 4u + 0u, column, a0, b0);
  store(row * 4u + 1u, column, a1, b1);
  store(row * 4u + 2u, column, a2, b2);
  store(row * 4u + 3u, column, a3, b3);
  store(row * 4u + 4u, column, a4, b4);
  store(row * 4u + 5u, column, a5, b5);
  store(row * 4u + 6u, column, a6, b6);
  store(row * 4u + 7u, column, a7, b7);
  store(row * 4u + 8u, column, a8, b8);
  store(row * 4u + 9u, column, a9, b9);
  store(row * 4u + 10u, column, a10, b10);
  store(row * 4u + 11u, column, a11, b11);
  store(row * 4u + 12u, column, a12, b12);
  store(row * 4u + 13u, column, a13, b13);
  store(row * 4u + 14u, column, a14, b14);
  store(row * 4u + 15u, column, a15, b15);
}
