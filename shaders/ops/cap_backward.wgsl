// dy ← dy (1 − (y / c)²), the gradient of y = c tanh(x / c). y, dy [n]. One thread: one element. Twin: ops/cap.rs
struct Params {
  n: u32,
  cap: f32,
}

@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(0) @binding(1) var<storage, read_write> dy: array<f32>;
@group(0) @binding(2) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  if (i < params.n) {
    let share = y[i] / params.cap;
    dy[i] *= 1.0 - share * share;
  }
}
