// y = x [n] as a rule without a gate of its own reads it, in f32 (shaders/README.md, "A rule of another crate"): the
// values of a packed bf16 tensor, or of a gradient bounded(x)·factor. One thread per element. Twin: optim/guard/read.rs
struct Params {
  n: u32,
  packed: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> gate: Gate;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<storage, read_write> params: Params;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 256u);
  if (i >= params.n) {
    return;
  }
  if (params.packed != 0u) {
    let word = x[i / 2u];
    y[i] = select(bf16_low(word), bf16_high(word), (i & 1u) == 1u);
  } else {
    y[i] = bounded(bitcast<f32>(x[i])) * gate.factor;
  }
}
