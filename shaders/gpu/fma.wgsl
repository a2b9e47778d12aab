// y[i] = Σ_j c_j of 16 chains of multiply-adds: c_j begins as x[i] + j / 16 and becomes a c_j + b, 8 times per round.
// Each link needs the one before it, and the chains do not need each other: this is pure arithmetic, at the highest
// rate of a device. x, y [n]. One thread per element. Twin: gpu/fma.rs
struct Params {
  n: u32,
  rounds: u32,
  a: f32,
  b: f32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
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
  let a = vec4<f32>(params.a);
  let b = vec4<f32>(params.b);
  let rounds = params.rounds;
  var c0 = x[i] + vec4<f32>(0.0, 0.0625, 0.125, 0.1875);
  var c1 = c0 + vec4<f32>(0.25);
  var c2 = c0 + vec4<f32>(0.5);
  var c3 = c0 + vec4<f32>(0.75);
  // Written out, so that the loop's own counting is a small part of a round.
  for (var round = 0u; round < rounds; round++) {
    c0 = fma(a, c0, b); c1 = fma(a, c1, b); c2 = fma(a, c2, b); c3 = fma(a, c3, b);
    c0 = fma(a, c0, b); c1 = fma(a, c1, b); c2 = fma(a, c2, b); c3 = fma(a, c3, b);
    c0 = fma(a, c0, b); c1 = fma(a, c1, b); c2 = fma(a, c2, b); c3 = fma(a, c3, b);
    c0 = fma(a, c0, b); c1 = fma(a, c1, b); c2 = fma(a, c2, b); c3 = fma(a, c3, b);
    c0 = fma(a, c0, b); c1 = fma(a, c1, b); c2 = fma(a, c2, b); c3 = fma(a, c3, b);
    c0 = fma(a, c0, b); c1 = fma(a, c1, b); c2 = fma(a, c2, b); c3 = fma(a, c3, b);
    c0 = fma(a, c0, b); c1 = fma(a, c1, b); c2 = fma(a, c2, b); c3 = fma(a, c3, b);
    c0 = fma(a, c0, b); c1 = fma(a, c1, b); c2 = fma(a, c2, b); c3 = fma(a, c3, b);
  }
  let sums = (c0 + c1) + (c2 + c3);
  y[i] = (sums.x + sums.y) + (sums.z + sums.w);
}
