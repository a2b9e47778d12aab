// States of the delta rule before and after each chunk: δ = u − W Sᵀ for the rows of a chunk, in place of u, then
// S ← start S + Σ_s end_s δ_s k_sᵀ, with the decay over the chunk and from each row to its end. w [n, M, D],
// keys [n, G D], start, end [n, M], initial [B, M, E, D] with `carried`, otherwise S begins with 0;
// y [n, M, E] = u, then δ; states [B, chunks + 1, M, E, D]. One workgroup: eight rows of S of a head.
// Twin: ops/delta/state_twins.rs
struct Params {
  n: u32,
  len: u32,
  key_heads: u32,
  heads: u32,
  key_dim: u32,
  value_dim: u32,
  carried: u32,
}

@group(0) @binding(0) var<storage, read_write> w: array<f32>;
@group(0) @binding(1) var<storage, read_write> keys: array<f32>;
@group(0) @binding(2) var<storage, read_write> start: array<f32>;
@group(0) @binding(3) var<storage, read_write> end: array<f32>;
@group(0) @binding(4) var<storage, read_write> initial: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
@group(0) @binding(6) var<storage, read_write> states: array<f32>;
@group(0) @binding(7) var<storage, read_write> params: Params;

// Eight rows of S, in two halves for each column.
var<workgroup> state: array<vec4<f32>, 512>;
// end δ of the rows of a chunk, for the same eight.
var<workgroup> added: array<vec4<f32>, 128>;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = group_index(group, groups);
  let heads = max(params.heads, 1u);
  let key = params.key_dim;
  let value = params.value_dim;
  let tiles = (value + 7u) / 8u;
  if (i >= params.n / params.len * heads * tiles) {
    return;
  }
  let chunks = (params.len + 63u) / 64u;
  let first = i % tiles * 8u;
  let h = i / tiles % heads;
  let sequence = i / tiles / heads;
  let wide = params.key_heads * key;
  let head = h * params.key_heads / heads * key;
  for (var l = lane; l < key; l += 64u) {
    for (var k = 0u; k < 8u; k++) {
      var before = 0.0;
      if (params.carried != 0u && first + k < value) {
        before = initial[((sequence * heads + h) * value + first + k) * key + l];
      }
      state[2u * l + k / 4u][k % 4u] = before;
      if (first + k < value) {
        states[((sequence * (chunks + 1u) * heads + h) * value + first + k) * key + l] = before;
      }
    }
  }
  for (var chunk = 0u; chunk < chunks; chunk++) {
    workgroupBarrier();
    let base = sequence * params.len + chunk * 64u;
    let rows = min(64u, params.len - chunk * 64u);
    if (lane < rows) {
      let row = (base + lane) * heads + h;
      var low = vec4<f32>();
      var high = vec4<f32>();
      for (var l = 0u; l < key; l++) {
        let v = w[row * key + l];
        low += v * state[2u * l];
        high += v * state[2u * l + 1u];
      }
      for (var k = 0u; k < 4u; k++) {
        if (first + k < value) {
          low[k] = y[row * value + first + k] - low[k];
          y[row * value + first + k] = low[k];
        }
        if (first + k + 4u < value) {
          high[k] = y[row * value + first + k + 4u] - high[k];
          y[row * value + first + k + 4u] = high[k];
        }
      }
      added[2u * lane] = low * end[row];
      added[2u * lane + 1u] = high * end[row];
    }
    workgroupBarrier();
    let decay = start[(base + rows - 1u) * heads + h];
    let to = ((sequence * (chunks + 1u) + chunk + 1u) * heads + h) * value;
    for (var l = lane; l < key; l += 64u) {
      var low = decay * state[2u * l];
      var high = decay * state[2u * l + 1u];
      for (var s = 0u; s < rows; s++) {
        let v = keys[(base + s) * wide + head + l];
        low += v * added[2u * s];
        high += v * added[2u * s + 1u];
      }
      state[2u * l] = low;
      state[2u * l + 1u] = high;
      for (var k = 0u; k < 4u; k++) {
        if (first + k < value) {
          states[(to + first + k) * key + l] = low[k];
        }
        if (first + k + 4u < value) {
          states[(to + first + k + 4u) * key + l] = high[k];
        }
      }
    }
  }
}
