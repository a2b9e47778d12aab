// q, k, v = the thirds of the rows of x + b. x [n, 3 C], b [3 C], q, k, v [n, C]. One thread: one element of x.
// Twin: ops/packed_qkv.rs
struct Params {
  n: u32,
  // C, the width of a third.
  width: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> q: array<f32>;
@group(0) @binding(3) var<storage, read_write> k: array<f32>;
@group(0) @binding(4) var<storage, read_write> v: array<f32>;
@group(0) @binding(5) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  let width = params.width;
  if (i >= 3u * params.n * width) {
    return;
  }
  let column = i % (3u * width);
  let to = i / (3u * width) * width + column % width;
  let value = x[i] + b[column];
  switch column / width {
    case 0u: { q[to] = value; }
    case 1u: { k[to] = value; }
    default: { v[to] = value; }
  }
}
