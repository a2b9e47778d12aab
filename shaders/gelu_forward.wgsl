// y = x (1 + t) / 2, t = tanh(√(2/π) (x + 0.044715 x³)). x, y [n]. One thread: one element. Twin: kernels/gelu.rs
struct Params {
  n: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> params: Params;

// tanh(√(2/π) (x + 0.044715 x³)); past |x| = 20 it is ±1, and the argument stays finite.
fn gate(x: f32) -> f32 {
  let z = clamp(x, -20.0, 20.0);
  let u = clamp(0.7978845608 * (z + 0.044715 * z * z * z), -15.0, 15.0);
  return 1.0 - 2.0 / (exp(2.0 * u) + 1.0);
}

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  if (i < params.n) {
    y[i] = 0.5 * x[i] * (1.0 + gate(x[i]));
  }
}
