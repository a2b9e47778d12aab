// y = silu(gate) up of rows that have gate and up one after the other. x [n, 2 F], y [n, F]. One thread: one element.
// Twin: ops/elementwise.rs
struct Params {
  n: u32,
  width: u32,
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
  let width = max(params.width, 1u);
  if (i < params.n * width) {
    let at = i + i / width * width;
    let gate = x[at];
    y[i] = gate / (1.0 + exp(min(-gate, 87.0))) * x[at + width];
  }
}
