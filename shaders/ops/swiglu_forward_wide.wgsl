// y = silu(gate) up, silu(x) = x / (1 + exp(−x)). All [n], n a multiple of 4. One thread: four elements.
// Twin: ops/elementwise.rs
struct Params {
  n: u32,
}

@group(0) @binding(0) var<storage, read_write> gate: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> up: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> params: Params;

fn sigmoid(x: vec4<f32>) -> vec4<f32> {
  return 1.0 / (1.0 + exp(min(-x, vec4<f32>(87.0))));
}

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  if (i < params.n / 4u) {
    y[i] = gate[i] * sigmoid(gate[i]) * up[i];
  }
}
