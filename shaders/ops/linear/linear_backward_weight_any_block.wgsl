// Made by shaders/blocks.mjs
// dW (+)= dyᵀ x for any shape: dw[c, i] = Σ_r dy[r, c] x[r, i], added to the values in dw if add is 1. dy [n, m],
// x [n, k], dw [m, k]. One thread: 16 rows by 8 columns of dW. Twin: ops/linear/kernels.rs
struct Params {
  n: u32,
  m: u32,
  k: u32,
  add: u32,
}

@group(0) @binding(0) var<storage, read_write> dy: array<f32>;
@group(0) @binding(1) var<storage, read_write> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> dw: array<f32>;
@group(0) @binding(3) var<storage, read_write> params: Params;

fn put(at: u32, sum: f32) {
  dw[at] = select(0.0, dw[at], params.add == 1u) + sum;
}

fn store(row: u32, column: u32, low: vec4<f32>, high: vec4<f32>) {
  let width = params.k;
  if (row >= params.m) {
    return;
  }
  for (var c = 0u; c < 4u; c++) {
    if (column + c < width) {
      put(row * width + column + c, low[c]);
    }
    if (column + 4u + c < width) {
      put(row * width + column + 4u + c, high[c]);
    }
  }
}

@compute @workgroup_size(32)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let n = params.n; let m = params.m; let k = params.k;
  let columns = (k + 7u) / 8u;
  let block = grid_index(group, groups, lane, 32u);
  let row = block / columns * 16u;
  let column = block % columns * 8u;
  if (row >= m) {
    return;
  }
  // Past the edge the last row or column is read again; its sums are not stored.
  let r0 = min(row + 0u, m - 1u); let r1 = min(row + 1u, m - 1u);
  let r2 = min(row + 2u, m - 1u); let r3 = min(row + 3u, m - 1u);
  let r4 = min(row + 4u, m - 1u); let r5 = min(row + 5u, m - 1u);
  let r6 = min(row + 6u, m - 1u); let r7 = min(row + 7u, m - 1u);
  let r8 = min(row + 8u, m - 1u); let r9 = min(row + 9u, m - 1u);
  let r10 = min(row + 10u, m - 1u); let r11 = min(row + 11u, m - 1u);
  let r12 = min(row + 12u, m - 1u); let r13 = min(row + 13u, m - 1u);
  let r14 = min(row + 14u, m - 1u); let r15 = min(row + 15u, m - 1u);
  let first = min(vec4<u32>(column) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(k - 1u));
  let second = min(vec4<u32>(column) + vec4<u32>(4u, 5u, 6u, 7u), vec4<u32>(k - 1u));
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
  for (var i = 0u; i < n; i++) {
    let q = vec4<f32>(x[i * k + first.x], x[i * k + first.y], x[i * k + first.z], x[i * k + first.w]);
    let z = vec4<f32>(x[i * k + second.x], x[i * k + second.y], x[i * k + second.z], x[i * k + second.w]);
    let p0 = dy[i * m + r0]; a0 += p0 * q; b0 += p0 * z;
    let p1 = dy[i * m + r1]; a1 += p1 * q; b1 += p1 * z;
    let p2 = dy[i * m + r2]; a2 += p2 * q; b2 += p2 * z;
    let p3 = dy[i * m + r3]; a3 += p3 * q; b3 += p3 * z;
    let p4 = dy[i * m + r4]; a4 += p4 * q; b4 += p4 * z;
    let p5 = dy[i * m + r5]; a5 += p5 * q; b5 += p5 * z;
    let p6 = dy[i * m + r6]; a6 += p6 * q; b6 += p6 * z;
    let p7 = dy[i * m + r7]; a7 += p7 * q; b7 += p7 * z;
    let p8 = dy[i * m + r8]; a8 += p8 * q; b8 += p8 * z;
    let p9 = dy[i * m + r9]; a9 += p9 * q; b9 += p9 * z;
    let p10 = dy[i * m + r10]; a10 += p10 * q; b10 += p10 * z;
    let p11 = dy[i * m + r11]; a11 += p11 * q; b11 += p11 * z;
    let p12 = dy[i * m + r12]; a12 += p12 * q; b12 += p12 * z;
    let p13 = dy[i * m + r13]; a13 += p13 * q; b13 += p13 * z;
    let p14 = dy[i * m + r14]; a14 += p14 * q; b14 += p14 * z;
    let p15 = dy[i * m + r15]; a15 += p15 * q; b15 += p15 * z;
  }
  store(row + 0u, column, a0, b0); store(row + 1u, column, a1, b1);
  store(row + 2u, column, a2, b2); store(row + 3u, column, a3, b3);
  store(row + 4u, column, a4, b4); store(row + 5u, column, a5, b5);
  store(row + 6u, column, a6, b6); store(row + 7u, column, a7, b7);
  store(row + 8u, column, a8, b8); store(row + 9u, column, a9, b9);
  store(row + 10u, column, a10, b10); store(row + 11u, column, a11, b11);
  store(row + 12u, column, a12, b12); store(row + 13u, column, a13, b13);
  store(row + 14u, column, a14, b14); store(row + 15u, column, a15, b15);
}
