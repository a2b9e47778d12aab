// States of the delta rule before and after each chunk: δ = u − W Sᵀ for the rows of a chunk, in place of u, then
// S ← start S + Σ_s end_s δ_s k_sᵀ, with the decay over the chunk and from each row to its end. w [n, M, D],
// keys [n, G D], start, end [n, M], initial [B, M, E, D] with `carried`, otherwise S begins with 0;
// y [n, M, E] = u, then δ; states [B, chunks + 1, M, E, D]. One workgroup: eight rows of S of a head.
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
@group(0) @binding(1) var<storage, read_write> keys: array<f32>;
@group(0) @binding(2) var<storage, read_write> start: array<f32>;
@group(0) @binding(3) var<storage, read_write> end: array<f32>;
@group(0) @binding(4) var<storage, read_write> initial: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
@group(0) @binding(6) var<storage, read_write> states: array<f32>;
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
  var at_s = sequence * (chunks + 1u) * size + (h * value + first) * key;
  for (var c = lane; last > 0u && c < rows_of_s * key; c += 64u) {
    states[at_s + c] = 0.0;
    if (params.carried != 0u) {
      states[at_s + c] = initial[((sequence * heads + h) * value + first) * key + c];
    }
  }
  let wide = params.key_heads * key;
  let head = h * params.key_heads / heads * key;
  // This invocation's four rows of a chunk and two rows of S; those past an end are read as the last, and not written.
  let four = lane / 4u * 4u;
  let two = lane % 4u * 2u;
  let pair = min(vec2<u32>(two, two + 1u), vec2<u32>(rows_of_s - 1u)) * key;
  for (var chunk = 0u; chunk < last; chunk++) {
    storageBarrier();
    let base = sequence * params.len + chunk * 64u;
    let rows = min(64u, params.len - chunk * 64u);
    if (four < rows) {
      let at = (base + min(four + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(rows - 1u))) * heads + h;
      var one = vec4<f32>();
      var other = vec4<f32>();
      for (var l = 0u; l < key; l++) {
        let v = vec4<f32>(w[at.x * key + l], w[at.y * key + l], w[at.z * key + l], w[at.w * key + l]);
        one += v * states[at_s + pair.x + l];
        other += v * states[at_s + pair.y + l];
      }
      for (var k = 0u; k < 4u && four + k < rows; k++) {
        let to = at[k] * value + first + two;
        if (two < rows_of_s) {
          y[to] -= one[k];
        }
        if (two + 1u < rows_of_s) {
          y[to + 1u] -= other[k];
        }
      }
    }
    storageBarrier();
    let decay = start[(base + rows - 1u) * heads + h];
    for (var c = lane; c < rows_of_s * key; c += 64u) {
      let row = c / key;
      let l = c % key;
      var sum = decay * states[at_s + c];
      for (var s = 0u; s < rows; s++) {
        let at = (base + s) * heads + h;
        sum += end[at] * y[at * value + first + row] * keys[(base + s) * wide + head + l];
      }
      states[at_s + size + c] = sum;
    }
    at_s += size;
  }
}
