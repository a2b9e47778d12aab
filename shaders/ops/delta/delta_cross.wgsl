// Gradient of the logarithm of each decay a_r: the sum of all that it multiplies, from rows before r to rows from r on,
// dg_r = Σ_{s < r ≤ t} (w_ts − v_ts) + Σ_{t ≥ r} before_t + Σ_{s < r} after_s + through, with the shares of pairs, of
// the state before the chunk in its rows, of the rows in the state after it, and of one state in the other. No term is
// there that a_r does not multiply, so that nothing cancels where it is small. w, v [n, M, 64], before, after, dg
// [n, M], through [B, chunks, M]. One thread: one head of a row. Twin: ops/delta/kernels.rs
struct Params {
  n: u32,
  len: u32,
  heads: u32,
}

@group(0) @binding(0) var<storage, read_write> w: array<f32>;
@group(0) @binding(1) var<storage, read_write> v: array<f32>;
@group(0) @binding(2) var<storage, read_write> before: array<f32>;
@group(0) @binding(3) var<storage, read_write> after: array<f32>;
@group(0) @binding(4) var<storage, read_write> through: array<f32>;
@group(0) @binding(5) var<storage, read_write> dg: array<f32>;
@group(0) @binding(6) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  let heads = max(params.heads, 1u);
  if (i >= params.n * heads) {
    return;
  }
  let h = i % heads;
  let r = i / heads % params.len % 64u;
  let base = i / heads - r;
  let rows = min(64u, params.len - base % params.len);
  let chunk = base / params.len * ((params.len + 63u) / 64u) + base % params.len / 64u;
  var sum = through[chunk * heads + h];
  for (var s = 0u; s < r; s++) {
    sum += after[(base + s) * heads + h];
  }
  for (var t = r; t < rows; t++) {
    let at = (base + t) * heads + h;
    var pairs = before[at];
    for (var s = 0u; s < r; s++) {
      pairs += w[at * 64u + s] - v[at * 64u + s];
    }
    sum += pairs;
  }
  dg[i] = sum;
}
