// y[g, j] = x[g, j] for j < min(from_width, to_width), 0 past it: heads padded with zeros or cut back. x [n, from], y
// [n, to].
// One thread: one element of y. Twin: ops/attention/kernels.rs
struct Params {
  n: u32,
  from_width: u32,
  to_width: u32,
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
  let to_width = params.to_width;
  if (i >= params.n * to_width) {
    return;
  }
  let column = i % to_width;
  if (column < params.from_width) {
    y[i] = x[i / to_width * params.from_width + column];
  } else {
    y[i] = 0.0;
  }
}
