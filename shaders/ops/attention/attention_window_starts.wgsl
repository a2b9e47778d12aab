// The first key of each query with a window: firsts = max(start, offset + t + 1 − window), start = 0 without documents
// (then one word of starts is bound). starts, firsts [B, T]. One thread: one query. Twin: ops/attention/kernels.rs
struct Params {
  n: u32,
  len: u32,
  offset: u32,
  window: u32,
  documents: u32,
}

@group(0) @binding(0) var<storage, read_write> starts: array<u32>;
@group(0) @binding(1) var<storage, read_write> firsts: array<u32>;
@group(0) @binding(2) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  if (i >= params.n) {
    return;
  }
  let keys = params.offset + i % params.len + 1u;
  var start = 0u;
  if (params.documents != 0u) {
    start = starts[i];
  }
  firsts[i] = max(start, keys - min(keys, params.window));
}
