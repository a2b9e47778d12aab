// Gradients of the states after each chunk, from the last chunk to the first, and of δ: dδ_s = y_s + end_s dS k_s in
// place of y, then dS ← start dS + Σ_t (start_t do_t q_tᵀ − dδ_t w_tᵀ). w [n, M, D], qk [n, 2 G D], start, end [n, M],
// dout, y [n, M, E], dstates [B, chunks, M, E, D]. One workgroup: eight rows of dS of a head.
// Twin: ops/delta/kernels.rs
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

// Number of chunks; 0 for a workgroup past the end.
var<workgroup> rounds: u32;

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
  let chunks = (params.len + 63u) / 64u;
  if (lane == 0u) {
    rounds = select(0u, chunks, i < params.n / params.len * heads * tiles);
  }
  let last = workgroupUniformLoad(&rounds);
  let first = i % tiles * 8u;
  let h = i / tiles % heads;
  let sequence = i / tiles / heads;
  let rows_of_s = min(8u, value - first);
  let size = heads * value * key;
  var at_s = (sequence * chunks + chunks - 1u) * size + (h * value + first) * key;
  for (var c = lane; last > 0u && c < rows_of_s * key; c += 64u) {
    dstates[at_s + c] = 0.0;
  }
  let wide = 2u * params.key_heads * key;
  let head = h * params.key_heads / heads * key;
  let own_keys = head + params.key_heads * key;
  // This invocation's four rows of a chunk and two rows of dS; those past an end are read as the last, and not written.
  let four = lane / 4u * 4u;
  let two = lane % 4u * 2u;
  let pair = min(vec2<u32>(two, two + 1u), vec2<u32>(rows_of_s - 1u)) * key;
  for (var done = 0u; done < last; done++) {
    let chunk = chunks - 1u - done;
    storageBarrier();
    let base = sequence * params.len + chunk * 64u;
    let rows = min(64u, params.len - chunk * 64u);
    if (four < rows) {
      let row = base + min(four + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(rows - 1u));
      let at = row * wide + own_keys;
      var one = vec4<f32>();
      var other = vec4<f32>();
      for (var l = 0u; l < key; l++) {
        let v = vec4<f32>(qk[at.x + l], qk[at.y + l], qk[at.z + l], qk[at.w + l]);
        one += v * dstates[at_s + pair.x + l];
        other += v * dstates[at_s + pair.y + l];
      }
      for (var k = 0u; k < 4u && four + k < rows; k++) {
        let of_row = row[k] * heads + h;
        let to = of_row * value + first + two;
        if (two < rows_of_s) {
          y[to] += end[of_row] * one[k];
        }
        if (two + 1u < rows_of_s) {
          y[to + 1u] += end[of_row] * other[k];
        }
      }
    }
    storageBarrier();
    if (chunk > 0u) {
      let decay = start[(base + rows - 1u) * heads + h];
      for (var c = lane; c < rows_of_s * key; c += 64u) {
        let row = c / key;
        let l = c % key;
        var sum = decay * dstates[at_s + c];
        for (var s = 0u; s < rows; s++) {
          let at = (base + s) * heads + h;
          let column = at * value + first + row;
          sum += start[at] * dout[column] * qk[(base + s) * wide + head + l];
          sum -= y[column] * w[at * key + l];
        }
        dstates[at_s - size + c] = sum;
      }
      at_s -= size;
    }
  }
}
