// Gradients of the states after each chunk, from the last chunk to the first, and of δ: dδ_s = y_s + end_s dS k_s in
// place of y, then dS ← start dS + Σ_t (start_t do_t q_tᵀ − dδ_t w_tᵀ). w [n, M, D], qk [n, 2 G D], start, end [n, M],
// dout, y [n, M, E], dstates [B, chunks, M, E, D]. One workgroup: eight rows of dS of a head.
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
@group(0) @binding(1) var<storage, read_write> qk: array<f32>;
@group(0) @binding(2) var<storage, read_write> start: array<f32>;
@group(0) @binding(3) var<storage, read_write> end: array<f32>;
@group(0) @binding(4) var<storage, read_write> dout: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
@group(0) @binding(6) var<storage, read_write> dstates: array<f32>;
@group(0) @binding(7) var<storage, read_write> params: Params;

// Eight rows of dS, in two halves for each column.
var<workgroup> state: array<vec4<f32>, 512>;
// dδ of the rows of a chunk, and start do, for the same eight.
var<workgroup> taken: array<vec4<f32>, 128>;
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
  let wide = 2u * params.key_heads * key;
  let head = h * params.key_heads / heads * key;
  let keys = head + params.key_heads * key;
  for (var l = lane; l < 2u * key; l += 64u) {
    state[l] = vec4<f32>();
  }
  for (var left = chunks; left > 0u; left--) {
    let chunk = left - 1u;
    workgroupBarrier();
    let base = sequence * params.len + chunk * 64u;
    let rows = min(64u, params.len - chunk * 64u);
    if (lane < rows) {
      let row = (base + lane) * heads + h;
      var low = vec4<f32>();
      var high = vec4<f32>();
      for (var l = 0u; l < key; l++) {
        let v = qk[(base + lane) * wide + keys + l];
        low += v * state[2u * l];
        high += v * state[2u * l + 1u];
      }
      low *= end[row];
      high *= end[row];
      var low_out = vec4<f32>();
      var high_out = vec4<f32>();
      for (var k = 0u; k < 4u; k++) {
        if (first + k < value) {
          low[k] += y[row * value + first + k];
          y[row * value + first + k] = low[k];
          low_out[k] = start[row] * dout[row * value + first + k];
        }
        if (first + k + 4u < value) {
          high[k] += y[row * value + first + k + 4u];
          y[row * value + first + k + 4u] = high[k];
          high_out[k] = start[row] * dout[row * value + first + k + 4u];
        }
      }
      taken[2u * lane] = low;
      taken[2u * lane + 1u] = high;
      added[2u * lane] = low_out;
      added[2u * lane + 1u] = high_out;
    }
    workgroupBarrier();
    let decay = start[(base + rows - 1u) * heads + h];
    let to = ((sequence * chunks + chunk) * heads + h) * value;
    for (var l = lane; l < key; l += 64u) {
      let before = array<vec4<f32>, 2>(state[2u * l], state[2u * l + 1u]);
      var low = decay * before[0];
      var high = decay * before[1];
      for (var s = 0u; s < rows; s++) {
        let q = qk[(base + s) * wide + head + l];
        let v = w[((base + s) * heads + h) * key + l];
        low += q * added[2u * s] - v * taken[2u * s];
        high += q * added[2u * s + 1u] - v * taken[2u * s + 1u];
      }
      state[2u * l] = low;
      state[2u * l + 1u] = high;
      for (var k = 0u; k < 4u; k++) {
        if (first + k < value) {
          dstates[(to + first + k) * key + l] = before[0][k];
        }
        if (first + k + 4u < value) {
          dstates[(to + first + k + 4u) * key + l] = before[1][k];
        }
      }
    }
  }
}
