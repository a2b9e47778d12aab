// In place: gate ← dy up σ(1 + gate (1 − σ)), up ← dy gate σ, σ = 1 / (1 + exp(−gate)). All [n]. One thread: one
// element.
// Twin: ops/elementwise.rs
struct Params {
  n: u32,
}

@group(0) @binding(0) var<storage, read_write> dy: array<f32>;
@group(0) @binding(1) var<storage, read_write> gate: array<f32>;
@group(0) @binding(2) var<storage, read_write> up: array<f32>;
@group(0) @binding(3) var<storage, read_write> params: Params;

fn sigmoid(x: f32) -> f32 {
  return 1.0 / (1.0 + exp(min(-x, 87.0)));
}

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  if (i < params.n) {
    let x = gate[i];
    let s = sigmoid(x);
    gate[i] = dy[i] * up[i] * s * (1.0 + x * (1.0 - s));
    up[i] = dy[i] * x * s;
  }
}
