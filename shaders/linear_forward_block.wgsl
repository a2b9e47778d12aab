// Made by shaders/blocks.mjs
// y = x Wᵀ for many rows: y[r, c] = Σ_i x[r, i] w[c, i]. x [n, k] f32, w [m, k],
// y [n, m]; k = 4 k4. One thread: 32 rows by 16 columns of y, no barriers: each loaded number serves 16 or 32 products,
// and loads are slow on software adapters. Twin: ops/linear/kernels.rs
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

fn dots(p: vec4<f32>, a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>) -> vec4<f32> {
  return vec4<f32>(dot(p, a), dot(p, b), dot(p, c), dot(p, d));
}

fn store(at: u32, columns: vec4<u32>, sums: vec4<f32>) {
  y[at + columns.x] = sums.x;
  y[at + columns.y] = sums.y;
  y[at + columns.z] = sums.z;
  y[at + columns.w] = sums.w;
}

@compute @workgroup_size(16)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let n = params.n; let m = params.m; let k4 = params.k4;
  let columns = (m + 15u) / 16u;
  let block = grid_index(group, groups, lane, 16u);
  let row = block / columns * 32u;
  let column = block % columns * 16u;
  if (row >= n) {
    return;
  }
  // Past the edge the last row or column is computed again: the same sums are stored in the same place.
  let r0 = min(row + 0u, n - 1u); let r1 = min(row + 1u, n - 1u);
  let r2 = min(row + 2u, n - 1u); let r3 = min(row + 3u, n - 1u);
  let r4 = min(row + 4u, n - 1u); let r5 = min(row + 5u, n - 1u);
  let r6 = min(row + 6u, n - 1u); let r7 = min(row + 7u, n - 1u);
  let r8 = min(row + 8u, n - 1u); let r9 = min(row + 9u, n - 1u);
  let r10 = min(row + 10u, n - 1u); let r11 = min(row + 11u, n - 1u);
  let r12 = min(row + 12u, n - 1u); let r13 = min(row + 13u, n - 1u);
  let r14 = min(row + 14u, n - 1u); let r15 = min(row + 15u, n - 1u);
  let r16 = min(row + 16u, n - 1u); let r17 = min(row + 17u, n - 1u);
  let r18 = min(row + 18u, n - 1u); let r19 = min(row + 19u, n - 1u);
  let r20 = min(row + 20u, n - 1u); let r21 = min(row + 21u, n - 1u);
  let r22 = min(row + 22u, n - 1u); let r23 = min(row + 23u, n - 1u);
  let r24 = min(row + 24u, n - 1u); let r25 = min(row + 25u, n - 1u);
  let r26 = min(row + 26u, n - 1u); let r27 = min(row + 27u, n - 1u);
  let r28 = min(row + 28u, n - 1u); let r29 = min(row + 29u, n - 1u);
  let r30 = min(row + 30u, n - 1u); let r31 = min(row + 31u, n - 1u);
  let ca = min(column + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(m - 1u));
  let cb = min(column + vec4<u32>(4u, 5u, 6u, 7u), vec4<u32>(m - 1u));
  let cc = min(column + vec4<u32>(8u, 9u, 10u, 11u), vec4<u32>(m - 1u));
  let cd = min(column + vec4<u32>(12u, 13u, 14u, 15u), vec4<u32>(m - 1u));
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
  var a16 = vec4<f32>(); var b16 = vec4<f32>(); var c16 = vec4<f32>(); var d16 = vec4<f32>();
  var a17 = vec4<f32>(); var b17 = vec4<f32>(); var c17 = vec4<f32>(); var d17 = vec4<f32>();
  var a18 = vec4<f32>(); var b18 = vec4<f32>(); var c18 = vec4<f32>(); var d18 = vec4<f32>();
  var a19 = vec4<f32>(); var b19 = vec4<f32>(); var c19 = vec4<f32>(); var d19 = vec4<f32>();
  var a20 = vec4<f32>(); var b20 = vec4<f32>(); var c20 = vec4<f32>(); var d20 = vec4<f32>();
  var a21 = vec4<f32>(); var b21 = vec4<f32>(); var c21 = vec4<f32>(); var d21 = vec4<f32>();
  var a22 = vec4<f32>(); var b22 = vec4<f32>(); var c22 = vec4<f32>(); var d22 = vec4<f32>();
  var a23 = vec4<f32>(); var b23 = vec4<f32>(); var c23 = vec4<f32>(); var d23 = vec4<f32>();
  var a24 = vec4<f32>(); var b24 = vec4<f32>(); var c24 = vec4<f32>(); var d24 = vec4<f32>();
  var a25 = vec4<f32>(); var b25 = vec4<f32>(); var c25 = vec4<f32>(); var d25 = vec4<f32>();
  var a26 = vec4<f32>(); var b26 = vec4<f32>(); var c26 = vec4<f32>(); var d26 = vec4<f32>();
  var a27 = vec4<f32>(); var b27 = vec4<f32>(); var c27 = vec4<f32>(); var d27 = vec4<f32>();
  var a28 = vec4<f32>(); var b28 = vec4<f32>(); var c28 = vec4<f32>(); var d28 = vec4<f32>();
  var a29 = vec4<f32>(); var b29 = vec4<f32>(); var c29 = vec4<f32>(); var d29 = vec4<f32>();
  var a30 = vec4<f32>(); var b30 = vec4<f32>(); var c30 = vec4<f32>(); var d30 = vec4<f32>();
  var a31 = vec4<f32>(); var b31 = vec4<f32>(); var c31 = vec4<f32>(); var d31 = vec4<f32>();
  for (var i = 0u; i < k4; i++) {
    let q0 = weight4(ca.x, i); let q1 = weight4(ca.y, i); let q2 = weight4(ca.z, i); let q3 = weight4(ca.w, i);
    let q4 = weight4(cb.x, i); let q5 = weight4(cb.y, i); let q6 = weight4(cb.z, i); let q7 = weight4(cb.w, i);
    let q8 = weight4(cc.x, i); let q9 = weight4(cc.y, i); let q10 = weight4(cc.z, i); let q11 = weight4(cc.w, i);
    let q12 = weight4(cd.x, i); let q13 = weight4(cd.y, i); let q14 = weight4(cd.z, i); let q15 = weight4(cd.w, i);
    let p0 = x[r0 * k4 + i];
    a0 += dots(p0, q0, q1, q2, q3); b0 += dots(p0, q4, q5, q6, q7);
    c0 += dots(p0, q8, q9, q10, q11); d0 += dots(p0, q12, q13, q14, q15);
    let p1 = x[r1 * k4 + i];
    a1 += dots(p1, q0, q1, q2, q3); b1 += dots(p1, q4, q5, q6, q7);
    c1 += dots(p1, q8, q9, q10, q11); d1 += dots(p1, q12, q13, q14, q15);
    let p2 = x[r2 * k4 + i];
    a2 += dots(p2, q0, q1, q2, q3); b2 += dots(p2, q4, q5, q6, q7);
    c2 += dots(p2, q8, q9, q10, q11); d2 += dots(p2, q12, q13, q14, q15);
    let p3 = x[r3 * k4 + i];
    a3 += dots(p3, q0, q1, q2, q3); b3 += dots(p3, q4, q5, q6, q7);
    c3 += dots(p3, q8, q9, q10, q11); d3 += dots(p3, q12, q13, q14, q15);
    let p4 = x[r4 * k4 + i];
    a4 += dots(p4, q0, q1, q2, q3); b4 += dots(p4, q4, q5, q6, q7);
    c4 += dots(p4, q8, q9, q10, q11); d4 += dots(p4, q12, q13, q14, q15);
    let p5 = x[r5 * k4 + i];
    a5 += dots(p5, q0, q1, q2, q3); b5 += dots(p5, q4, q5, q6, q7);
    c5 += dots(p5, q8, q9, q10, q11); d5 += dots(p5, q12, q13, q14, q15);
    let p6 = x[r6 * k4 + i];
    a6 += dots(p6, q0, q1, q2, q3); b6 += dots(p6, q4, q5, q6, q7);
    c6 += dots(p6, q8, q9, q10, q11); d6 += dots(p6, q12, q13, q14, q15);
    let p7 = x[r7 * k4 + i];
    a7 += dots(p7, q0, q1, q2, q3); b7 += dots(p7, q4, q5, q6, q7);
    c7 += dots(p7, q8, q9, q10, q11); d7 += dots(p7, q12, q13, q14, q15);
    let p8 = x[r8 * k4 + i];
    a8 += dots(p8, q0, q1, q2, q3); b8 += dots(p8, q4, q5, q6, q7);
    c8 += dots(p8, q8, q9, q10, q11); d8 += dots(p8, q12, q13, q14, q15);
    let p9 = x[r9 * k4 + i];
    a9 += dots(p9, q0, q1, q2, q3); b9 += dots(p9, q4, q5, q6, q7);
    c9 += dots(p9, q8, q9, q10, q11); d9 += dots(p9, q12, q13, q14, q15);
    let p10 = x[r10 * k4 + i];
    a10 += dots(p10, q0, q1, q2, q3); b10 += dots(p10, q4, q5, q6, q7);
    c10 += dots(p10, q8, q9, q10, q11); d10 += dots(p10, q12, q13, q14, q15);
    let p11 = x[r11 * k4 + i];
    a11 += dots(p11, q0, q1, q2, q3); b11 += dots(p11, q4, q5, q6, q7);
    c11 += dots(p11, q8, q9, q10, q11); d11 += dots(p11, q12, q13, q14, q15);
    let p12 = x[r12 * k4 + i];
    a12 += dots(p12, q0, q1, q2, q3); b12 += dots(p12, q4, q5, q6, q7);
    c12 += dots(p12, q8, q9, q10, q11); d12 += dots(p12, q12, q13, q14, q15);
    let p13 = x[r13 * k4 + i];
    a13 += dots(p13, q0, q1, q2, q3); b13 += dots(p13, q4, q5, q6, q7);
    c13 += dots(p13, q8, q9, q10, q11); d13 += dots(p13, q12, q13, q14, q15);
    let p14 = x[r14 * k4 + i];
    a14 += dots(p14, q0, q1, q2, q3); b14 += dots(p14, q4, q5, q6, q7);
    c14 += dots(p14, q8, q9, q10, q11); d14 += dots(p14, q12, q13, q14, q15);
    let p15 = x[r15 * k4 + i];
    a15 += dots(p15, q0, q1, q2, q3); b15 += dots(p15, q4, q5, q6, q7);
    c15 += dots(p15, q8, q9, q10, q11); d15 += dots(p15, q12, q13, q14, q15);
    let p16 = x[r16 * k4 + i];
    a16 += dots(p16, q0, q1, q2, q3); b16 += dots(p16, q4, q5, q6, q7);
    c16 += dots(p16, q8, q9, q10, q11); d16 += dots(p16, q12, q13, q14, q15);
    let p17 = x[r17 * k4 + i];
    a17 += dots(p17, q0, q1, q2, q3); b17 += dots(p17, q4, q5, q6, q7);
    c17 += dots(p17, q8, q9, q10, q11); d17 += dots(p17, q12, q13, q14, q15);
    let p18 = x[r18 * k4 + i];
    a18 += dots(p18, q0, q1, q2, q3); b18 += dots(p18, q4, q5, q6, q7);
    c18 += dots(p18, q8, q9, q10, q11); d18 += dots(p18, q12, q13, q14, q15);
    let p19 = x[r19 * k4 + i];
    a19 += dots(p19, q0, q1, q2, q3); b19 += dots(p19, q4, q5, q6, q7);
    c19 += dots(p19, q8, q9, q10, q11); d19 += dots(p19, q12, q13, q14, q15);
    let p20 = x[r20 * k4 + i];
    a20 += dots(p20, q0, q1, q2, q3); b20 += dots(p20, q4, q5, q6, q7);
    c20 += dots(p20, q8, q9, q10, q11); d20 += dots(p20, q12, q13, q14, q15);
    let p21 = x[r21 * k4 + i];
    a21 += dots(p21, q0, q1, q2, q3); b21 += dots(p21, q4, q5, q6, q7);
    c21 += dots(p21, q8, q9, q10, q11); d21 += dots(p21, q12, q13, q14, q15);
    let p22 = x[r22 * k4 + i];
    a22 += dots(p22, q0, q1, q2, q3); b22 += dots(p22, q4, q5, q6, q7);
    c22 += dots(p22, q8, q9, q10, q11); d22 += dots(p22, q12, q13, q14, q15);
    let p23 = x[r23 * k4 + i];
    a23 += dots(p23, q0, q1, q2, q3); b23 += dots(p23, q4, q5, q6, q7);
    c23 += dots(p23, q8, q9, q10, q11); d23 += dots(p23, q12, q13, q14, q15);
    let p24 = x[r24 * k4 + i];
    a24 += dots(p24, q0, q1, q2, q3); b24 += dots(p24, q4, q5, q6, q7);
    c24 += dots(p24, q8, q9, q10, q11); d24 += dots(p24, q12, q13, q14, q15);
    let p25 = x[r25 * k4 + i];
    a25 += dots(p25, q0, q1, q2, q3); b25 += dots(p25, q4, q5, q6, q7);
    c25 += dots(p25, q8, q9, q10, q11); d25 += dots(p25, q12, q13, q14, q15);
    let p26 = x[r26 * k4 + i];
    a26 += dots(p26, q0, q1, q2, q3); b26 += dots(p26, q4, q5, q6, q7);
    c26 += dots(p26, q8, q9, q10, q11); d26 += dots(p26, q12, q13, q14, q15);
    let p27 = x[r27 * k4 + i];
    a27 += dots(p27, q0, q1, q2, q3); b27 += dots(p27, q4, q5, q6, q7);
    c27 += dots(p27, q8, q9, q10, q11); d27 += dots(p27, q12, q13, q14, q15);
    let p28 = x[r28 * k4 + i];
    a28 += dots(p28, q0, q1, q2, q3); b28 += dots(p28, q4, q5, q6, q7);
    c28 += dots(p28, q8, q9, q10, q11); d28 += dots(p28, q12, q13, q14, q15);
    let p29 = x[r29 * k4 + i];
    a29 += dots(p29, q0, q1, q2, q3); b29 += dots(p29, q4, q5, q6, q7);
    c29 += dots(p29, q8, q9, q10, q11); d29 += dots(p29, q12, q13, q14, q15);
    let p30 = x[r30 * k4 + i];
    a30 += dots(p30, q0, q1, q2, q3); b30 += dots(p30, q4, q5, q6, q7);
    c30 += dots(p30, q8, q9, q10, q11); d30 += dots(p30, q12, q13, q14, q15);
    let p31 = x[r31 * k4 + i];
    a31 += dots(p31, q0, q1, q2, q3); b31 += dots(p31, q4, q5, q6, q7);
    c31 += dots(p31, q8, q9, q10, q11); d31 += dots(p31, q12, q13, q14, q15);
  }
  store(r0 * m, ca, a0); store(r0 * m, cb, b0); store(r0 * m, cc, c0); store(r0 * m, cd, d0);
  store(r1 * m, ca, a1); store(r1 * m, cb, b1); store(r1 * m, cc, c1); store(r1 * m, cd, d1);
  store(r2 * m, ca, a2); store(r2 * m, cb, b2); store(r2 * m, cc, c2); store(r2 * m, cd, d2);
  store(r3 * m, ca, a3); store(r3 * m, cb, b3); store(r3 * m, cc, c3); store(r3 * m, cd, d3);
  store(r4 * m, ca, a4); store(r4 * m, cb, b4); store(r4 * m, cc, c4); store(r4 * m, cd, d4);
  store(r5 * m, ca, a5); store(r5 * m, cb, b5); store(r5 * m, cc, c5); store(r5 * m, cd, d5);
  store(r6 * m, ca, a6); store(r6 * m, cb, b6); store(r6 * m, cc, c6); store(r6 * m, cd, d6);
  store(r7 * m, ca, a7); store(r7 * m, cb, b7); store(r7 * m, cc, c7); store(r7 * m, cd, d7);
  store(r8 * m, ca, a8); store(r8 * m, cb, b8); store(r8 * m, cc, c8); store(r8 * m, cd, d8);
  store(r9 * m, ca, a9); store(r9 * m, cb, b9); store(r9 * m, cc, c9); store(r9 * m, cd, d9);
  store(r10 * m, ca, a10); store(r10 * m, cb, b10); store(r10 * m, cc, c10); store(r10 * m, cd, d10);
  store(r11 * m, ca, a11); store(r11 * m, cb, b11); store(r11 * m, cc, c11); store(r11 * m, cd, d11);
  store(r12 * m, ca, a12); store(r12 * m, cb, b12); store(r12 * m, cc, c12); store(r12 * m, cd, d12);
  store(r13 * m, ca, a13); store(r13 * m, cb, b13); store(r13 * m, cc, c13); store(r13 * m, cd, d13);
  store(r14 * m, ca, a14); store(r14 * m, cb, b14); store(r14 * m, cc, c14); store(r14 * m, cd, d14);
  store(r15 * m, ca, a15); store(r15 * m, cb, b15); store(r15 * m, cc, c15); store(r15 * m, cd, d15);
  store(r16 * m, ca, a16); store(r16 * m, cb, b16); store(r16 * m, cc, c16); store(r16 * m, cd, d16);
  store(r17 * m, ca, a17); store(r17 * m, cb, b17); store(r17 * m, cc, c17); store(r17 * m, cd, d17);
  store(r18 * m, ca, a18); store(r18 * m, cb, b18); store(r18 * m, cc, c18); store(r18 * m, cd, d18);
  store(r19 * m, ca, a19); store(r19 * m, cb, b19); store(r19 * m, cc, c19); store(r19 * m, cd, d19);
  store(r20 * m, ca, a20); store(r20 * m, cb, b20); store(r20 * m, cc, c20); store(r20 * m, cd, d20);
  store(r21 * m, ca, a21); store(r21 * m, cb, b21); store(r21 * m, cc, c21); store(r21 * m, cd, d21);
  store(r22 * m, ca, a22); store(r22 * m, cb, b22); store(r22 * m, cc, c22); store(r22 * m, cd, d22);
  store(r23 * m, ca, a23); store(r23 * m, cb, b23); store(r23 * m, cc, c23); store(r23 * m, cd, d23);
  store(r24 * m, ca, a24); store(r24 * m, cb, b24); store(r24 * m, cc, c24); store(r24 * m, cd, d24);
  store(r25 * m, ca, a25); store(r25 * m, cb, b25); store(r25 * m, cc, c25); store(r25 * m, cd, d25);
  store(r26 * m, ca, a26); store(r26 * m, cb, b26); store(r26 * m, cc, c26); store(r26 * m, cd, d26);
  store(r27 * m, ca, a27); store(r27 * m, cb, b27); store(r27 * m, cc, c27); store(r27 * m, cd, d27);
  store(r28 * m, ca, a28); store(r28 * m, cb, b28); store(r28 * m, cc, c28); store(r28 * m, cd, d28);
  store(r29 * m, ca, a29); store(r29 * m, cb, b29); store(r29 * m, cc, c29); store(r29 * m, cd, d29);
  store(r30 * m, ca, a30); store(r30 * m, cb, b30); store(r30 * m, cc, c30); store(r30 * m, cd, d30);
  store(r31 * m, ca, a31); store(r31 * m, cb, b31); store(r31 * m, cc, c31); store(r31 * m, cd, d31);
}
