// y = x σ(x), σ(x) = 1 / (1 + exp(−x)). x, y [n]. One thread: one element. Twin: ops/sigmoid.rs
struct Params {
  n: u32,
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
  let i = grid_index(group, groups, lane, 64u);
  if (i < params.n) {
    y[i] = x[i] / (1.0 + exp(min(-x[i], 87.0)));
  }
}
