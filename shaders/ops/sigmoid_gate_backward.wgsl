// In place: x ← dy σ(gate), gate ← dy x σ (1 − σ), σ(g) = 1 / (1 + exp(−g)). dy, x, gate [n]. One thread: one element.
// Twin: ops/sigmoid.rs
struct Params {
  n: u32,
}

@group(0) @binding(0) var<storage, read_write> dy: array<f32>;
@group(0) @binding(1) var<storage, read_write> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> gate: array<f32>;
@group(0) @binding(3) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  if (i < params.n) {
    let s = 1.0 / (1.0 + exp(min(-gate[i], 87.0)));
    let slope = dy[i] * x[i] * s * (1.0 - s);
    x[i] = dy[i] * s;
    gate[i] = slope;
  }
}
