// Made by shaders/blocks.mjs
// dx (+)= dy W for many rows: dx[r, i] = Σ_c dy[r, c] w[c, i], added to the values in dx if add is 1. dy [n, m] f32,
// w [m, k], dx [n, k]; m = 4 m4, k = 4 k4. One thread: 16 rows by 16 columns of dx, no barriers.
// Long sums are cut: slice s of dy's columns gives the partial sum dx[s], dx [S, n, k], and column_sum adds them up.
// Twin: ops/linear/kernels.rs
struct Params {
  n: u32,
  m4: u32,
  k4: u32,
  slice4: u32,
  // Where the second plane of w begins.
  plane: u32,
  add: u32,
}

@group(0) @binding(1) var<storage, read_write> dy: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> dx: array<vec4<f32>>;
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
  let blocks = (n + 15u) / 16u * columns;
  let above = block / blocks * n;
  let row = block % blocks / columns * 16u;
  let column = block % columns * 4u;
  let start = block / blocks * params.slice4;
  if (start >= m4) {
    return;
  }
  let end = min(start + params.slice4, m4);
  // Past the edge the last row or column is computed again, and not stored.
  let next1 = min(column + 1u, k4 - 1u);
  let next2 = min(column + 2u, k4 - 1u);
  let next3 = min(column + 3u, k4 - 1u);
  let r0 = min(row + 0u, n - 1u); let r1 = min(row + 1u, n - 1u);
  let r2 = min(row + 2u, n - 1u); let r3 = min(row + 3u, n - 1u);
  let r4 = min(row + 4u, n - 1u); let r5 = min(row + 5u, n - 1u);
  let r6 = min(row + 6u, n - 1u); let r7 = min(row + 7u, n - 1u);
  let r8 = min(row + 8u, n - 1u); let r9 = min(row + 9u, n - 1u);
  let r10 = min(row + 10u, n - 1u); let r11 = min(row + 11u, n - 1u);
  let r12 = min(row + 12u, n - 1u); let r13 = min(row + 13u, n - 1u);
  let r14 = min(row + 14u, n - 1u); let r15 = min(row + 15u, n - 1u);
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
  for (var c = start; c < end; c++) {
    let e0 = weight4(4u * c, column); let e1 = weight4(4u * c, next1);
    let e2 = weight4(4u * c, next2); let e3 = weight4(4u * c, next3);
    let f0 = weight4(4u * c + 1u, column); let f1 = weight4(4u * c + 1u, next1);
    let f2 = weight4(4u * c + 1u, next2); let f3 = weight4(4u * c + 1u, next3);
    let g0 = weight4(4u * c + 2u, column); let g1 = weight4(4u * c + 2u, next1);
    let g2 = weight4(4u * c + 2u, next2); let g3 = weight4(4u * c + 2u, next3);
    let h0 = weight4(4u * c + 3u, column); let h1 = weight4(4u * c + 3u, next1);
    let h2 = weight4(4u * c + 3u, next2); let h3 = weight4(4u * c + 3u, next3);
    let p0 = dy[r0 * m4 + c];
    a0 += four(p0, e0, f0, g0, h0); b0 += four(p0, e1, f1, g1, h1);
    c0 += four(p0, e2, f2, g2, h2); d0 += four(p0, e3, f3, g3, h3);
    let p1 = dy[r1 * m4 + c];
    a1 += four(p1, e0, f0, g0, h0); b1 += four(p1, e1, f1, g1, h1);
    c1 += four(p1, e2, f2, g2, h2); d1 += four(p1, e3, f3, g3, h3);
    let p2 = dy[r2 * m4 + c];
    a2 += four(p2, e0, f0, g0, h0); b2 += four(p2, e1, f1, g1, h1);
    c2 += four(p2, e2, f2, g2, h2); d2 += four(p2, e3, f3, g3, h3);
    let p3 = dy[r3 * m4 + c];
    a3 += four(p3, e0, f0, g0, h0); b3 += four(p3, e1, f1, g1, h1);
    c3 += four(p3, e2, f2, g2, h2); d3 += four(p3, e3, f3, g3, h3);
    let p4 = dy[r4 * m4 + c];
    a4 += four(p4, e0, f0, g0, h0); b4 += four(p4, e1, f1, g1, h1);
    c4 += four(p4, e2, f2, g2, h2); d4 += four(p4, e3, f3, g3, h3);
    let p5 = dy[r5 * m4 + c];
    a5 += four(p5, e0, f0, g0, h0); b5 += four(p5, e1, f1, g1, h1);
    c5 += four(p5, e2, f2, g2, h2); d5 += four(p5, e3, f3, g3, h3);
    let p6 = dy[r6 * m4 + c];
    a6 += four(p6, e0, f0, g0, h0); b6 += four(p6, e1, f1, g1, h1);
    c6 += four(p6, e2, f2, g2, h2); d6 += four(p6, e3, f3, g3, h3);
    let p7 = dy[r7 * m4 + c];
    a7 += four(p7, e0, f0, g0, h0); b7 += four(p7, e1, f1, g1, h1);
    c7 += four(p7, e2, f2, g2, h2); d7 += four(p7, e3, f3, g3, h3);
    let p8 = dy[r8 * m4 + c];
    a8 += four(p8, e0, f0, g0, h0); b8 += four(p8, e1, f1, g1, h1);
    c8 += four(p8, e2, f2, g2, h2); d8 += four(p8, e3, f3, g3, h3);
    let p9 = dy[r9 * m4 + c];
    a9 += four(p9, e0, f0, g0, h0); b9 += four(p9, e1, f1, g1, h1);
    c9 += four(p9, e2, f2, g2, h2); d9 += four(p9, e3, f3, g3, h3);
    let p10 = dy[r10 * m4 + c];
    a10 += four(p10, e0, f0, g0, h0); b10 += four(p10, e1, f1, g1, h1);
    c10 += four(p10, e2, f2, g2, h2); d10 += four(p10, e3, f3, g3, h3);
    let p11 = dy[r11 * m4 + c];
    a11 += four(p11, e0, f0, g0, h0); b11 += four(p11, e1, f1, g1, h1);
    c11 += four(p11, e2, f2, g2, h2); d11 += four(p11, e3, f3, g3, h3);
    let p12 = dy[r12 * m4 + c];
    a12 += four(p12, e0, f0, g0, h0); b12 += four(p12, e1, f1, g1, h1);
    c12 += four(p12, e2, f2, g2, h2); d12 += four(p12, e3, f3, g3, h3);
    let p13 = dy[r13 * m4 + c];
    a13 += four(p13, e0, f0, g0, h0); b13 += four(p13, e1, f1, g1, h1);
    c13 += four(p13, e2, f2, g2, h2); d13 += four(p13, e3, f3, g3, h3);
    let p14 = dy[r14 * m4 + c];
    a14 += four(p14, e0, f0, g0, h0); b14 += four(p14, e1, f1, g1, h1);
    c14 += four(p14, e2, f2, g2, h2); d14 += four(p14, e3, f3, g3, h3);
    let p15 = dy[r15 * m4 + c];
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
    if (row + r < n && c < k4) {
      let at = (above + row + r) * k4 + c;
      dx[at] = sums[sum] + select(vec4<f32>(), dx[at], params.add == 1u);
    }
  }
}
