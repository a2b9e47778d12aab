// dlogits = (exp(l − lse) − onehot(target)) (1 − (l / cap)²), without the last factor if cap is 0, in place of the
// logits; 0 in rows whose target is not an id, and in columns from V on. logits [n, stride] → dlogits, targets [n] i32,
// stats [n, 2] = loss, lse. One thread: one element. Twin: ops/loss/cross_entropy.rs
struct Params {
  n: u32,
  vocab: u32,
  stride: u32,
  cap: f32,
}

@group(0) @binding(0) var<storage, read_write> targets: array<i32>;
@group(0) @binding(1) var<storage, read_write> stats: array<f32>;
@group(0) @binding(2) var<storage, read_write> logits: array<f32>;
@group(0) @binding(3) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  let vocab = params.vocab;
  let stride = max(params.stride, 1u);
  if (i >= params.n * stride) {
    return;
  }
  let row = i / stride;
  let column = i % stride;
  let id = u32(targets[row]);
  if (id >= vocab || column >= vocab) {
    logits[i] = 0.0;
    return;
  }
  let hit = select(0.0, 1.0, id == column);
  let logit = logits[i];
  var slope = 1.0;
  if (params.cap > 0.0) {
    slope = 1.0 - logit / params.cap * (logit / params.cap);
  }
  logits[i] = (exp(logit - stats[2u * row + 1u]) - hit) * slope;
}
