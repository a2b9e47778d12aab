// Dropout: y[e] = keep ? x[e]·scale : 0. x, y [n], scale = 1/(1 − p), threshold = p·2³².
// keep: the first word of Philox at the counter (e, micro-batch, step) is at least the threshold, so that the backward
// pass and a block that is run again draw the same mask. One thread: one element. Twin: ops/dropout.rs
struct Params {
  n: u32,
  threshold: u32,
  scale: f32,
  micro_batch: u32,
  key_low: u32,
  key_high: u32,
  step_low: u32,
  step_high: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let e = grid_index(group, groups, lane, 64u);
  if (e >= params.n) {
    return;
  }
  let counter = vec4<u32>(e, params.micro_batch, params.step_low, params.step_high);
  let word = philox(counter, vec2<u32>(params.key_low, params.key_high)).x;
  y[e] = select(0.0, x[e] * params.scale, word >= params.threshold);
}
