// x ← x + b, y = x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2 of the sum (chunks/gelu.wgsl). x, y [n, C], b [C]. One
// thread: one element. Twin: ops/elementwise.rs
struct Params {
  n: u32,
  width: u32,
}

@group(0) @binding(0) var<storage, read_write> b: array<f32>;
@group(0) @binding(1) var<storage, read_write> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  if (i < params.n * params.width) {
    let v = x[i] + b[i % params.width];
    x[i] = v;
    y[i] = v * half_tanh(v);
  }
}
