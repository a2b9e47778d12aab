// dW (+)= dyᵀ x: dw[c, i] = Σ_r dy[r, c] x[r, i], added to the values in dw if add is 1. dy [n, m], x [n, k], dw [m,
// k]; m = 4 m4, k = 4 k4. One thread: 4 rows by 4 columns of dW, sums in registers, no barriers.
// Twin: ops/linear/kernels.rs
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

fn begin(at: u32) -> vec4<f32> {
  return select(vec4<f32>(), dw[at], params.add == 1u);
}

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let n = params.n;
  let m4 = params.m4;
  let k4 = params.k4;
  let block = grid_index(group, groups, lane, 64u);
  let row = block / k4;
  let column = block % k4;
  if (row >= m4) {
    return;
  }
  let out = row * 4u * k4 + column;
  var a0 = begin(out);
  var a1 = begin(out + k4);
  var a2 = begin(out + 2u * k4);
  var a3 = begin(out + 3u * k4);
  var d = row;
  var at = column;
  for (var r = 0u; r < n; r++) {
    let p = dy[d];
    let q = x[at];
    a0 += p.x * q;
    a1 += p.y * q;
    a2 += p.z * q;
    a3 += p.w * q;
    d += m4;
    at += k4;
  }
  dw[out] = a0;
  dw[out + k4] = a1;
  dw[out + 2u * k4] = a2;
  dw[out + 3u * k4] = a3;
}
