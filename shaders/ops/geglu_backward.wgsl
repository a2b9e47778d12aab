// In place: gate ← dy up gelu'(gate), up ← dy gelu(gate), GELU in its tanh form. All [n]. One thread: one element.
// Twin: ops/elementwise.rs
struct Params {
  n: u32,
}

@group(0) @binding(0) var<storage, read_write> dy: array<f32>;
@group(0) @binding(1) var<storage, read_write> gate: array<f32>;
@group(0) @binding(2) var<storage, read_write> up: array<f32>;
@group(0) @binding(3) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  if (i < params.n) {
    let x = gate[i];
    let h = half_tanh(x);
    gate[i] = dy[i] * up[i] * gelu_slope(x, h);
    up[i] = dy[i] * x * h;
  }
}
