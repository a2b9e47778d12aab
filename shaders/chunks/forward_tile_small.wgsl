// Made by shaders/blocks.mjs
// The entry point of products by tiles: y[r, c] = Σ_i x[r, i] w[c, i], c < m, which the stem puts in their place, and
// as many vectors of further products as it has more(), of more_input(r, i) and more_weight(c, i). x [n, 4 k4]. A
// workgroup: 32 rows by 32 columns of y, 16 products of the sum at a time in workgroup memory; a thread: the
// rows ty + 8 a and the columns tx + 8 b. Rows in workgroup memory are 5 vectors apart, so that 8 neighbouring threads
// read 8 different banks.
var<workgroup> xs: array<vec4<f32>, 160>;
var<workgroup> ws: array<vec4<f32>, 160>;
// Loops with barriers need bounds that are provably uniform.
var<workgroup> steps: u32;

// Four values of y from a row's sums on, eight columns apart.
fn store(row: u32, column: u32, sums: vec4<f32>) {
  if (row < params.n && column < params.m) {
    put(row, column, sums.x);
  }
  if (row < params.n && column + 8u < params.m) {
    put(row, column + 8u, sums.y);
  }
  if (row < params.n && column + 16u < params.m) {
    put(row, column + 16u, sums.z);
  }
  if (row < params.n && column + 24u < params.m) {
    put(row, column + 24u, sums.w);
  }
}

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let n = params.n; let m = params.m; let k4 = params.k4;
  let across = (m + 31u) / 32u;
  let tile = group_index(group, groups);
  let top = tile / across * 32u;
  let left = tile % across * 32u;
  if (lane == 0u) {
    steps = (k4 + more() + 3u) / 4u;
  }
  let rounds = workgroupUniformLoad(&steps);
  let tx = lane % 8u;
  let ty = lane / 8u;
  var a0 = vec4<f32>(); var a1 = vec4<f32>();
  var a2 = vec4<f32>(); var a3 = vec4<f32>();
  for (var round = 0u; round < rounds; round++) {
    for (var e = 0u; e < 2u; e++) {
      let row = lane / 4u + 16u * e;
      let i = 4u * round + lane % 4u;
      var p = vec4<f32>();
      var q = vec4<f32>();
      if (i < k4) {
        if (top + row < n) {
          p = x[(top + row) * k4 + i];
        }
        if (left + row < m) {
          q = weight4(left + row, i);
        }
      } else if (i < k4 + more()) {
        if (top + row < n) {
          p = more_input(top + row, i - k4);
        }
        if (left + row < m) {
          q = more_weight(left + row, i - k4);
        }
      }
      xs[row * 5u + lane % 4u] = p;
      ws[row * 5u + lane % 4u] = q;
    }
    workgroupBarrier();
    for (var i = 0u; i < 4u; i++) {
      let q0 = ws[tx * 5u + i]; let q1 = ws[tx * 5u + i + 40u];
      let q2 = ws[tx * 5u + i + 80u]; let q3 = ws[tx * 5u + i + 120u];
      // Element by element of the sum: the columns of the thread.
      let aq0 = vec4<f32>(q0.x, q1.x, q2.x, q3.x);
      let aq1 = vec4<f32>(q0.y, q1.y, q2.y, q3.y);
      let aq2 = vec4<f32>(q0.z, q1.z, q2.z, q3.z);
      let aq3 = vec4<f32>(q0.w, q1.w, q2.w, q3.w);
      var p = xs[ty * 5u + i];
      a0 = fma(vec4<f32>(p.w), aq3, fma(vec4<f32>(p.z), aq2, fma(vec4<f32>(p.y), aq1, fma(vec4<f32>(p.x), aq0, a0))));
      p = xs[ty * 5u + i + 40u];
      a1 = fma(vec4<f32>(p.w), aq3, fma(vec4<f32>(p.z), aq2, fma(vec4<f32>(p.y), aq1, fma(vec4<f32>(p.x), aq0, a1))));
      p = xs[ty * 5u + i + 80u];
      a2 = fma(vec4<f32>(p.w), aq3, fma(vec4<f32>(p.z), aq2, fma(vec4<f32>(p.y), aq1, fma(vec4<f32>(p.x), aq0, a2))));
      p = xs[ty * 5u + i + 120u];
      a3 = fma(vec4<f32>(p.w), aq3, fma(vec4<f32>(p.z), aq2, fma(vec4<f32>(p.y), aq1, fma(vec4<f32>(p.x), aq0, a3))));
    }
    workgroupBarrier();
  }
  store(top + ty, left + tx, a0);
  store(top + ty + 8u, left + tx, a1);
  store(top + ty + 16u, left + tx, a2);
  store(top + ty + 24u, left + tx, a3);
}
