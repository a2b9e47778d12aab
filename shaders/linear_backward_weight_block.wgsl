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

fn begin(at: u32) -> vec4<f32> {
  return select(vec4<f32>(), dw[at], params.add == 1u);
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
  // Past the edge the last row or column is computed again: the same sums are stored in the same place,
  // so the old values are read before anything is written.
  let next1 = min(column + 1u, k4 - 1u);
  let next2 = min(column + 2u, k4 - 1u);
  let next3 = min(column + 3u, k4 - 1u);
  let row1 = min(row0 + 1u, m4 - 1u);
  let row2 = min(row0 + 2u, m4 - 1u);
  let row3 = min(row0 + 3u, m4 - 1u);
  let o0 = (4u * row0 + 0u) * k4;
  var a0 = begin(o0 + column); var b0 = begin(o0 + next1);
  var c0 = begin(o0 + next2); var d0 = begin(o0 + next3);
  let o1 = (4u * row0 + 1u) * k4;
  var a1 = begin(o1 + column); var b1 = begin(o1 + next1);
  var c1 = begin(o1 + next2); var d1 = begin(o1 + next3);
  let o2 = (4u * row0 + 2u) * k4;
  var a2 = begin(o2 + column); var b2 = begin(o2 + next1);
  var c2 = begin(o2 + next2); var d2 = begin(o2 + next3);
  let o3 = (4u * row0 + 3u) * k4;
  var a3 = begin(o3 + column); var b3 = begin(o3 + next1);
  var c3 = begin(o3 + next2); var d3 = begin(o3 + next3);
  let o4 = (4u * row1 + 0u) * k4;
  var a4 = begin(o4 + column); var b4 = begin(o4 + next1);
  var c4 = begin(o4 + next2); var d4 = begin(o4 + next3);
  let o5 = (4u * row1 + 1u) * k4;
  var a5 = begin(o5 + column); var b5 = begin(o5 + next1);
  var c5 = begin(o5 + next2); var d5 = begin(o5 + next3);
  let o6 = (4u * row1 + 2u) * k4;
  var a6 = begin(o6 + column); var b6 = begin(o6 + next1);
  var c6 = begin(o6 + next2); var d6 = begin(o6 + next3);
  let o7 = (4u * row1 + 3u) * k4;
  var a7 = begin(o7 + column); var b7 = begin(o7 + next1);
  var c7 = begin(o7 + next2); var d7 = begin(o7 + next3);
  let o8 = (4u * row2 + 0u) * k4;
  var a8 = begin(o8 + column); var b8 = begin(o8 + next1);
  var c8 = begin(o8 + next2); var d8 = begin(o8 + next3);
  let o9 = (4u * row2 + 1u) * k4;
  var a9 = begin(o9 + column); var b9 = begin(o9 + next1);
  var c9 = begin(o9 + next2); var d9 = begin(o9 + next3);
  let o10 = (4u * row2 + 2u) * k4;
  var a10 = begin(o10 + column); var b10 = begin(o10 + next1);
  var c10 = begin(o10 + next2); var d10 = begin(o10 + next3);
  let o11 = (4u * row2 + 3u) * k4;
  var a11 = begin(o11 + column); var b11 = begin(o11 + next1);
  var c11 = begin(o11 + next2); var d11 = begin(o11 + next3);
  let o12 = (4u * row3 + 0u) * k4;
  var a12 = begin(o12 + column); var b12 = begin(o12 + next1);
  var c12 = begin(o12 + next2); var d12 = begin(o12 + next3);
  let o13 = (4u * row3 + 1u) * k4;
  var a13 = begin(o13 + column); var b13 = begin(o13 + next1);
  var c13 = begin(o13 + next2); var d13 = begin(o13 + next3);
  let o14 = (4u * row3 + 2u) * k4;
  var a14 = begin(o14 + column); var b14 = begin(o14 + next1);
  var c14 = begin(o14 + next2); var d14 = begin(o14 + next3);
  let o15 = (4u * row3 + 3u) * k4;
  var a15 = begin(o15 + column); var b15 = begin(o15 + next1);
  var c15 = begin(o15 + next2); var d15 = begin(o15 + next3);
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
  dw[o0 + column] = a0; dw[o0 + next1] = b0; dw[o0 + next2] = c0; dw[o0 + next3] = d0;
  dw[o1 + column] = a1; dw[o1 + next1] = b1; dw[o1 + next2] = c1; dw[o1 + next3] = d1;
  dw[o2 + column] = a2; dw[o2 + next1] = b2; dw[o2 + next2] = c2; dw[o2 + next3] = d2;
  dw[o3 + column] = a3; dw[o3 + next1] = b3; dw[o3 + next2] = c3; dw[o3 + next3] = d3;
  dw[o4 + column] = a4; dw[o4 + next1] = b4; dw[o4 + next2] = c4; dw[o4 + next3] = d4;
  dw[o5 + column] = a5; dw[o5 + next1] = b5; dw[o5 + next2] = c5; dw[o5 + next3] = d5;
  dw[o6 + column] = a6; dw[o6 + next1] = b6; dw[o6 + next2] = c6; dw[o6 + next3] = d6;
  dw[o7 + column] = a7; dw[o7 + next1] = b7; dw[o7 + next2] = c7; dw[o7 + next3] = d7;
  dw[o8 + column] = a8; dw[o8 + next1] = b8; dw[o8 + next2] = c8; dw[o8 + next3] = d8;
  dw[o9 + column] = a9; dw[o9 + next1] = b9; dw[o9 + next2] = c9; dw[o9 + next3] = d9;
  dw[o10 + column] = a10; dw[o10 + next1] = b10; dw[o10 + next2] = c10; dw[o10 + next3] = d10;
  dw[o11 + column] = a11; dw[o11 + next1] = b11; dw[o11 + next2] = c11; dw[o11 + next3] = d11;
  dw[o12 + column] = a12; dw[o12 + next1] = b12; dw[o12 + next2] = c12; dw[o12 + next3] = d12;
  dw[o13 + column] = a13; dw[o13 + next1] = b13; dw[o13 + next2] = c13; dw[o13 + next3] = d13;
  dw[o14 + column] = a14; dw[o14 + next1] = b14; dw[o14 + next2] = c14; dw[o14 + next3] = d14;
  dw[o15 + column] = a15; dw[o15 + next1] = b15; dw[o15 + next2] = c15; dw[o15 + next3] = d15;
}
