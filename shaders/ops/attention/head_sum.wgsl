// Adds gradients of keys and values by query head up to those by the head that query heads share: y[r, h] = Σ_g x[r,
// h group + g], z likewise of w, in the order of g. x, w [n, heads, H], y, z [n, heads / group, H]; H = 4 width4.
// One thread: four elements of y and of z. Twin: ops/attention/kernels.rs
struct Params {
  // Total number of heads of y.
  n: u32,
  group: u32,
  width4: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> w: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> z: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  let width4 = params.width4;
  if (i >= params.n * width4) {
    return;
  }
  let first = i / width4 * params.group * width4 + i % width4;
  var a = x[first];
  var b = w[first];
  for (var g = 1u; g < params.group; g++) {
    a += x[first + g * width4];
    b += w[first + g * width4];
  }
  y[i] = a;
  z[i] = b;
}
