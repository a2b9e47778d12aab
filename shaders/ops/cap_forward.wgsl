// x ← c tanh(x / c). x [n]. One thread: one element. Twin: ops/cap.rs
struct Params {
  n: u32,
  cap: f32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> params: Params;

// tanh(v) with a relative error of about 1e-7: near 0 a polynomial (Cephes, tanhf.c), since a driver's tanh may be a
// difference of exponentials. min hides a NaN.
fn tanh_of(v: f32) -> f32 {
  if (abs(v) < 0.625) {
    let z = v * v;
    let high = (-5.70498872745e-3 * z + 2.06390887954e-2) * z - 5.37397155531e-2;
    let p = (high * z + 1.33314422036e-1) * z - 3.33332819422e-1;
    return v + v * z * p;
  }
  return sign(v) * (1.0 - 2.0 / (exp(2.0 * min(abs(v), 20.0)) + 1.0));
}

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  if (i < params.n) {
    let v = x[i] / params.cap;
    let broken = select(0.0, v, is_nan_bits(bitcast<u32>(v)));
    x[i] = params.cap * tanh_of(v) + broken;
  }
}
