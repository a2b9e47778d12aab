// In place of rows that have gate and up one after the other: gate ← dy up σ(1 + gate (1 − σ)), up ← dy gate σ,
// σ = 1 / (1 + exp(−gate)). x [n, 2 F], dy [n, F]. One thread: one element of dy. Twin: ops/elementwise.rs
struct Params {
  n: u32,
  width: u32,
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
  let width = max(params.width, 1u);
  if (i < params.n * width) {
    let at = i + i / width * width;
    let gate = x[at];
    let s = 1.0 / (1.0 + exp(min(-gate, 87.0)));
    x[at] = dy[i] * x[at + width] * s * (1.0 + gate * (1.0 - s));
    x[at + width] = dy[i] * gate * s;
  }
}
