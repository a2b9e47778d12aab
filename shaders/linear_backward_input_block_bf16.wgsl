// dx = dy W for many rows: dx[r, i] = Σ_c dy[r, c] w[c, i]. dy [n, m] f32, w [m, k] bf16, two per word, widened in registers,
// dx [n, k]; m = 4 m4, k = 4 k4. One thread: 16 rows by 8 columns of dx, sums in registers, no barriers.
// Twin: kernels/linear/kernels.rs
// Long sums are cut: slice s of dy's columns gives the partial sum dx[s], dx [S, n, k], and column_sum adds them up.
struct Params {
  n: u32,
  m4: u32,
  k4: u32,
  slice4: u32,
}

@group(0) @binding(0) var<storage, read_write> dy: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> w: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> dx: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> params: Params;

fn widen(words: vec2<u32>) -> vec4<f32> {
  return vec4<f32>(bf16_low(words.x), bf16_high(words.x), bf16_low(words.y), bf16_high(words.y));
}

fn store(row: u32, column: u32, low: vec4<f32>, high: vec4<f32>, above: u32) {
  let k4 = params.k4;
  if (row < params.n) {
    dx[(above + row) * k4 + column] = low;
    if (column + 1u < k4) {
      dx[(above + row) * k4 + column + 1u] = high;
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
  let blocks = (n + 15u) / 16u * columns;
  let above = block / blocks * n;
  let row = block % blocks / columns * 16u;
  let column = block % columns * 2u;
  let start = block / blocks * params.slice4;
  if (start >= m4) {
    return;
  }
  let end = min(start + params.slice4, m4);
  // Past the edge the last row or column is read again; its sums are not stored.
  let next = min(column + 1u, k4 - 1u);
  let d0 = min(row + 0u, n - 1u) * m4;
  let d1 = min(row + 1u, n - 1u) * m4;
  let d2 = min(row + 2u, n - 1u) * m4;
  let d3 = min(row + 3u, n - 1u) * m4;
  let d4 = min(row + 4u, n - 1u) * m4;
  let d5 = min(row + 5u, n - 1u) * m4;
  let d6 = min(row + 6u, n - 1u) * m4;
  let d7 = min(row + 7u, n - 1u) * m4;
  let d8 = min(row + 8u, n - 1u) * m4;
  let d9 = min(row + 9u, n - 1u) * m4;
  let d10 = min(row + 10u, n - 1u) * m4;
  let d11 = min(row + 11u, n - 1u) * m4;
  let d12 = min(row + 12u, n - 1u) * m4;
  let d13 = min(row + 13u, n - 1u) * m4;
  let d14 = min(row + 14u, n - 1u) * m4;
  let d15 = min(row + 15u, n - 1u) * m4;
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
  for (var c = start; c < end; c++) {
    let p0 = dy[d0 + c];
    let p1 = dy[d1 + c];
    let p2 = dy[d2 + c];
    let p3 = dy[d3 + c];
    let p4 = dy[d4 + c];
    let p5 = dy[d5 + c];
    let p6 = dy[d6 + c];
    let p7 = dy[d7 + c];
    let p8 = dy[d8 + c];
    let p9 = dy[d9 + c];
    let p10 = dy[d10 + c];
    let p11 = dy[d11 + c];
    let p12 = dy[d12 + c];
    let p13 = dy[d13 + c];
    let p14 = dy[d14 + c];
    let p15 = dy[d15 + c];
    for (var t = 0u; t < 4u; t++) {
      let at = (4u * c + t) * k4;
      let q = widen(w[at + column]);
      let z = widen(w[at + next]);
      a0 += p0[t] * q; b0 += p0[t] * z;
      a1 += p1[t] * q; b1 += p1[t] * z;
      a2 += p2[t] * q; b2 += p2[t] * z;
      a3 += p3[t] * q; b3 += p3[t] * z;
      a4 += p4[t] * q; b4 += p4[t] * z;
      a5 += p5[t] * q; b5 += p5[t] * z;
      a6 += p6[t] * q; b6 += p6[t] * z;
      a7 += p7[t] * q; b7 += p7[t] * z;
      a8 += p8[t] * q; b8 += p8[t] * z;
      a9 += p9[t] * q; b9 += p9[t] * z;
      a10 += p10[t] * q; b10 += p10[t] * z;
      a11 += p11[t] * q; b11 += p11[t] * z;
      a12 += p12[t] * q; b12 += p12[t] * z;
      a13 += p13[t] * q; b13 += p13[t] * z;
      a14 += p14[t] * q; b14 += p14[t] * z;
      a15 += p15[t] * q; b15 += p15[t] * z;
    }
  }
  store(row + 0u, column, a0, b0, above);
  store(row + 1u, column, a1, b1, above);
  store(row + 2u, column, a2, b2, above);
  store(row + 3u, column, a3, b3, above);
  store(row + 4u, column, a4, b4, above);
  store(row + 5u, column, a5, b5, above);
  store(row + 6u, column, a6, b6, above);
  store(row + 7u, column, a7, b7, above);
  store(row + 8u, column, a8, b8, above);
  store(row + 9u, column, a9, b9, above);
  store(row + 10u, column, a10, b10, above);
  store(row + 11u, column, a11, b11, above);
  store(row + 12u, column, a12, b12, above);
  store(row + 13u, column, a13, b13, above);
  store(row + 14u, column, a14, b14, above);
  store(row + 15u, column, a15, b15, above);
}
