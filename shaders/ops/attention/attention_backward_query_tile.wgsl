// Made by shaders/blocks.mjs
// dq = scale Σ_j ds_j k_j with p_j = exp(scale q k_j − lse), ds_j = p_j (dy v_j − delta), delta = dy y, for GPUs.
// Shapes and cap, whose slope ds_j has too, as in attention_forward_tile, H = 4 width4 ≤ 64; stats [B, T, heads, 2]:
// lse is read, delta written for attention_backward_key_value_tile; with documents, the first key of each query [B, T]
// is stored after them.
// A workgroup: 32 queries of one head, by 32 keys at a time. Twin: ops/attention/kernels.rs
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
  let across = (len + 31u) / 32u;
  let head = tile % heads;
  let b = tile / heads / across;
  let top_row = (across - 1u - tile / heads % across) * 32u;
  let q_base = (b * len * heads + head) * width4;
  let k_base = (b * all * params.kv_heads + head / (heads / params.kv_heads)) * width4;
  let k_step = params.kv_heads * width4;
  let q_step = heads * width4;
  if (lane == 0u) {
    walk = vec3<u32>();
    if (tile < params.batch * heads * ((len + 31u) / 32u)) {
      var begin = 0u;
      if (params.documents != 0u) {
        begin = u32(stats[2u * params.batch * len * heads + b * len + top_row]);
      }
      let end = min(params.offset + top_row + 32u, all);
      walk = vec3<u32>(begin, (end - begin + 31u) / 32u, (width4 + 3u) / 4u);
    }
  }
  let bounds = workgroupUniformLoad(&walk);
  let e0 = min(tx, width4 - 1u); let e1 = min(tx + 8u, width4 - 1u);
  // The deltas of the own rows, which stay in workgroup memory.
  var delta = vec4<f32>();
  if (bounds.y != 0u) {
    let t = min(vec4<u32>(top_row + ty) + vec4<u32>(0u, 8u, 16u, 24u), vec4<u32>(len - 1u));
    let rows = (vec4<u32>(b * len) + t) * heads + vec4<u32>(head);
    for (var c = tx; c < width4; c += 8u) {
      let i = rows * width4 + c;
      delta += vec4<f32>(dot(dy[i.x], y[i.x]), dot(dy[i.y], y[i.y]), dot(dy[i.z], y[i.z]), dot(dy[i.w], y[i.w]));
    }
  }
  partial[lane] = delta;
  workgroupBarrier();
  delta = vec4<f32>();
  delta = delta + partial[8u * ty]; delta = delta + partial[8u * ty + 1u];
  delta = delta + partial[8u * ty + 2u]; delta = delta + partial[8u * ty + 3u];
  delta = delta + partial[8u * ty + 4u]; delta = delta + partial[8u * ty + 5u];
  delta = delta + partial[8u * ty + 6u]; delta = delta + partial[8u * ty + 7u];
  workgroupBarrier();
  partial[lane] = delta;
  var a0 = vec4<f32>(); var a1 = vec4<f32>();
  var b0 = vec4<f32>(); var b1 = vec4<f32>();
  var c0 = vec4<f32>(); var c1 = vec4<f32>();
  var d0 = vec4<f32>(); var d1 = vec4<f32>();
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
      let token = vec4<u32>(2u * params.batch * len * heads + b * len) + own_t;
      first = vec4<u32>(vec4<f32>(stats[token.x], stats[token.y], stats[token.z], stats[token.w]));
    }
    let row_of = 2u * ((vec4<u32>(b * len) + own_t) * heads + vec4<u32>(head));
    let lse = vec4<f32>(stats[row_of.x], stats[row_of.y], stats[row_of.z], stats[row_of.w]);
    let key0 = vec4<u32>(start + tx);
    let seen0 = (key0 >= first) & (key0 <= last);
    let key1 = vec4<u32>(start + tx + 8u);
    let seen1 = (key1 >= first) & (key1 <= last);
    let key2 = vec4<u32>(start + tx + 16u);
    let seen2 = (key2 >= first) & (key2 <= last);
    let key3 = vec4<u32>(start + tx + 24u);
    let seen3 = (key3 >= first) & (key3 <= last);
    scores[8u * tx + ty] = select(vec4<f32>(), exp(s0 * params.scale - lse), seen0);
    scores[8u * tx + ty + 64u] = select(vec4<f32>(), exp(s1 * params.scale - lse), seen1);
    scores[8u * tx + ty + 128u] = select(vec4<f32>(), exp(s2 * params.scale - lse), seen2);
    scores[8u * tx + ty + 192u] = select(vec4<f32>(), exp(s3 * params.scale - lse), seen3);
    if (params.cap > 0.0) {
      let bound = params.cap / params.scale;
      scores[8u * tx + ty] *= cap_slope(s0, bound);
      scores[8u * tx + ty + 64u] *= cap_slope(s1, bound);
      scores[8u * tx + ty + 128u] *= cap_slope(s2, bound);
      scores[8u * tx + ty + 192u] *= cap_slope(s3, bound);
    }
    var g0 = vec4<f32>(); var g1 = vec4<f32>(); var g2 = vec4<f32>(); var g3 = vec4<f32>();
    for (var chunk = 0u; chunk < bounds.z; chunk++) {
      let column = 4u * chunk + lane % 4u;
      var m0 = vec4<f32>(); var m1 = vec4<f32>(); var t0 = vec4<f32>(); var t1 = vec4<f32>();
      if (column < width4) {
        m0 = dy[q_base + min(top_row + lane / 4u, len - 1u) * q_step + column];
        m1 = dy[q_base + min(top_row + lane / 4u + 16u, len - 1u) * q_step + column];
        t0 = v[k_base + min(start + lane / 4u, all - 1u) * k_step + column];
        t1 = v[k_base + min(start + lane / 4u + 16u, all - 1u) * k_step + column];
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
        g0 = fma(pw, vec4<f32>(q0.w), fma(pz, vec4<f32>(q0.z), fma(py, vec4<f32>(q0.y), fma(px, vec4<f32>(q0.x), g0))));
        let q1 = other[tx * 5u + i + 40u];
        g1 = fma(pw, vec4<f32>(q1.w), fma(pz, vec4<f32>(q1.z), fma(py, vec4<f32>(q1.y), fma(px, vec4<f32>(q1.x), g1))));
        let q2 = other[tx * 5u + i + 80u];
        g2 = fma(pw, vec4<f32>(q2.w), fma(pz, vec4<f32>(q2.z), fma(py, vec4<f32>(q2.y), fma(px, vec4<f32>(q2.x), g2))));
        let q3 = other[tx * 5u + i + 120u];
        g3 = fma(pw, vec4<f32>(q3.w), fma(pz, vec4<f32>(q3.z), fma(py, vec4<f32>(q3.y), fma(px, vec4<f32>(q3.x), g3))));
      }
      workgroupBarrier();
    }
    // Each thread reads back what it wrote itself.
    scores[8u * tx + ty] *= (g0 - partial[lane]) * params.scale;
    scores[8u * tx + ty + 64u] *= (g1 - partial[lane]) * params.scale;
    scores[8u * tx + ty + 128u] *= (g2 - partial[lane]) * params.scale;
    scores[8u * tx + ty + 192u] *= (g3 - partial[lane]) * params.scale;
    workgroupBarrier();
    for (var j = 0u; j < 32u; j++) {
      let p = scores[8u * j + ty];
      let row = k_base + min(start + j, all - 1u) * k_step;
      let k0 = k[row + e0]; let k1 = k[row + e1];
      a0 = fma(vec4<f32>(p.x), k0, a0); a1 = fma(vec4<f32>(p.x), k1, a1);
      b0 = fma(vec4<f32>(p.y), k0, b0); b1 = fma(vec4<f32>(p.y), k1, b1);
      c0 = fma(vec4<f32>(p.z), k0, c0); c1 = fma(vec4<f32>(p.z), k1, c1);
      d0 = fma(vec4<f32>(p.w), k0, d0); d1 = fma(vec4<f32>(p.w), k1, d1);
    }
  }
  if (bounds.y == 0u) {
    return;
  }
  let t = vec4<u32>(top_row + ty) + vec4<u32>(0u, 8u, 16u, 24u);
  let at = select(vec4<u32>(NONE), (vec4<u32>(b * len) + t) * heads + vec4<u32>(head), t < vec4<u32>(len));
  if (at.x != NONE && tx < width4) {
    dq[at.x * width4 + tx] = a0;
  }
  if (at.x != NONE && tx + 8u < width4) {
    dq[at.x * width4 + tx + 8u] = a1;
  }
  if (at.y != NONE && tx < width4) {
    dq[at.y * width4 + tx] = b0;
  }
  if (at.y != NONE && tx + 8u < width4) {
    dq[at.y * width4 + tx + 8u] = b1;
  }
  if (at.z != NONE && tx < width4) {
    dq[at.z * width4 + tx] = c0;
  }
  if (at.z != NONE && tx + 8u < width4) {
    dq[at.z * width4 + tx + 8u] = c1;
  }
  if (at.w != NONE && tx < width4) {
    dq[at.w * width4 + tx] = d0;
  }
  if (at.w != NONE && tx + 8u < width4) {
    dq[at.w * width4 + tx + 8u] = d1;
  }
  if (tx == 0u && at.x != NONE) {
    stats[2u * at.x + 1u] = partial[lane].x;
  }
  if (tx == 0u && at.y != NONE) {
    stats[2u * at.y + 1u] = partial[lane].y;
  }
  if (tx == 0u && at.z != NONE) {
    stats[2u * at.z + 1u] = partial[lane].z;
  }
  if (tx == 0u && at.w != NONE) {
    stats[2u * at.w + 1u] = partial[lane].w;
  }
}
