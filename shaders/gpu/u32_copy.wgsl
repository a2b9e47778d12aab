// y[y_start + i] = x[x_start + i] for i below n, word for word, whatever the words mean (packed bf16 too); the rest of
// y is unchanged. One thread per word.
// Twin: gpu/copy.rs
struct Params {
  n: u32,
  x_start: u32,
  y_start: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<storage, read_write> params: Params;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 256u);
  if (i < params.n) {
    y[params.y_start + i] = x[params.x_start + i];
  }
}
