// y[r] = w[ids[r]], rows of C. w [V, C], ids [n] i32, y [n, C]. An id outside 0..V gives zeros, or leaves the row of y
// as it is if `keep` is 1.
// One thread: one element of y. Twin: ops/embedding.rs
struct Params {
  n: u32,
  vocab: u32,
  k: u32,
  // Where the second plane of w begins.
  plane: u32,
  keep: u32,
}

@group(0) @binding(1) var<storage, read_write> ids: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  let width = params.k;
  if (i >= params.n * width) {
    return;
  }
  let id = u32(ids[i / width]);
  if (id >= params.vocab) {
    if (params.keep == 0u) {
      y[i] = 0.0;
    }
    return;
  }
  y[i] = weight1(id, i % width);
}
