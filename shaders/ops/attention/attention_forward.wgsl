// Causal attention, grouped queries, online softmax: y = softmax(scale q kᵀ) v over the keys first ..= offset + t;
// with cap > 0 a score z is cap tanh(z / cap) (chunks/score_cap). With documents, first is starts [B, T], which grows
// with t and is stored as f32 after the stats; otherwise first is 0 (and one word of starts is bound).
// q, y [B, T, heads, H], k, v [B, offset + T, kv_heads, H], stats [B, T, heads, 2] = log Σ exp, 0; H = 4 width4 ≤ 256.
// One thread: one query of one head; four keys at a time. Twin: ops/attention/kernels.rs
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
@group(0) @binding(3) var<storage, read_write> starts: array<u32>;
@group(0) @binding(4) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> stats: array<f32>;
@group(0) @binding(6) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  let heads = params.heads;
  let len = params.len;
  let width4 = params.width4;
  if (i >= params.batch * len * heads) {
    return;
  }
  let keys = params.offset + i / heads % len + 1u;
  let step = params.kv_heads * width4;
  let kv_head = i % heads / (heads / params.kv_heads);
  let base = (i / heads / len * (params.offset + len) * params.kv_heads + kv_head) * width4;
  let at = i * width4;
  var first = 0u;
  if (params.documents != 0u) {
    first = min(starts[i / heads], keys - 1u);
    if (i % heads == 0u) {
      stats[2u * params.batch * len * heads + i / heads] = f32(first);
    }
  }
  var query: array<vec4<f32>, 64>;
  var sums: array<vec4<f32>, 64>;
  var top = 0.0;
  for (var c = 0u; c < width4; c++) {
    query[c] = q[at + c] * params.scale;
    sums[c] = vec4<f32>();
    top += dot(query[c], k[base + first * step + c]);
  }
  if (params.cap > 0.0) {
    top = capped(vec4<f32>(top), params.cap).x;
  }
  var total = 0.0;
  for (var j = first; j < keys; j += 4u) {
    // Past the last key, that key is read again with weight zero.
    let rows = base + min(vec4<u32>(j, j + 1u, j + 2u, j + 3u), vec4<u32>(keys - 1u)) * step;
    var s = vec4<f32>();
    for (var c = 0u; c < width4; c++) {
      let a = query[c];
      s += vec4<f32>(dot(a, k[rows.x + c]), dot(a, k[rows.y + c]), dot(a, k[rows.z + c]), dot(a, k[rows.w + c]));
    }
    if (params.cap > 0.0) {
      s = capped(s, params.cap);
    }
    let next = max(max(max(s.x, s.y), max(s.z, s.w)), top);
    let old = exp(top - next);
    let seen = vec4<u32>(j, j + 1u, j + 2u, j + 3u) < vec4<u32>(keys);
    let p = select(vec4<f32>(), exp(s - vec4<f32>(next)), seen);
    total = total * old + (p.x + p.y + p.z + p.w);
    for (var c = 0u; c < width4; c++) {
      sums[c] = sums[c] * old + p.x * v[rows.x + c] + p.y * v[rows.y + c] + p.z * v[rows.z + c] + p.w * v[rows.w + c];
    }
    top = next;
  }
  for (var c = 0u; c < width4; c++) {
    y[at + c] = sums[c] / total;
  }
  stats[2u * i] = top + log(total);
  stats[2u * i + 1u] = 0.0;
}
