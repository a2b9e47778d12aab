// Made by shaders/blocks.mjs
// dW (+)= dyᵀ x: dw[c, i] = Σ_r dy[r, c] x[r, i], added to the values in dw if add is 1. dy [n, m], x [n, k],
// dw [m, k]; m = 4 m4, k = 4 k4. One thread: 16 rows by 16 columns of dW, no barriers. Twin: ops/linear/kernels.rs
struct Params {
  n: u32,
  m4: u32,
  k4: u32,
  add: u32,
}

@group(0) @binding(0) var<storage, read_write> dy: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> dw: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> params: Params;

fn four(p: vec4<f32>, a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>) -> vec4<f32> {
  return mat4x4<f32>(a, b, c, d) * p;
}

@compute @workgroup_size(16)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let n = params.n; let m4 = params.m4; let k4 = params.k4;
  let columns = (k4 + 3u) / 4u;
  let block = grid_index(group, groups, lane, 16u);
  let row0 = block / columns * 4u;
  let column = block % columns * 4u;
  if (row0 >= m4) {
    return;
  }
  // Past the edge the last row or column is computed again, and not stored.
  let next1 = min(column + 1u, k4 - 1u);
  let next2 = min(column + 2u, k4 - 1u);
  let next3 = min(column + 3u, k4 - 1u);
  let row1 = min(row0 + 1u, m4 - 1u);
  let row2 = min(row0 + 2u, m4 - 1u);
  let row3 = min(row0 + 3u, m4 - 1u);
  var a0 = vec4<f32>(); var b0 = vec4<f32>(); var c0 = vec4<f32>(); var d0 = vec4<f32>();
  var a1 = vec4<f32>(); var b1 = vec4<f32>(); var c1 = vec4<f32>(); var d1 = vec4<f32>();
  var a2 = vec4<f32>(); var b2 = vec4<f32>(); var c2 = vec4<f32>(); var d2 = vec4<f32>();
  var a3 = vec4<f32>(); var b3 = vec4<f32>(); var c3 = vec4<f32>(); var d3 = vec4<f32>();
  var a4 = vec4<f32>(); var b4 = vec4<f32>(); var c4 = vec4<f32>(); var d4 = vec4<f32>();
  var a5 = vec4<f32>(); var b5 = vec4<f32>(); var c5 = vec4<f32>(); var d5 = vec4<f32>();
  var a6 = vec4<f32>(); var b6 = vec4<f32>(); var c6 = vec4<f32>(); var d6 = vec4<f32>();
  var a7 = vec4<f32>(); var b7 = vec4<f32>(); var c7 = vec4<f32>(); var d7 = vec4<f32>();
  var a8 = vec4<f32>(); var b8 = vec4<f32>(); var c8 = vec4<f32>(); var d8 = vec4<f32>();
  var a9 = vec4<f32>(); var b9 = vec4<f32>(); var c9 = vec4<f32>(); var d9 = vec4<f32>();
  var a10 = vec4<f32>(); var b10 = vec4<f32>(); var c10 = vec4<f32>(); var d10 = vec4<f32>();
  var a11 = vec4<f32>(); var b11 = vec4<f32>(); var c11 = vec4<f32>(); var d11 = vec4<f32>();
  var a12 = vec4<f32>(); var b12 = vec4<f32>(); var c12 = vec4<f32>(); var d12 = vec4<f32>();
  var a13 = vec4<f32>(); var b13 = vec4<f32>(); var c13 = vec4<f32>(); var d13 = vec4<f32>();
  var a14 = vec4<f32>(); var b14 = vec4<f32>(); var c14 = vec4<f32>(); var d14 = vec4<f32>();
  var a15 = vec4<f32>(); var b15 = vec4<f32>(); var c15 = vec4<f32>(); var d15 = vec4<f32>();
  for (var r = 0u; r < n; r += 4u) {
    let at = min(r + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(n - 1u));
    let live = select(vec4<f32>(), vec4<f32>(1.0), r + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(n));
    let e0 = x[at.x * k4 + column]; let e1 = x[at.x * k4 + next1];
    let e2 = x[at.x * k4 + next2]; let e3 = x[at.x * k4 + next3];
    let f0 = x[at.y * k4 + column]; let f1 = x[at.y * k4 + next1];
    let f2 = x[at.y * k4 + next2]; let f3 = x[at.y * k4 + next3];
    let g0 = x[at.z * k4 + column]; let g1 = x[at.z * k4 + next1];
    let g2 = x[at.z * k4 + next2]; let g3 = x[at.z * k4 + next3];
    let h0 = x[at.w * k4 + column]; let h1 = x[at.w * k4 + next1];
    let h2 = x[at.w * k4 + next2]; let h3 = x[at.w * k4 + next3];
    let s0 = dy[at.x * m4 + row0]; let s1 = dy[at.x * m4 + row1];
    let s2 = dy[at.x * m4 + row2]; let s3 = dy[at.x * m4 + row3];
    let t0 = dy[at.y * m4 + row0]; let t1 = dy[at.y * m4 + row1];
    let t2 = dy[at.y * m4 + row2]; let t3 = dy[at.y * m4 + row3];
    let u0 = dy[at.z * m4 + row0]; let u1 = dy[at.z * m4 + row1];
    let u2 = dy[at.z * m4 + row2]; let u3 = dy[at.z * m4 + row3];
    let v0 = dy[at.w * m4 + row0]; let v1 = dy[at.w * m4 + row1];
    let v2 = dy[at.w * m4 + row2]; let v3 = dy[at.w * m4 + row3];
    let p0 = live * vec4<f32>(s0.x, t0.x, u0.x, v0.x);
    a0 += four(p0, e0, f0, g0, h0); b0 += four(p0, e1, f1, g1, h1);
    c0 += four(p0, e2, f2, g2, h2); d0 += four(p0, e3, f3, g3, h3);
    let p1 = live * vec4<f32>(s0.y, t0.y, u0.y, v0.y);
    a1 += four(p1, e0, f0, g0, h0); b1 += four(p1, e1, f1, g1, h1);
    c1 += four(p1, e2, f2, g2, h2); d1 += four(p1, e3, f3, g3, h3);
    let p2 = live * vec4<f32>(s0.z, t0.z, u0.z, v0.z);
    a2 += four(p2, e0, f0, g0, h0); b2 += four(p2, e1, f1, g1, h1);
    c2 += four(p2, e2, f2, g2, h2); d2 += four(p2, e3, f3, g3, h3);
    let p3 = live * vec4<f32>(s0.w, t0.w, u0.w, v0.w);
    a3 += four(p3, e0, f0, g0, h0); b3 += four(p3, e1, f1, g1, h1);
    c3 += four(p3, e2, f2, g2, h2); d3 += four(p3, e3, f3, g3, h3);
    let p4 = live * vec4<f32>(s1.x, t1.x, u1.x, v1.x);
    a4 += four(p4, e0, f0, g0, h0); b4 += four(p4, e1, f1, g1, h1);
    c4 += four(p4, e2, f2, g2, h2); d4 += four(p4, e3, f3, g3, h3);
    let p5 = live * vec4<f32>(s1.y, t1.y, u1.y, v1.y);
    a5 += four(p5, e0, f0, g0, h0); b5 += four(p5, e1, f1, g1, h1);
    c5 += four(p5, e2, f2, g2, h2); d5 += four(p5, e3, f3, g3, h3);
    let p6 = live * vec4<f32>(s1.z, t1.z, u1.z, v1.z);
    a6 += four(p6, e0, f0, g0, h0); b6 += four(p6, e1, f1, g1, h1);
    c6 += four(p6, e2, f2, g2, h2); d6 += four(p6, e3, f3, g3, h3);
    let p7 = live * vec4<f32>(s1.w, t1.w, u1.w, v1.w);
    a7 += four(p7, e0, f0, g0, h0); b7 += four(p7, e1, f1, g1, h1);
    c7 += four(p7, e2, f2, g2, h2); d7 += four(p7, e3, f3, g3, h3);
    let p8 = live * vec4<f32>(s2.x, t2.x, u2.x, v2.x);
    a8 += four(p8, e0, f0, g0, h0); b8 += four(p8, e1, f1, g1, h1);
    c8 += four(p8, e2, f2, g2, h2); d8 += four(p8, e3, f3, g3, h3);
    let p9 = live * vec4<f32>(s2.y, t2.y, u2.y, v2.y);
    a9 += four(p9, e0, f0, g0, h0); b9 += four(p9, e1, f1, g1, h1);
    c9 += four(p9, e2, f2, g2, h2); d9 += four(p9, e3, f3, g3, h3);
    let p10 = live * vec4<f32>(s2.z, t2.z, u2.z, v2.z);
    a10 += four(p10, e0, f0, g0, h0); b10 += four(p10, e1, f1, g1, h1);
    c10 += four(p10, e2, f2, g2, h2); d10 += four(p10, e3, f3, g3, h3);
    let p11 = live * vec4<f32>(s2.w, t2.w, u2.w, v2.w);
    a11 += four(p11, e0, f0, g0, h0); b11 += four(p11, e1, f1, g1, h1);
    c11 += four(p11, e2, f2, g2, h2); d11 += four(p11, e3, f3, g3, h3);
    let p12 = live * vec4<f32>(s3.x, t3.x, u3.x, v3.x);
    a12 += four(p12, e0, f0, g0, h0); b12 += four(p12, e1, f1, g1, h1);
    c12 += four(p12, e2, f2, g2, h2); d12 += four(p12, e3, f3, g3, h3);
    let p13 = live * vec4<f32>(s3.y, t3.y, u3.y, v3.y);
    a13 += four(p13, e0, f0, g0, h0); b13 += four(p13, e1, f1, g1, h1);
    c13 += four(p13, e2, f2, g2, h2); d13 += four(p13, e3, f3, g3, h3);
    let p14 = live * vec4<f32>(s3.z, t3.z, u3.z, v3.z);
    a14 += four(p14, e0, f0, g0, h0); b14 += four(p14, e1, f1, g1, h1);
    c14 += four(p14, e2, f2, g2, h2); d14 += four(p14, e3, f3, g3, h3);
    let p15 = live * vec4<f32>(s3.w, t3.w, u3.w, v3.w);
    a15 += four(p15, e0, f0, g0, h0); b15 += four(p15, e1, f1, g1, h1);
    c15 += four(p15, e2, f2, g2, h2); d15 += four(p15, e3, f3, g3, h3);
  }
  var sums: array<vec4<f32>, 64>;
  sums[0] = a0; sums[1] = b0; sums[2] = c0; sums[3] = d0;
  sums[4] = a1; sums[5] = b1; sums[6] = c1; sums[7] = d1;
  sums[8] = a2; sums[9] = b2; sums[10] = c2; sums[11] = d2;
  sums[12] = a3; sums[13] = b3; sums[14] = c3; sums[15] = d3;
  sums[16] = a4; sums[17] = b4; sums[18] = c4; sums[19] = d4;
  sums[20] = a5; sums[21] = b5; sums[22] = c5; sums[23] = d5;
  sums[24] = a6; sums[25] = b6; sums[26] = c6; sums[27] = d6;
  sums[28] = a7; sums[29] = b7; sums[30] = c7; sums[31] = d7;
  sums[32] = a8; sums[33] = b8; sums[34] = c8; sums[35] = d8;
  sums[36] = a9; sums[37] = b9; sums[38] = c9; sums[39] = d9;
  sums[40] = a10; sums[41] = b10; sums[42] = c10; sums[43] = d10;
  sums[44] = a11; sums[45] = b11; sums[46] = c11; sums[47] = d11;
  sums[48] = a12; sums[49] = b12; sums[50] = c12; sums[51] = d12;
  sums[52] = a13; sums[53] = b13; sums[54] = c13; sums[55] = d13;
  sums[56] = a14; sums[57] = b14; sums[58] = c14; sums[59] = d14;
  sums[60] = a15; sums[61] = b15; sums[62] = c15; sums[63] = d15;
  for (var sum = 0u; sum < 64u; sum++) {
    let r = sum / 4u;
    let c = column + sum % 4u;
    if (row0 + r / 4u < m4 && c < k4) {
      let at = (4u * row0 + r) * k4 + c;
      dw[at] = sums[sum] + select(vec4<f32>(), dw[at], params.add == 1u);
    }
  }
}
