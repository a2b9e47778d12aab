// In place: x ← dy (h + 2 x h (1 − h) √(2/π) (1 + 3 · 0.044715 x²)), h = (1 + tanh(…)) / 2 as in gelu_forward. x, dy
// [n].
// One thread: one element. Twin: ops/elementwise.rs
struct Params {
  n: u32,
}

@group(0) @binding(0) var<storage, read_write> dy: array<f32>;
@group(0) @binding(1) var<storage, read_write> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> params: Params;

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
  x[i] = dy[i] * gelu_slope(x[i], half_tanh(x[i]));
}
