// Gradient of b, with β = σ(b): db = (1 − β) dv·δ / β, since δ is β times another value. dv, delta [n, M, E],
// gates [n, 2 M] end with β, db [n, M]. One thread: one head of a row. Twin: ops/delta/kernels.rs
struct Params {
  n: u32,
  heads: u32,
  dim: u32,
}

@group(0) @binding(0) var<storage, read_write> dv: array<f32>;
@group(0) @binding(1) var<storage, read_write> delta: array<f32>;
@group(0) @binding(2) var<storage, read_write> gates: array<f32>;
@group(0) @binding(3) var<storage, read_write> db: array<f32>;
@group(0) @binding(4) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  let heads = max(params.heads, 1u);
  if (i >= params.n * heads) {
    return;
  }
  var sum = 0.0;
  for (var c = 0u; c < params.dim; c++) {
    sum += dv[i * params.dim + c] * delta[i * params.dim + c];
  }
  let weight = gates[i / heads * 2u * heads + heads + i % heads];
  db[i] = 0.0;
  if (weight > 0.0) {
    db[i] = (1.0 - weight) * (sum / weight);
  }
}
