// Share of a state before a chunk in the one after it, y = start dS·S, with the decay over the chunk. states
// [B, chunks + 1, M, E, D], dstates [B, chunks, M, E, D], start [n, M], y [B, chunks, M]. One workgroup: one head of a
// chunk. Twin: ops/delta/kernels.rs
struct Params {
  n: u32,
  len: u32,
  heads: u32,
  // E · D
  size: u32,
}

@group(0) @binding(0) var<storage, read_write> states: array<f32>;
@group(0) @binding(1) var<storage, read_write> dstates: array<f32>;
@group(0) @binding(2) var<storage, read_write> start: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<storage, read_write> params: Params;

var<workgroup> sums: array<f32, 64>;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = group_index(group, groups);
  let heads = max(params.heads, 1u);
  let chunks = (params.len + 63u) / 64u;
  let live = i < params.n / params.len * chunks * heads;
  let chunk = i / heads % chunks;
  let sequence = i / heads / chunks;
  let before = ((sequence * (chunks + 1u) + chunk) * heads + i % heads) * params.size;
  var sum = 0.0;
  for (var c = lane; live && c < params.size; c += 64u) {
    sum += states[before + c] * dstates[i * params.size + c];
  }
  sums[lane] = sum;
  workgroupBarrier();
  if (lane != 0u || !live) {
    return;
  }
  var total = 0.0;
  for (var k = 0u; k < 64u; k++) {
    total += sums[k];
  }
  let last = sequence * params.len + min(chunk * 64u + 64u, params.len) - 1u;
  y[i] = start[last * heads + i % heads] * total;
}
