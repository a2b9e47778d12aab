// For each row: if the target is the arg max of the logits (the lowest id of equal ones), and if it is an id.
// logits [n, stride], targets [n] i32, partials [n, P, 2] of cross_entropy_partials; hits [n, 2] = 1 or 0 each. One
// workgroup: one row. If the target's logit is a maximum, the logits of lower ids are read, else no others.
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
@group(0) @binding(3) var<storage, read_write> hits: array<f32>;
@group(0) @binding(4) var<storage, read_write> params: Params;

var<workgroup> earlier: array<f32, 64>;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let row = group_index(group, groups);
  let live = row < params.n;
  var id = params.vocab;
  if (live) {
    id = u32(targets[row]);
  }
  let counts = id < params.vocab;
  var own = 0.0;
  var top = 0.0;
  if (counts) {
    own = logits[row * params.stride + id];
    top = own;
    for (var p = 0u; p < params.parts; p++) {
      top = max(top, partials[2u * (row * params.parts + p)]);
    }
  }
  let best = counts && own == top;
  let end = select(0u, id, best);
  var found = 0.0;
  for (var c = lane; c < end; c += 64u) {
    if (logits[row * params.stride + c] == top) {
      found = 1.0;
    }
  }
  earlier[lane] = found;
  workgroupBarrier();
  for (var half = 32u; half > 0u; half /= 2u) {
    if (lane < half) {
      earlier[lane] += earlier[lane + half];
    }
    workgroupBarrier();
  }
  if (lane == 0u && live) {
    hits[2u * row] = select(0.0, 1.0, best && earlier[0] == 0.0);
    hits[2u * row + 1u] = select(0.0, 1.0, counts);
  }
}
