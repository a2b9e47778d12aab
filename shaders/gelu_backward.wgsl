// In place: x ← dy ((1 + t) / 2 + x (1 − t²) √(2/π) (1 + 3 · 0.044715 x²) / 2), t as in gelu_forward. x, dy [n].
// One thread: one element. Twin: kernels/gelu.rs
struct Params {
  n: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> dy: array<f32>;
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
  if (i >= params.n) {
    return;
  }
  let t = gate(x[i]);
  let z = clamp(x[i], -20.0, 20.0);
  let slope = 0.5 * z * (1.0 - t * t) * 0.7978845608 * (1.0 + 0.134145 * z * z);
  // A NaN input must stay one, and clamp would hide it.
  let broken = select(0.0, x[i], is_nan_bits(bitcast<u32>(x[i])));
  x[i] = dy[i] * (0.5 * (1.0 + t) + slope) + broken;
}
