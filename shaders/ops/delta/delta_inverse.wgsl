// Inverse X of 1 + A for the strictly lower triangle A of each chunk, by forward substitution, with its columns times
// β, and also times the decay from before the chunk: yv = X β, yk = X β start. pairs [n, M, 64] = A, gates [n, 2 M]
// end with β, start [n, M], yv, yk [n, M, 64]. One workgroup: one head of a chunk, one thread a column.
// Twin: ops/delta/kernels.rs
struct Params {
  n: u32,
  len: u32,
  heads: u32,
}

@group(0) @binding(0) var<storage, read_write> pairs: array<f32>;
@group(0) @binding(1) var<storage, read_write> gates: array<f32>;
@group(0) @binding(2) var<storage, read_write> start: array<f32>;
@group(0) @binding(3) var<storage, read_write> yv: array<f32>;
@group(0) @binding(4) var<storage, read_write> yk: array<f32>;
@group(0) @binding(5) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = group_index(group, groups);
  let heads = max(params.heads, 1u);
  let chunks = (params.len + 63u) / 64u;
  if (i >= params.n / params.len * chunks * heads) {
    return;
  }
  let h = i % heads;
  let first = i / heads % chunks * 64u;
  let base = i / heads / chunks * params.len + first;
  let rows = min(64u, params.len - first);
  var weight = 0.0;
  var carried = 0.0;
  if (lane < rows) {
    weight = gates[(base + lane) * 2u * heads + heads + h];
    carried = weight * start[(base + lane) * heads + h];
  }
  // The column itself is in yk until it is whole.
  for (var t = 0u; t < rows; t++) {
    let at = ((base + t) * heads + h) * 64u;
    var value = select(0.0, 1.0, t == lane);
    for (var s = lane; s < t; s++) {
      value -= pairs[at + s] * yk[((base + s) * heads + h) * 64u + lane];
    }
    yk[at + lane] = value;
  }
  for (var t = 0u; t < rows; t++) {
    let at = ((base + t) * heads + h) * 64u + lane;
    let value = yk[at];
    yv[at] = value * weight;
    yk[at] = value * carried;
  }
}
