// dv_j = Σ_t p dy_t, dk_j = scale Σ_t ds q_t over the queries t ≥ j − offset of all heads that share the key; p, ds as
// in attention_backward_query. q, dy [B, T, heads, H], k, v, dk, dv [B, offset + T, kv_heads, H], stats [B, T, heads,
// 2] = lse, delta.
// With documents, a query sees the keys from its first one on, which is stored after the stats and grows with t.
// One thread: one key of one head; four queries at a time. Twin: ops/attention/kernels.rs
struct Params {
  batch: u32,
  heads: u32,
  kv_heads: u32,
  len: u32,
  offset: u32,
  width4: u32,
  scale: f32,
  documents: u32,
}

@group(0) @binding(0) var<storage, read_write> q: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> k: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> v: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> dy: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> stats: array<f32>;
@group(0) @binding(5) var<storage, read_write> dk: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> dv: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  let heads = params.heads;
  let kv_heads = params.kv_heads;
  let len = params.len;
  let width4 = params.width4;
  let all = params.offset + len;
  if (i >= params.batch * all * kv_heads) {
    return;
  }
  let j = i / kv_heads % all;
  let first = max(j, params.offset) - params.offset;
  let at = i * width4;
  var key: array<vec4<f32>, 32>;
  var value: array<vec4<f32>, 32>;
  var key_sums: array<vec4<f32>, 32>;
  var value_sums: array<vec4<f32>, 32>;
  for (var c = 0u; c < width4; c++) {
    key[c] = k[at + c] * params.scale;
    value[c] = v[at + c];
    key_sums[c] = vec4<f32>();
    value_sums[c] = vec4<f32>();
  }
  let shared_by = heads / kv_heads;
  for (var g = 0u; g < shared_by; g++) {
    let base = i / kv_heads / all * len * heads + i % kv_heads * shared_by + g;
    for (var t = first; t < len; t += 4u) {
      // Past the last query it is read again with weight zero.
      let queries = base + min(vec4<u32>(t, t + 1u, t + 2u, t + 3u), vec4<u32>(len - 1u)) * heads;
      let rows = queries * width4;
      var first_keys = vec4<u32>();
      if (params.documents != 0u) {
        let at_first = vec4<u32>(2u * params.batch * len * heads) + queries / heads;
        first_keys = vec4<u32>(vec4<f32>(stats[at_first.x], stats[at_first.y], stats[at_first.z], stats[at_first.w]));
        if (first_keys.x > j) {
          break;
        }
      }
      var s = vec4<f32>();
      var d = vec4<f32>();
      for (var c = 0u; c < width4; c++) {
        let a = key[c];
        let b = value[c];
        s += vec4<f32>(dot(a, q[rows.x + c]), dot(a, q[rows.y + c]), dot(a, q[rows.z + c]), dot(a, q[rows.w + c]));
        d += vec4<f32>(dot(b, dy[rows.x + c]), dot(b, dy[rows.y + c]), dot(b, dy[rows.z + c]), dot(b, dy[rows.w + c]));
      }
      let at_stats = queries * 2u;
      let lse = vec4<f32>(stats[at_stats.x], stats[at_stats.y], stats[at_stats.z], stats[at_stats.w]);
      let next = at_stats + vec4<u32>(1u);
      let delta = vec4<f32>(stats[next.x], stats[next.y], stats[next.z], stats[next.w]);
      let seen = (vec4<u32>(t, t + 1u, t + 2u, t + 3u) < vec4<u32>(len)) & (first_keys <= vec4<u32>(j));
      let p = select(vec4<f32>(), exp(s - lse), seen);
      let ds = p * (d - delta) * params.scale;
      for (var c = 0u; c < width4; c++) {
        key_sums[c] += ds.x * q[rows.x + c] + ds.y * q[rows.y + c] + ds.z * q[rows.z + c] + ds.w * q[rows.w + c];
        value_sums[c] += p.x * dy[rows.x + c] + p.y * dy[rows.y + c] + p.z * dy[rows.z + c] + p.w * dy[rows.w + c];
      }
    }
  }
  for (var c = 0u; c < width4; c++) {
    dk[at + c] = key_sums[c];
    dv[at + c] = value_sums[c];
  }
}
