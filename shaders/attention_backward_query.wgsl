// dq = scale Σ_j ds_j k_j with p_j = exp(scale q k_j − lse), ds_j = p_j (dy v_j − delta), delta = dy y.
// Shapes as in attention_forward; stats [B, T, heads, 2]: lse is read, delta written for attention_backward_key_value;
// with documents, the first key of each query [B, T] is stored after them.
// One thread: one query of one head; four keys at a time. Twin: ops/attention/kernels.rs
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
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> dy: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> stats: array<f32>;
@group(0) @binding(6) var<storage, read_write> dq: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> params: Params;

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
  var query: array<vec4<f32>, 32>;
  var grad: array<vec4<f32>, 32>;
  var sums: array<vec4<f32>, 32>;
  var delta = 0.0;
  for (var c = 0u; c < width4; c++) {
    query[c] = q[at + c] * params.scale;
    grad[c] = dy[at + c];
    sums[c] = vec4<f32>();
    delta += dot(grad[c], y[at + c]);
  }
  let lse = stats[2u * i];
  var first = 0u;
  if (params.documents != 0u) {
    first = u32(stats[2u * params.batch * len * heads + i / heads]);
  }
  for (var j = first; j < keys; j += 4u) {
    // Past the last key it is read again with weight zero.
    let rows = base + min(vec4<u32>(j, j + 1u, j + 2u, j + 3u), vec4<u32>(keys - 1u)) * step;
    var s = vec4<f32>();
    var d = vec4<f32>();
    for (var c = 0u; c < width4; c++) {
      let a = query[c];
      let g = grad[c];
      s += vec4<f32>(dot(a, k[rows.x + c]), dot(a, k[rows.y + c]), dot(a, k[rows.z + c]), dot(a, k[rows.w + c]));
      d += vec4<f32>(dot(g, v[rows.x + c]), dot(g, v[rows.y + c]), dot(g, v[rows.z + c]), dot(g, v[rows.w + c]));
    }
    let seen = vec4<u32>(j, j + 1u, j + 2u, j + 3u) < vec4<u32>(keys);
    let p = select(vec4<f32>(), exp(s - vec4<f32>(lse)), seen);
    let ds = p * (d - vec4<f32>(delta)) * params.scale;
    for (var c = 0u; c < width4; c++) {
      sums[c] += ds.x * k[rows.x + c] + ds.y * k[rows.y + c] + ds.z * k[rows.z + c] + ds.w * k[rows.w + c];
    }
  }
  for (var c = 0u; c < width4; c++) {
    dq[at + c] = sums[c];
  }
  stats[2u * i + 1u] = delta;
}
