// dq = scale Σ_j ds_j k_j with p_j = exp(scale q k_j − lse), ds_j = p_j (dy v_j − delta), delta = dy y.
// Shapes and cap, whose slope ds_j has too, as in attention_forward; stats [B, T, heads, 2]: lse is read, delta written
// for the kernel of keys and values. One thread: one query of one head against one key at a time; dq holds the sums.
// Twin: ops/attention/kernels.rs
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
  var first = 0u;
  if (params.documents != 0u) {
    first = u32(stats[2u * params.batch * len * heads + i / heads]);
  }
  let lse = stats[2u * i];
  var delta = 0.0;
  for (var c = 0u; c < width4; c++) {
    delta += dot(dy[at + c], y[at + c]);
    dq[at + c] = vec4<f32>();
  }
  stats[2u * i + 1u] = delta;
  for (var j = first; j < keys; j++) {
    let row = base + j * step;
    var s = 0.0;
    var d = 0.0;
    for (var c = 0u; c < width4; c++) {
      s += dot(q[at + c], k[row + c]);
      d += dot(dy[at + c], v[row + c]);
    }
    d -= delta;
    if (params.cap > 0.0) {
      let bound = params.cap / params.scale;
      s = capped(vec4<f32>(s), bound).x;
      d *= cap_slope(vec4<f32>(s), bound).x;
    }
    let ds = exp(s * params.scale - lse) * d * params.scale;
    for (var c = 0u; c < width4; c++) {
      dq[at + c] += ds * k[row + c];
    }
  }
}
