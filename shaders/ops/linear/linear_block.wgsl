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

// Where four sums are stored. Past the edge the last row or column is computed again: the same sums, in the same place.
fn places(row: u32, column: u32, n: u32, m: u32) -> vec4<u32> {
  let columns = vec4<u32>(column) + vec4<u32>(0u, 1u, 2u, 3u);
  return (params.first + min(row, n - 1u)) * params.width + params.column + min(columns, vec4<u32>(m - 1u));
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
  var sums: array<vec4<f32>, 128>;
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
  sums[64] = a16; sums[65] = b16; sums[66] = c16; sums[67] = d16;
  sums[68] = a17; sums[69] = b17; sums[70] = c17; sums[71] = d17;
  sums[72] = a18; sums[73] = b18; sums[74] = c18; sums[75] = d18;
  sums[76] = a19; sums[77] = b19; sums[78] = c19; sums[79] = d19;
  sums[80] = a20; sums[81] = b20; sums[82] = c20; sums[83] = d20;
  sums[84] = a21; sums[85] = b21; sums[86] = c21; sums[87] = d21;
  sums[88] = a22; sums[89] = b22; sums[90] = c22; sums[91] = d22;
  sums[92] = a23; sums[93] = b23; sums[94] = c23; sums[95] = d23;
  sums[96] = a24; sums[97] = b24; sums[98] = c24; sums[99] = d24;
  sums[100] = a25; sums[101] = b25; sums[102] = c25; sums[103] = d25;
  sums[104] = a26; sums[105] = b26; sums[106] = c26; sums[107] = d26;
  sums[108] = a27; sums[109] = b27; sums[110] = c27; sums[111] = d27;
  sums[112] = a28; sums[113] = b28; sums[114] = c28; sums[115] = d28;
  sums[116] = a29; sums[117] = b29; sums[118] = c29; sums[119] = d29;
  sums[120] = a30; sums[121] = b30; sums[122] = c30; sums[123] = d30;
  sums[124] = a31; sums[125] = b31; sums[126] = c31; sums[127] = d31;
  // All that is added to is read before anything is stored, since sums of an edge share a place.
  if (params.add == 1u) {
    for (var sum = 0u; sum < 128u; sum++) {
      let at = places(row + sum / 4u, column + sum % 4u * 4u, n, m);
      sums[sum] += vec4<f32>(y[at.x], y[at.y], y[at.z], y[at.w]);
    }
  }
  for (var sum = 0u; sum < 128u; sum++) {
    let at = places(row + sum / 4u, column + sum % 4u * 4u, n, m);
    y[at.x] = sums[sum].x; y[at.y] = sums[sum].y; y[at.z] = sums[sum].z; y[at.w] = sums[sum].w;
  }
}
