// y = x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2. x, y [n]. One thread: one element. Twin: ops/elementwise.rs
struct Params {
  n: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> params: Params;

// (1 + tanh u) / 2 = 1 / (1 + exp(−2u)), u = √(2/π) (x + 0.044715 x³): no cancellation, and finite for every finite x.
fn half_tanh(x: f32) -> f32 {
  let z = clamp(x, -20.0, 20.0);
  let u = clamp(0.7978845608 * (z + 0.044715 * z * z * z), -43.0, 43.0);
  return select(1.0 / (1.0 + exp(-2.0 * u)), 0.0, x < -20.0);
}

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  if (i < params.n) {
    y[i] = x[i] * half_tanh(x[i]);
  }
}
