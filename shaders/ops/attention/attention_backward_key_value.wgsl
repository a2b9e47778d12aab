// dv_j = Σ_t p dy_t, dk_j = scale Σ_t ds q_t over the queries t ≥ j − offset of all heads that share the key; p, ds as
// in attention_backward_query. q, dy [B, T, heads, H], k, v, dk, dv [B, offset + T, kv_heads, H],
// stats [B, T, heads, 2] = lse, delta.
// One thread: one key of one head against one query at a time; dk and dv hold the sums. Twin: ops/attention/kernels.rs
struct Params {
  batch: u32,
  heads: u32,
  kv_heads: u32,
  len: u32,
  offset: u32,
  width4: u32,
  scale: f32,
  cap: f32,
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
  let at = i * width4;
  for (var c = 0u; c < width4; c++) {
    dk[at + c] = vec4<f32>();
    dv[at + c] = vec4<f32>();
  }
  let shared_by = heads / kv_heads;
  let base = i / kv_heads / all * len * heads + i % kv_heads * shared_by;
  let tail = 2u * params.batch * len * heads;
  for (var t = max(j, params.offset) - params.offset; t < len; t++) {
    // Later queries begin no earlier.
    if (params.documents != 0u && u32(stats[tail + base / heads + t]) > j) {
      break;
    }
    for (var query = base + t * heads; query < base + t * heads + shared_by; query++) {
      let row = query * width4;
      var s = 0.0;
      var d = 0.0;
      for (var c = 0u; c < width4; c++) {
        s += dot(k[at + c], q[row + c]);
        d += dot(v[at + c], dy[row + c]);
      }
      d -= stats[2u * query + 1u];
      if (params.cap > 0.0) {
        let bound = params.cap / params.scale;
        s = capped(vec4<f32>(s), bound).x;
        d *= cap_slope(vec4<f32>(s), bound).x;
      }
      let p = exp(s * params.scale - stats[2u * query]);
      let ds = p * d * params.scale;
      for (var c = 0u; c < width4; c++) {
        dk[at + c] += ds * q[row + c];
        dv[at + c] += p * dy[row + c];
      }
    }
  }
}
