// The entry point of products by tiles: y[r, c] = Σ_i x[r, i] w[c, i], and as many vectors of further products as the
// stem has more(), of more_input(r, i) and more_weight(c, i). x [n, 4 k4], y [n, m]. A workgroup: 64 rows by 64
// columns of y, 16 products of the sum at a time in workgroup memory; a thread: the rows ty + 8 a and the columns tx
// + 8 b. Rows in workgroup memory are 5 vectors apart, so that 8 neighbouring threads read 8 different banks.
var<workgroup> xs: array<vec4<f32>, 320>;
var<workgroup> ws: array<vec4<f32>, 320>;
// Loops with barriers need bounds that are provably uniform.
var<workgroup> steps: u32;

fn dots(p: vec4<f32>, a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>) -> vec4<f32> {
  return vec4<f32>(dot(p, a), dot(p, b), dot(p, c), dot(p, d));
}

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let n = params.n;
  let m = params.m;
  let k4 = params.k4;
  let across = (m + 63u) / 64u;
  let tile = group_index(group, groups);
  let top = tile / across * 64u;
  let left = tile % across * 64u;
  if (lane == 0u) {
    steps = (k4 + more() + 3u) / 4u;
  }
  let rounds = workgroupUniformLoad(&steps);
  let tx = lane % 8u;
  let ty = lane / 8u;
  var sums = array<vec4<f32>, 16>();
  for (var round = 0u; round < rounds; round++) {
    for (var e = 0u; e < 4u; e++) {
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
      let at = tx * 5u + i;
      let q0 = ws[at]; let q1 = ws[at + 40u]; let q2 = ws[at + 80u]; let q3 = ws[at + 120u];
      let q4 = ws[at + 160u]; let q5 = ws[at + 200u]; let q6 = ws[at + 240u]; let q7 = ws[at + 280u];
      for (var a = 0u; a < 8u; a++) {
        let p = xs[(ty + 8u * a) * 5u + i];
        sums[2u * a] += dots(p, q0, q1, q2, q3);
        sums[2u * a + 1u] += dots(p, q4, q5, q6, q7);
      }
    }
    workgroupBarrier();
  }
  for (var a = 0u; a < 8u; a++) {
    let row = top + ty + 8u * a;
    for (var b = 0u; b < 8u; b++) {
      let column = left + tx + 8u * b;
      if (row < n && column < m) {
        y[row * m + column] = sums[2u * a + b / 4u][b % 4u];
      }
    }
  }
}
