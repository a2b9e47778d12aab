// For each part of each row of logits [n, stride], whose V columns are cut into P interleaved parts: the maximum and
// Σ exp(l − maximum). partials [n, P, 2]. One thread: one part. P ≤ V. Twin: ops/loss/cross_entropy.rs
struct Params {
  n: u32,
  vocab: u32,
  parts: u32,
  stride: u32,
}

@group(0) @binding(0) var<storage, read_write> logits: array<f32>;
@group(0) @binding(1) var<storage, read_write> partials: array<f32>;
@group(0) @binding(2) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  let vocab = params.vocab;
  let parts = max(params.parts, 1u);
  if (i >= params.n * parts) {
    return;
  }
  let row = i / parts * params.stride;
  let first = i % parts;
  var top = logits[row + first];
  for (var c = first + parts; c < vocab; c += parts) {
    top = max(top, logits[row + c]);
  }
  var sum = 0.0;
  for (var c = first; c < vocab; c += parts) {
    sum += exp(logits[row + c] - top);
  }
  partials[2u * i] = top;
  partials[2u * i + 1u] = sum;
}
