// x ← c tanh(x / c). x [n]. One thread: one element. Twin: ops/cap.rs
struct Params {
  n: u32,
  cap: f32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  if (i < params.n) {
    x[i] = capped(vec4<f32>(x[i]), params.cap).x;
  }
}
