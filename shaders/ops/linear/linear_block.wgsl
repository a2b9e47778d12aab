// Made by shaders/blocks.mjs
// y (+)= x Wᵀ for many rows: y[first + r, column + c] = Σ_i x[r, 4 first4 + i] w[c, i], added to the values in y if
// add is 1. x [n, 4 stride4] f32, w [m, 4 k4], y with rows of width. One thread: 32 rows by 16 columns of y, no
// barriers: each loaded number serves 16 or 32 products, and loads are slow on software adapters.
// Twin: ops/linear/kernels.rs
struct Params {
  n: u32,
  m: u32,
  k4: u32,
  stride4: u32,
  first4: u32,
  first: u32,
  width: u32,
  column: u32,
  add: u32,
  // Where the second plane of w begins.
  plane: u32,
}

@group(0) @binding(1) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<storage, read_write> params: Params;

fn dots(p: vec4<f32>, a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>) -> vec4<f32> {
  return vec4<f32>(dot(p, a), dot(p, b), dot(p, c), dot(p, d));
}

// Stores four sums of a row, added to what is there if add is 1; nothing past the edge.
fn put(row: u32, column: u32, sums: vec4<f32>) {
  if (row >= params.n) {
    return;
  }
  let at = (params.first + row) * params.width + params.column + column;
  let add = params.add == 1u;
  if (column < params.m) {
    y[at] = select(sums.x, sums.x + y[at], add);
  }
  if (column + 1u < params.m) {
    y[at + 1u] = select(sums.y, sums.y + y[at + 1u], add);
  }
  if (column + 2u < params.m) {
    y[at + 2u] = select(sums.z, sums.z + y[at + 2u], add);
  }
  if (column + 3u < params.m) {
    y[at + 3u] = select(sums.w, sums.w + y[at + 3u], add);
  }
}

