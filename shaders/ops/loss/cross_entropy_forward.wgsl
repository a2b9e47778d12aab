// Per row: lse = log Σ exp(l), loss = lse − l[target], or 0 if the target is not an id (IGNORE_INDEX).
// logits [n, stride], targets [n] i32, partials [n, P, 2]; stats [n, 2] = loss, lse. One thread: one row.
// Twin: ops/loss/cross_entropy.rs
struct Params {
  n: u32,
  vocab: u32,
  parts: u32,
  stride: u32,
}

@group(0) @binding(0) var<storage, read_write> logits: array<f32>;
@group(0) @binding(1) var<storage, read_write> targets: array<i32>;
@group(0) @binding(2) var<storage, read_write> partials: array<f32>;
@group(0) @binding(3) var<storage, read_write> stats: array<f32>;
@group(0) @binding(4) var<storage, read_write> params: Params;

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
  let parts = params.parts;
  let from_part = 2u * i * parts;
  var top = partials[from_part];
  for (var p = 1u; p < parts; p++) {
    top = max(top, partials[from_part + 2u * p]);
  }
  var sum = 0.0;
  for (var p = 0u; p < parts; p++) {
    sum += partials[from_part + 2u * p + 1u] * exp(partials[from_part + 2u * p] - top);
  }
  let lse = top + log(sum);
  let id = u32(targets[i]);
  var loss = 0.0;
  if (id < params.vocab) {
    loss = lse - logits[i * params.stride + id];
  }
  stats[2u * i] = loss;
  stats[2u * i + 1u] = lse;
}
