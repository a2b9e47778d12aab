// Gradients of the gates: of the decay's logarithm, dg_r = Σ_t (do·o − dv·v)_t over the rows t ≥ r of the chunk and
// document, plus dS·S of the state after the chunk if the document reaches its end; and of b, with β = σ(b):
// db = (1 − β) dv·δ / β. dots [n, 2 M] as delta_dots makes them, gates [n, 2 M], states [B, chunks + 1, M, E, D],
// dstates [B, chunks, M, E, D], dg, db [n, M]. The first row of a document has no decay. One workgroup: one head of a
// chunk. Twin: ops/delta/kernels.rs
struct Params {
  n: u32,
  len: u32,
  heads: u32,
  // E · D
  size: u32,
  documents: u32,
}

@group(0) @binding(0) var<storage, read_write> dots: array<f32>;
@group(0) @binding(1) var<storage, read_write> gates: array<f32>;
@group(0) @binding(2) var<storage, read_write> starts: array<u32>;
@group(0) @binding(3) var<storage, read_write> states: array<f32>;
@group(0) @binding(4) var<storage, read_write> dstates: array<f32>;
@group(0) @binding(5) var<storage, read_write> dg: array<f32>;
@group(0) @binding(6) var<storage, read_write> db: array<f32>;
@group(0) @binding(7) var<storage, read_write> params: Params;

var<workgroup> sums: array<f32, 64>;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = group_index(group, groups);
  let heads = max(params.heads, 1u);
  let chunks = (params.len + 63u) / 64u;
  let live = i < params.n / params.len * chunks * heads;
  let h = i % heads;
  let chunk = i / heads % chunks;
  let sequence = i / heads / chunks;
  let base = sequence * params.len + chunk * 64u;
  let rows = min(64u, params.len - chunk * 64u);
  let after = ((sequence * (chunks + 1u) + chunk + 1u) * heads + h) * params.size;
  var sum = 0.0;
  for (var c = lane; live && c < params.size; c += 64u) {
    sum += states[after + c] * dstates[i * params.size + c];
  }
  sums[lane] = sum;
  workgroupBarrier();
  if (lane != 0u || !live) {
    return;
  }
  var left = 0.0;
  for (var k = 0u; k < 64u; k++) {
    left += sums[k];
  }
  for (var back = 0u; back < rows; back++) {
    let t = rows - 1u - back;
    let row = base + t;
    let at = row * 2u * heads + h;
    var first = 0u;
    if (params.documents != 0u) {
      first = starts[row];
      if (back > 0u && starts[row + 1u] != first) {
        left = 0.0;
      }
    }
    left += dots[at];
    dg[row * heads + h] = select(left, 0.0, first == chunk * 64u + t);
    let weight = gates[at + heads];
    db[row * heads + h] = 0.0;
    if (weight > 0.0) {
      db[row * heads + h] = (1.0 - weight) * (dots[at + heads] / weight);
    }
  }
}