@compute @workgroup_size(8)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let n = params.n; let m = params.m; let stride4 = params.stride4; let first4 = params.first4;
  let columns = (m + 15u) / 16u;
  let block = grid_index(group, groups, lane, 8u);
  let row = block / columns * 32u;
  let column = block % columns * 16u;
  if (row >= n) {
    return;
  }
  // Rows and columns are clamped where they are used: the compiler of a software adapter takes long for variables that
  // a loop keeps alive.
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
  for (var i = 0u; i < params.k4; i++) {
    let q0 = weight4(min(column, m - 1u), i); let q1 = weight4(min(column + 1u, m - 1u), i);
    let q2 = weight4(min(column + 2u, m - 1u), i); let q3 = weight4(min(column + 3u, m - 1u), i);
    let q4 = weight4(min(column + 4u, m - 1u), i); let q5 = weight4(min(column + 5u, m - 1u), i);
    let q6 = weight4(min(column + 6u, m - 1u), i); let q7 = weight4(min(column + 7u, m - 1u), i);
    let q8 = weight4(min(column + 8u, m - 1u), i); let q9 = weight4(min(column + 9u, m - 1u), i);
    let q10 = weight4(min(column + 10u, m - 1u), i); let q11 = weight4(min(column + 11u, m - 1u), i);
    let q12 = weight4(min(column + 12u, m - 1u), i); let q13 = weight4(min(column + 13u, m - 1u), i);
    let q14 = weight4(min(column + 14u, m - 1u), i); let q15 = weight4(min(column + 15u, m - 1u), i);
    let p0 = x[min(row, n - 1u) * stride4 + first4 + i];
    a0 += dots(p0, q0, q1, q2, q3); b0 += dots(p0, q4, q5, q6, q7);
    c0 += dots(p0, q8, q9, q10, q11); d0 += dots(p0, q12, q13, q14, q15);
    let p1 = x[min(row + 1u, n - 1u) * stride4 + first4 + i];
    a1 += dots(p1, q0, q1, q2, q3); b1 += dots(p1, q4, q5, q6, q7);
    c1 += dots(p1, q8, q9, q10, q11); d1 += dots(p1, q12, q13, q14, q15);
    let p2 = x[min(row + 2u, n - 1u) * stride4 + first4 + i];
    a2 += dots(p2, q0, q1, q2, q3); b2 += dots(p2, q4, q5, q6, q7);
    c2 += dots(p2, q8, q9, q10, q11); d2 += dots(p2, q12, q13, q14, q15);
    let p3 = x[min(row + 3u, n - 1u) * stride4 + first4 + i];
    a3 += dots(p3, q0, q1, q2, q3); b3 += dots(p3, q4, q5, q6, q7);
    c3 += dots(p3, q8, q9, q10, q11); d3 += dots(p3, q12, q13, q14, q15);
    let p4 = x[min(row + 4u, n - 1u) * stride4 + first4 + i];
    a4 += dots(p4, q0, q1, q2, q3); b4 += dots(p4, q4, q5, q6, q7);
    c4 += dots(p4, q8, q9, q10, q11); d4 += dots(p4, q12, q13, q14, q15);
    let p5 = x[min(row + 5u, n - 1u) * stride4 + first4 + i];
    a5 += dots(p5, q0, q1, q2, q3); b5 += dots(p5, q4, q5, q6, q7);
    c5 += dots(p5, q8, q9, q10, q11); d5 += dots(p5, q12, q13, q14, q15);
    let p6 = x[min(row + 6u, n - 1u) * stride4 + first4 + i];
    a6 += dots(p6, q0, q1, q2, q3); b6 += dots(p6, q4, q5, q6, q7);
    c6 += dots(p6, q8, q9, q10, q11); d6 += dots(p6, q12, q13, q14, q15);
    let p7 = x[min(row + 7u, n - 1u) * stride4 + first4 + i];
    a7 += dots(p7, q0, q1, q2, q3); b7 += dots(p7, q4, q5, q6, q7);
    c7 += dots(p7, q8, q9, q10, q11); d7 += dots(p7, q12, q13, q14, q15);
    let p8 = x[min(row + 8u, n - 1u) * stride4 + first4 + i];
    a8 += dots(p8, q0, q1, q2, q3); b8 += dots(p8, q4, q5, q6, q7);
    c8 += dots(p8, q8, q9, q10, q11); d8 += dots(p8, q12, q13, q14, q15);
    let p9 = x[min(row + 9u, n - 1u) * stride4 + first4 + i];
    a9 += dots(p9, q0, q1, q2, q3); b9 += dots(p9, q4, q5, q6, q7);
    c9 += dots(p9, q8, q9, q10, q11); d9 += dots(p9, q12, q13, q14, q15);
    let p10 = x[min(row + 10u, n - 1u) * stride4 + first4 + i];
    a10 += dots(p10, q0, q1, q2, q3); b10 += dots(p10, q4, q5, q6, q7);
    c10 += dots(p10, q8, q9, q10, q11); d10 += dots(p10, q12, q13, q14, q15);
    let p11 = x[min(row + 11u, n - 1u) * stride4 + first4 + i];
    a11 += dots(p11, q0, q1, q2, q3); b11 += dots(p11, q4, q5, q6, q7);
    c11 += dots(p11, q8, q9, q10, q11); d11 += dots(p11, q12, q13, q14, q15);
    let p12 = x[min(row + 12u, n - 1u) * stride4 + first4 + i];
    a12 += dots(p12, q0, q1, q2, q3); b12 += dots(p12, q4, q5, q6, q7);
    c12 += dots(p12, q8, q9, q10, q11); d12 += dots(p12, q12, q13, q14, q15);
    let p13 = x[min(row + 13u, n - 1u) * stride4 + first4 + i];
    a13 += dots(p13, q0, q1, q2, q3); b13 += dots(p13, q4, q5, q6, q7);
    c13 += dots(p13, q8, q9, q10, q11); d13 += dots(p13, q12, q13, q14, q15);
    let p14 = x[min(row + 14u, n - 1u) * stride4 + first4 + i];
    a14 += dots(p14, q0, q1, q2, q3); b14 += dots(p14, q4, q5, q6, q7);
    c14 += dots(p14, q8, q9, q10, q11); d14 += dots(p14, q12, q13, q14, q15);
    let p15 = x[min(row + 15u, n - 1u) * stride4 + first4 + i];
    a15 += dots(p15, q0, q1, q2, q3); b15 += dots(p15, q4, q5, q6, q7);
    c15 += dots(p15, q8, q9, q10, q11); d15 += dots(p15, q12, q13, q14, q15);
    let p16 = x[min(row + 16u, n - 1u) * stride4 + first4 + i];
    a16 += dots(p16, q0, q1, q2, q3); b16 += dots(p16, q4, q5, q6, q7);
    c16 += dots(p16, q8, q9, q10, q11); d16 += dots(p16, q12, q13, q14, q15);
    let p17 = x[min(row + 17u, n - 1u) * stride4 + first4 + i];
    a17 += dots(p17, q0, q1, q2, q3); b17 += dots(p17, q4, q5, q6, q7);
    c17 += dots(p17, q8, q9, q10, q11); d17 += dots(p17, q12, q13, q14, q15);
    let p18 = x[min(row + 18u, n - 1u) * stride4 + first4 + i];
    a18 += dots(p18, q0, q1, q2, q3); b18 += dots(p18, q4, q5, q6, q7);
    c18 += dots(p18, q8, q9, q10, q11); d18 += dots(p18, q12, q13, q14, q15);
    let p19 = x[min(row + 19u, n - 1u) * stride4 + first4 + i];
    a19 += dots(p19, q0, q1, q2, q3); b19 += dots(p19, q4, q5, q6, q7);
    c19 += dots(p19, q8, q9, q10, q11); d19 += dots(p19, q12, q13, q14, q15);
    let p20 = x[min(row + 20u, n - 1u) * stride4 + first4 + i];
    a20 += dots(p20, q0, q1, q2, q3); b20 += dots(p20, q4, q5, q6, q7);
    c20 += dots(p20, q8, q9, q10, q11); d20 += dots(p20, q12, q13, q14, q15);
    let p21 = x[min(row + 21u, n - 1u) * stride4 + first4 + i];
    a21 += dots(p21, q0, q1, q2, q3); b21 += dots(p21, q4, q5, q6, q7);
    c21 += dots(p21, q8, q9, q10, q11); d21 += dots(p21, q12, q13, q14, q15);
    let p22 = x[min(row + 22u, n - 1u) * stride4 + first4 + i];
    a22 += dots(p22, q0, q1, q2, q3); b22 += dots(p22, q4, q5, q6, q7);
    c22 += dots(p22, q8, q9, q10, q11); d22 += dots(p22, q12, q13, q14, q15);
    let p23 = x[min(row + 23u, n - 1u) * stride4 + first4 + i];
    a23 += dots(p23, q0, q1, q2, q3); b23 += dots(p23, q4, q5, q6, q7);
    c23 += dots(p23, q8, q9, q10, q11); d23 += dots(p23, q12, q13, q14, q15);
    let p24 = x[min(row + 24u, n - 1u) * stride4 + first4 + i];
    a24 += dots(p24, q0, q1, q2, q3); b24 += dots(p24, q4, q5, q6, q7);
    c24 += dots(p24, q8, q9, q10, q11); d24 += dots(p24, q12, q13, q14, q15);
    let p25 = x[min(row + 25u, n - 1u) * stride4 + first4 + i];
    a25 += dots(p25, q0, q1, q2, q3); b25 += dots(p25, q4, q5, q6, q7);
    c25 += dots(p25, q8, q9, q10, q11); d25 += dots(p25, q12, q13, q14, q15);
    let p26 = x[min(row + 26u, n - 1u) * stride4 + first4 + i];
    a26 += dots(p26, q0, q1, q2, q3); b26 += dots(p26, q4, q5, q6, q7);
    c26 += dots(p26, q8, q9, q10, q11); d26 += dots(p26, q12, q13, q14, q15);
    let p27 = x[min(row + 27u, n - 1u) * stride4 + first4 + i];
    a27 += dots(p27, q0, q1, q2, q3); b27 += dots(p27, q4, q5, q6, q7);
    c27 += dots(p27, q8, q9, q10, q11); d27 += dots(p27, q12, q13, q14, q15);
    let p28 = x[min(row + 28u, n - 1u) * stride4 + first4 + i];
    a28 += dots(p28, q0, q1, q2, q3); b28 += dots(p28, q4, q5, q6, q7);
    c28 += dots(p28, q8, q9, q10, q11); d28 += dots(p28, q12, q13, q14, q15);
    let p29 = x[min(row + 29u, n - 1u) * stride4 + first4 + i];
    a29 += dots(p29, q0, q1, q2, q3); b29 += dots(p29, q4, q5, q6, q7);
    c29 += dots(p29, q8, q9, q10, q11); d29 += dots(p29, q12, q13, q14, q15);
    let p30 = x[min(row + 30u, n - 1u) * stride4 + first4 + i];
    a30 += dots(p30, q0, q1, q2, q3); b30 += dots(p30, q4, q5, q6, q7);
    c30 += dots(p30, q8, q9, q10, q11); d30 += dots(p30, q12, q13, q14, q15);
    let p31 = x[min(row + 31u, n - 1u) * stride4 + first4 + i];
    a31 += dots(p31, q0, q1, q2, q3); b31 += dots(p31, q4, q5, q6, q7);
    c31 += dots(p31, q8, q9, q10, q11); d31 += dots(p31, q12, q13, q14, q15);
  }
  // The text stores two rows, to which the others move up: a store becomes hundreds of instructions on a software
  // adapter, whose compiler takes long for sums that live across many of them, as for an array that a loop indexes.
  for (var r = 0u; r < 32u; r += 2u) {
    put(row + r, column, a0); put(row + r, column + 4u, b0);
    put(row + r, column + 8u, c0); put(row + r, column + 12u, d0);
    put(row + r + 1u, column, a1); put(row + r + 1u, column + 4u, b1);
    put(row + r + 1u, column + 8u, c1); put(row + r + 1u, column + 12u, d1);
    a0 = a2; b0 = b2; c0 = c2; d0 = d2;
    a1 = a3; b1 = b3; c1 = c3; d1 = d3;
    a2 = a4; b2 = b4; c2 = c4; d2 = d4;
    a3 = a5; b3 = b5; c3 = c5; d3 = d5;
    a4 = a6; b4 = b6; c4 = c6; d4 = d6;
    a5 = a7; b5 = b7; c5 = c7; d5 = d7;
    a6 = a8; b6 = b8; c6 = c8; d6 = d8;
    a7 = a9; b7 = b9; c7 = c9; d7 = d9;
    a8 = a10; b8 = b10; c8 = c10; d8 = d10;
    a9 = a11; b9 = b11; c9 = c11; d9 = d11;
    a10 = a12; b10 = b12; c10 = c12; d10 = d12;
    a11 = a13; b11 = b13; c11 = c13; d11 = d13;
    a12 = a14; b12 = b14; c12 = c14; d12 = d14;
    a13 = a15; b13 = b15; c13 = c15; d13 = d15;
    a14 = a16; b14 = b16; c14 = c16; d14 = d16;
    a15 = a17; b15 = b17; c15 = c17; d15 = d17;
    a16 = a18; b16 = b18; c16 = c18; d16 = d18;
    a17 = a19; b17 = b19; c17 = c19; d17 = d19;
    a18 = a20; b18 = b20; c18 = c20; d18 = d20;
    a19 = a21; b19 = b21; c19 = c21; d19 = d21;
    a20 = a22; b20 = b22; c20 = c22; d20 = d22;
    a21 = a23; b21 = b23; c21 = c23; d21 = d23;
    a22 = a24; b22 = b24; c22 = c24; d22 = d24;
    a23 = a25; b23 = b25; c23 = c25; d23 = d25;
    a24 = a26; b24 = b26; c24 = c26; d24 = d26;
    a25 = a27; b25 = b27; c25 = c27; d25 = d27;
    a26 = a28; b26 = b28; c26 = c28; d26 = d28;
    a27 = a29; b27 = b29; c27 = c29; d27 = d29;
    a28 = a30; b28 = b30; c28 = c30; d28 = d30;
    a29 = a31; b29 = b31; c29 = c31; d29 = d31;
  }
}
