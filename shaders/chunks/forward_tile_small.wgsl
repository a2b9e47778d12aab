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

// Vector i of a row of x, or of what comes behind it.
fn input4(row: u32, i: u32) -> vec4<f32> {
  if (row < params.n && i < params.k4) {
    return x[row * params.k4 + i];
  }
  if (row < params.n && i < params.k4 + more()) {
    return more_input(row, i - params.k4);
  }
  return vec4<f32>();
}

// The same of a row of w.
fn matrix4(row: u32, i: u32) -> vec4<f32> {
  if (row < params.m && i < params.k4) {
    return weight4(row, i);
  }
  if (row < params.m && i < params.k4 + more()) {
    return more_weight(row, i - params.k4);
  }
  return vec4<f32>();
}

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
  let across = (params.m + 31u) / 32u;
  let tile = group_index(group, groups);
  let top = tile / across * 32u;
  let left = tile % across * 32u;
  if (lane == 0u) {
    steps = (params.k4 + more() + 3u) / 4u;
  }
  let rounds = workgroupUniformLoad(&steps);
  let tx = lane % 8u;
  let ty = lane / 8u;
  let row = lane / 4u;
  var i4 = lane % 4u;
  let into = row * 5u + i4;
  var a0 = vec4<f32>(); var a1 = vec4<f32>();
  var a2 = vec4<f32>(); var a3 = vec4<f32>();
  var l0 = input4(top + row, i4);
  var r0 = matrix4(left + row, i4);
  var l1 = input4(top + row + 16u, i4);
  var r1 = matrix4(left + row + 16u, i4);
  for (var round = 0u; round < rounds; round++) {
    xs[into] = l0;
    ws[into] = r0;
    xs[into + 80u] = l1;
    ws[into + 80u] = r1;
    workgroupBarrier();
    i4 += 4u;
    l0 = input4(top + row, i4);
    r0 = matrix4(left + row, i4);
    l1 = input4(top + row + 16u, i4);
    r1 = matrix4(left + row + 16u, i4);
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
