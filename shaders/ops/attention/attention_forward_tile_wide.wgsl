// Made by shaders/blocks.mjs
// Causal attention, grouped queries, online softmax, for GPUs: y = softmax(scale q kᵀ) v over the keys first ..= offset
// + t; with cap > 0 a score z is cap tanh(z / cap). With documents, first is starts [B, T], which grows with t and is
// stored as f32 after the stats; otherwise first is 0 (and one word of starts is bound). q, y [B, T, heads, H],
// k, v [B, offset + T, kv_heads, H], stats [B, T, heads, 2] = log Σ exp, 0; H = 4 width4.
// A workgroup: 32 queries of one head and 128 columns of it, by 32 keys at a time. Twin: ops/attention/kernels.rs
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

const LOWEST = -3.4028234e38;

// The place of a row that is not there.
const NONE = 0xffffffffu;
var<workgroup> own: array<vec4<f32>, 160>;
var<workgroup> other: array<vec4<f32>, 160>;
// Own rows ty + 8 lane of the other row at ty + 8 place.
var<workgroup> scores: array<vec4<f32>, 256>;
// Loops with barriers need bounds that are provably uniform: where the tiles begin, their number, the chunks of a row.
var<workgroup> walk: vec3<u32>;
var<workgroup> partial: array<vec4<f32>, 64>;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let heads = params.heads; let len = params.len; let width4 = params.width4;
  let all = params.offset + len;
  let tile = group_index(group, groups);
  let tx = lane % 8u;
  let ty = lane / 8u;
  let parts = (width4 + 31u) / 32u;
  let left = tile % parts * 32u;
  let across = (len + 31u) / 32u;
  let head = tile / parts % heads;
  let b = tile / parts / heads / across;
  let top_row = (across - 1u - tile / parts / heads % across) * 32u;
  let q_base = (b * len * heads + head) * width4;
  let k_base = (b * all * params.kv_heads + head / (heads / params.kv_heads)) * width4;
  let k_step = params.kv_heads * width4;
  let q_step = heads * width4;
  if (lane == 0u) {
    walk = vec3<u32>();
    if (tile < params.batch * heads * ((len + 31u) / 32u) * ((width4 + 31u) / 32u)) {
      var begin = 0u;
      if (params.documents != 0u) {
        begin = min(starts[b * len + top_row], params.offset + top_row);
      }
      let end = min(params.offset + top_row + 32u, all);
      walk = vec3<u32>(begin, (end - begin + 31u) / 32u, (width4 + 3u) / 4u);
    }
  }
  let bounds = workgroupUniformLoad(&walk);
  let e0 = min(left + tx, width4 - 1u); let e1 = min(left + tx + 8u, width4 - 1u);
  let e2 = min(left + tx + 16u, width4 - 1u); let e3 = min(left + tx + 24u, width4 - 1u);
  var a0 = vec4<f32>(); var a1 = vec4<f32>();
  var a2 = vec4<f32>(); var a3 = vec4<f32>();
  var b0 = vec4<f32>(); var b1 = vec4<f32>();
  var b2 = vec4<f32>(); var b3 = vec4<f32>();
  var c0 = vec4<f32>(); var c1 = vec4<f32>();
  var c2 = vec4<f32>(); var c3 = vec4<f32>();
  var d0 = vec4<f32>(); var d1 = vec4<f32>();
  var d2 = vec4<f32>(); var d3 = vec4<f32>();
  var top = vec4<f32>(LOWEST);
  var total = vec4<f32>();
  for (var round = 0u; round < bounds.y; round++) {
    let start = bounds.x + 32u * round;
    var s0 = vec4<f32>(); var s1 = vec4<f32>(); var s2 = vec4<f32>(); var s3 = vec4<f32>();
    for (var chunk = 0u; chunk < bounds.z; chunk++) {
      let column = 4u * chunk + lane % 4u;
      var m0 = vec4<f32>(); var m1 = vec4<f32>(); var t0 = vec4<f32>(); var t1 = vec4<f32>();
      if (column < width4) {
        m0 = q[q_base + min(top_row + lane / 4u, len - 1u) * q_step + column];
        m1 = q[q_base + min(top_row + lane / 4u + 16u, len - 1u) * q_step + column];
        t0 = k[k_base + min(start + lane / 4u, all - 1u) * k_step + column];
        t1 = k[k_base + min(start + lane / 4u + 16u, all - 1u) * k_step + column];
      }
      let into = lane / 4u * 5u + lane % 4u;
      own[into] = m0; own[into + 80u] = m1; other[into] = t0; other[into + 80u] = t1;
      workgroupBarrier();
      for (var i = 0u; i < 4u; i++) {
        let p0 = own[ty * 5u + i]; let p1 = own[ty * 5u + i + 40u];
        let p2 = own[ty * 5u + i + 80u]; let p3 = own[ty * 5u + i + 120u];
        let px = vec4<f32>(p0.x, p1.x, p2.x, p3.x);
        let py = vec4<f32>(p0.y, p1.y, p2.y, p3.y);
        let pz = vec4<f32>(p0.z, p1.z, p2.z, p3.z);
        let pw = vec4<f32>(p0.w, p1.w, p2.w, p3.w);
        let q0 = other[tx * 5u + i];
        s0 = fma(pw, vec4<f32>(q0.w), fma(pz, vec4<f32>(q0.z), fma(py, vec4<f32>(q0.y), fma(px, vec4<f32>(q0.x), s0))));
        let q1 = other[tx * 5u + i + 40u];
        s1 = fma(pw, vec4<f32>(q1.w), fma(pz, vec4<f32>(q1.z), fma(py, vec4<f32>(q1.y), fma(px, vec4<f32>(q1.x), s1))));
        let q2 = other[tx * 5u + i + 80u];
        s2 = fma(pw, vec4<f32>(q2.w), fma(pz, vec4<f32>(q2.z), fma(py, vec4<f32>(q2.y), fma(px, vec4<f32>(q2.x), s2))));
        let q3 = other[tx * 5u + i + 120u];
        s3 = fma(pw, vec4<f32>(q3.w), fma(pz, vec4<f32>(q3.z), fma(py, vec4<f32>(q3.y), fma(px, vec4<f32>(q3.x), s3))));
      }
      workgroupBarrier();
    }
    if (params.cap > 0.0) {
      let bound = params.cap / params.scale;
      s0 = capped(s0, bound); s1 = capped(s1, bound);
      s2 = capped(s2, bound); s3 = capped(s3, bound);
    }
    let own_t = min(vec4<u32>(top_row + ty) + vec4<u32>(0u, 8u, 16u, 24u), vec4<u32>(len - 1u));
    let last = vec4<u32>(params.offset) + own_t;
    var first = vec4<u32>();
    if (params.documents != 0u) {
      let token = vec4<u32>(b * len) + own_t;
      first = min(vec4<u32>(starts[token.x], starts[token.y], starts[token.z], starts[token.w]), last);
    }
    let key0 = vec4<u32>(start + tx);
    let seen0 = (key0 >= first) & (key0 <= last);
    let key1 = vec4<u32>(start + tx + 8u);
    let seen1 = (key1 >= first) & (key1 <= last);
    let key2 = vec4<u32>(start + tx + 16u);
    let seen2 = (key2 >= first) & (key2 <= last);
    let key3 = vec4<u32>(start + tx + 24u);
    let seen3 = (key3 >= first) & (key3 <= last);
    s0 = select(vec4<f32>(LOWEST), s0 * params.scale, seen0);
    s1 = select(vec4<f32>(LOWEST), s1 * params.scale, seen1);
    s2 = select(vec4<f32>(LOWEST), s2 * params.scale, seen2);
    s3 = select(vec4<f32>(LOWEST), s3 * params.scale, seen3);
    partial[lane] = max(max(s0, s1), max(s2, s3));
    workgroupBarrier();
    var next = top;
    next = max(next, partial[8u * ty]); next = max(next, partial[8u * ty + 1u]);
    next = max(next, partial[8u * ty + 2u]); next = max(next, partial[8u * ty + 3u]);
    next = max(next, partial[8u * ty + 4u]); next = max(next, partial[8u * ty + 5u]);
    next = max(next, partial[8u * ty + 6u]); next = max(next, partial[8u * ty + 7u]);
    let old = exp(top - next);
    top = next;
    s0 = select(vec4<f32>(), exp(s0 - next), seen0);
    s1 = select(vec4<f32>(), exp(s1 - next), seen1);
    s2 = select(vec4<f32>(), exp(s2 - next), seen2);
    s3 = select(vec4<f32>(), exp(s3 - next), seen3);
    total = fma(total, old, (s0 + s1) + (s2 + s3));
    scores[8u * tx + ty] = s0; scores[8u * tx + ty + 64u] = s1;
    scores[8u * tx + ty + 128u] = s2; scores[8u * tx + ty + 192u] = s3;
    a0 *= old.x; a1 *= old.x; a2 *= old.x; a3 *= old.x;
    b0 *= old.y; b1 *= old.y; b2 *= old.y; b3 *= old.y;
    c0 *= old.z; c1 *= old.z; c2 *= old.z; c3 *= old.z;
    d0 *= old.w; d1 *= old.w; d2 *= old.w; d3 *= old.w;
    workgroupBarrier();
    for (var j = 0u; j < 32u; j++) {
      let p = scores[8u * j + ty];
      let row = k_base + min(start + j, all - 1u) * k_step;
      let v0 = v[row + e0]; let v1 = v[row + e1];
      let v2 = v[row + e2]; let v3 = v[row + e3];
      a0 = fma(vec4<f32>(p.x), v0, a0); a1 = fma(vec4<f32>(p.x), v1, a1);
      a2 = fma(vec4<f32>(p.x), v2, a2); a3 = fma(vec4<f32>(p.x), v3, a3);
      b0 = fma(vec4<f32>(p.y), v0, b0); b1 = fma(vec4<f32>(p.y), v1, b1);
      b2 = fma(vec4<f32>(p.y), v2, b2); b3 = fma(vec4<f32>(p.y), v3, b3);
      c0 = fma(vec4<f32>(p.z), v0, c0); c1 = fma(vec4<f32>(p.z), v1, c1);
      c2 = fma(vec4<f32>(p.z), v2, c2); c3 = fma(vec4<f32>(p.z), v3, c3);
      d0 = fma(vec4<f32>(p.w), v0, d0); d1 = fma(vec4<f32>(p.w), v1, d1);
      d2 = fma(vec4<f32>(p.w), v2, d2); d3 = fma(vec4<f32>(p.w), v3, d3);
    }
  }
  if (bounds.y == 0u) {
    return;
  }
  let t = vec4<u32>(top_row + ty) + vec4<u32>(0u, 8u, 16u, 24u);
  let at = select(vec4<u32>(NONE), (vec4<u32>(b * len) + t) * heads + vec4<u32>(head), t < vec4<u32>(len));
  let own_t = min(vec4<u32>(top_row + ty) + vec4<u32>(0u, 8u, 16u, 24u), vec4<u32>(len - 1u));
  let last = vec4<u32>(params.offset) + own_t;
  var first = vec4<u32>();
  if (params.documents != 0u) {
    let token = vec4<u32>(b * len) + own_t;
    first = min(vec4<u32>(starts[token.x], starts[token.y], starts[token.z], starts[token.w]), last);
  }
  partial[lane] = total;
  workgroupBarrier();
  total = vec4<f32>();
  total = total + partial[8u * ty]; total = total + partial[8u * ty + 1u];
  total = total + partial[8u * ty + 2u]; total = total + partial[8u * ty + 3u];
  total = total + partial[8u * ty + 4u]; total = total + partial[8u * ty + 5u];
  total = total + partial[8u * ty + 6u]; total = total + partial[8u * ty + 7u];
  if (at.x != NONE && left + tx < width4) {
    y[at.x * width4 + left + tx] = a0 / total.x;
  }
  if (at.x != NONE && left + tx + 8u < width4) {
    y[at.x * width4 + left + tx + 8u] = a1 / total.x;
  }
  if (at.x != NONE && left + tx + 16u < width4) {
    y[at.x * width4 + left + tx + 16u] = a2 / total.x;
  }
  if (at.x != NONE && left + tx + 24u < width4) {
    y[at.x * width4 + left + tx + 24u] = a3 / total.x;
  }
  if (at.y != NONE && left + tx < width4) {
    y[at.y * width4 + left + tx] = b0 / total.y;
  }
  if (at.y != NONE && left + tx + 8u < width4) {
    y[at.y * width4 + left + tx + 8u] = b1 / total.y;
  }
  if (at.y != NONE && left + tx + 16u < width4) {
    y[at.y * width4 + left + tx + 16u] = b2 / total.y;
  }
  if (at.y != NONE && left + tx + 24u < width4) {
    y[at.y * width4 + left + tx + 24u] = b3 / total.y;
  }
  if (at.z != NONE && left + tx < width4) {
    y[at.z * width4 + left + tx] = c0 / total.z;
  }
  if (at.z != NONE && left + tx + 8u < width4) {
    y[at.z * width4 + left + tx + 8u] = c1 / total.z;
  }
  if (at.z != NONE && left + tx + 16u < width4) {
    y[at.z * width4 + left + tx + 16u] = c2 / total.z;
  }
  if (at.z != NONE && left + tx + 24u < width4) {
    y[at.z * width4 + left + tx + 24u] = c3 / total.z;
  }
  if (at.w != NONE && left + tx < width4) {
    y[at.w * width4 + left + tx] = d0 / total.w;
  }
  if (at.w != NONE && left + tx + 8u < width4) {
    y[at.w * width4 + left + tx + 8u] = d1 / total.w;
  }
  if (at.w != NONE && left + tx + 16u < width4) {
    y[at.w * width4 + left + tx + 16u] = d2 / total.w;
  }
  if (at.w != NONE && left + tx + 24u < width4) {
    y[at.w * width4 + left + tx + 24u] = d3 / total.w;
  }
  let lse = top + log(total);
  if (left + tx == 0u && at.x != NONE) {
    stats[2u * at.x] = lse.x;
    stats[2u * at.x + 1u] = 0.0;
    if (params.documents != 0u && head == 0u) {
      stats[2u * params.batch * len * heads + b * len + t.x] = f32(first.x);
    }
  }
  if (left + tx == 0u && at.y != NONE) {
    stats[2u * at.y] = lse.y;
    stats[2u * at.y + 1u] = 0.0;
    if (params.documents != 0u && head == 0u) {
      stats[2u * params.batch * len * heads + b * len + t.y] = f32(first.y);
    }
  }
  if (left + tx == 0u && at.z != NONE) {
    stats[2u * at.z] = lse.z;
    stats[2u * at.z + 1u] = 0.0;
    if (params.documents != 0u && head == 0u) {
      stats[2u * params.batch * len * heads + b * len + t.z] = f32(first.z);
    }
  }
  if (left + tx == 0u && at.w != NONE) {
    stats[2u * at.w] = lse.w;
    stats[2u * at.w + 1u] = 0.0;
    if (params.documents != 0u && head == 0u) {
      stats[2u * params.batch * len * heads + b * len + t.w] = f32(first.w);
    }
  }
}
