// Made by shaders/blocks.mjs
// dv_j = Σ_t p dy_t, dk_j = scale Σ_t ds q_t over the queries t ≥ j − offset of one head, for GPUs; p, ds as in
// attention_backward_query_tile. q, dy [B, T, heads, H], k, v [B, offset + T, kv_heads, H], dk, dv [B, offset + T,
// heads, H], stats [B, T, heads, 2] = lse, delta.
// With documents, a query sees the keys from its first one on, which is stored after the stats and grows with t.
// A workgroup: 32 keys of one query head, by 32 queries at a time, and 64 columns of dk and dv: those of 128 do not fit
// into the registers of a thread, so that the scores of a wider head are computed again. Twin: ops/attention/kernels.rs
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

// The place of a row that is not there.
const NONE = 0xffffffffu;
var<workgroup> own: array<vec4<f32>, 160>;
var<workgroup> other: array<vec4<f32>, 160>;
// Own rows ty + 8 lane of the other row at ty + 8 place.
var<workgroup> scores: array<vec4<f32>, 256>;
// Own rows ty + 8 lane of the other row at ty + 8 place.
var<workgroup> slopes: array<vec4<f32>, 256>;
// Loops with barriers need bounds that are provably uniform: where the tiles begin, their number, the chunks of a row.
var<workgroup> walk: vec3<u32>;

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
  let halves = (width4 + 15u) / 16u;
  let left = tile % halves * 16u;
  let head = tile / halves % heads;
  let across = (all + 31u) / 32u;
  let b = tile / halves / heads / across;
  let top_row = tile / halves / heads % across * 32u;
  let q_base = (b * len * heads + head) * width4;
  let q_step = heads * width4;
  let k_base = (b * all * params.kv_heads + head / (heads / params.kv_heads)) * width4;
  let k_step = params.kv_heads * width4;
  let firsts = 2u * params.batch * len * heads + b * len;
  if (lane == 0u) {
    walk = vec3<u32>();
    if (tile < params.batch * heads * ((all + 31u) / 32u) * ((width4 + 15u) / 16u)) {
      let begin = min(max(top_row, params.offset) - params.offset, len - 1u);
      var end = len;
      if (params.documents != 0u) {
        // The number of queries from there on whose first key is not past these: their first keys grow.
        var count = 0u;
        for (var bit = 0x80000000u; bit > 0u; bit >>= 1u) {
          if (bit <= len - begin - count && stats[firsts + begin + count + bit - 1u] <= f32(top_row + 31u)) {
            count += bit;
          }
        }
        end = begin + max(count, 1u);
      }
      walk = vec3<u32>(begin, (end - begin + 31u) / 32u, (width4 + 3u) / 4u);
    }
  }
  let bounds = workgroupUniformLoad(&walk);
  let e0 = min(left + tx, width4 - 1u); let e1 = min(left + tx + 8u, width4 - 1u);
  var ka0 = vec4<f32>(); var ka1 = vec4<f32>();
  var kb0 = vec4<f32>(); var kb1 = vec4<f32>();
  var kc0 = vec4<f32>(); var kc1 = vec4<f32>();
  var kd0 = vec4<f32>(); var kd1 = vec4<f32>();
  var va0 = vec4<f32>(); var va1 = vec4<f32>();
  var vb0 = vec4<f32>(); var vb1 = vec4<f32>();
  var vc0 = vec4<f32>(); var vc1 = vec4<f32>();
  var vd0 = vec4<f32>(); var vd1 = vec4<f32>();
  for (var round = 0u; round < bounds.y; round++) {
    let start = bounds.x + 32u * round;
    var s0 = vec4<f32>(); var s1 = vec4<f32>(); var s2 = vec4<f32>(); var s3 = vec4<f32>();
    for (var chunk = 0u; chunk < bounds.z; chunk++) {
      let column = 4u * chunk + lane % 4u;
      var m0 = vec4<f32>(); var m1 = vec4<f32>(); var t0 = vec4<f32>(); var t1 = vec4<f32>();
      if (column < width4) {
        m0 = k[k_base + min(top_row + lane / 4u, all - 1u) * k_step + column];
        m1 = k[k_base + min(top_row + lane / 4u + 16u, all - 1u) * k_step + column];
        t0 = q[q_base + min(start + lane / 4u, len - 1u) * q_step + column];
        t1 = q[q_base + min(start + lane / 4u + 16u, len - 1u) * q_step + column];
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
    // The tiles of the other queries, read where they are needed, since registers are few.
    let j = vec4<u32>(top_row + ty) + vec4<u32>(0u, 8u, 16u, 24u);
    let t = vec4<u32>(start + tx) + vec4<u32>(0u, 8u, 16u, 24u);
    var first = vec4<u32>();
    if (params.documents != 0u) {
      let token = vec4<u32>(firsts) + min(t, vec4<u32>(len - 1u));
      first = vec4<u32>(vec4<f32>(stats[token.x], stats[token.y], stats[token.z], stats[token.w]));
    }
    let row_of = 2u * ((vec4<u32>(b * len) + min(t, vec4<u32>(len - 1u))) * heads + vec4<u32>(head));
    let lse = vec4<f32>(stats[row_of.x], stats[row_of.y], stats[row_of.z], stats[row_of.w]);
    let seen0 = (vec4<u32>(first.x) <= j) & (j <= vec4<u32>(params.offset + t.x)) & vec4<bool>(t.x < len);
    scores[8u * tx + ty] = select(vec4<f32>(), exp(s0 * params.scale - vec4<f32>(lse.x)), seen0);
    let seen1 = (vec4<u32>(first.y) <= j) & (j <= vec4<u32>(params.offset + t.y)) & vec4<bool>(t.y < len);
    scores[8u * tx + ty + 64u] = select(vec4<f32>(), exp(s1 * params.scale - vec4<f32>(lse.y)), seen1);
    let seen2 = (vec4<u32>(first.z) <= j) & (j <= vec4<u32>(params.offset + t.z)) & vec4<bool>(t.z < len);
    scores[8u * tx + ty + 128u] = select(vec4<f32>(), exp(s2 * params.scale - vec4<f32>(lse.z)), seen2);
    let seen3 = (vec4<u32>(first.w) <= j) & (j <= vec4<u32>(params.offset + t.w)) & vec4<bool>(t.w < len);
    scores[8u * tx + ty + 192u] = select(vec4<f32>(), exp(s3 * params.scale - vec4<f32>(lse.w)), seen3);
    if (params.cap > 0.0) {
      let bound = params.cap / params.scale;
      slopes[8u * tx + ty] = cap_slope(s0, bound);
      slopes[8u * tx + ty + 64u] = cap_slope(s1, bound);
      slopes[8u * tx + ty + 128u] = cap_slope(s2, bound);
      slopes[8u * tx + ty + 192u] = cap_slope(s3, bound);
    }
    var g0 = vec4<f32>(); var g1 = vec4<f32>(); var g2 = vec4<f32>(); var g3 = vec4<f32>();
    for (var chunk = 0u; chunk < bounds.z; chunk++) {
      let column = 4u * chunk + lane % 4u;
      var m0 = vec4<f32>(); var m1 = vec4<f32>(); var t0 = vec4<f32>(); var t1 = vec4<f32>();
      if (column < width4) {
        m0 = v[k_base + min(top_row + lane / 4u, all - 1u) * k_step + column];
        m1 = v[k_base + min(top_row + lane / 4u + 16u, all - 1u) * k_step + column];
        t0 = dy[q_base + min(start + lane / 4u, len - 1u) * q_step + column];
        t1 = dy[q_base + min(start + lane / 4u + 16u, len - 1u) * q_step + column];
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
    let query = min(vec4<u32>(start + tx) + vec4<u32>(0u, 8u, 16u, 24u), vec4<u32>(len - 1u));
    let delta_of = 2u * ((vec4<u32>(b * len) + query) * heads + vec4<u32>(head)) + vec4<u32>(1u);
    let delta = vec4<f32>(stats[delta_of.x], stats[delta_of.y], stats[delta_of.z], stats[delta_of.w]);
    g0 = (g0 - vec4<f32>(delta.x));
    g1 = (g1 - vec4<f32>(delta.y));
    g2 = (g2 - vec4<f32>(delta.z));
    g3 = (g3 - vec4<f32>(delta.w));
    // Each thread reads back what it wrote itself.
    if (params.cap > 0.0) {
      g0 *= slopes[8u * tx + ty]; g1 *= slopes[8u * tx + ty + 64u];
      g2 *= slopes[8u * tx + ty + 128u]; g3 *= slopes[8u * tx + ty + 192u];
    }
    slopes[8u * tx + ty] = scores[8u * tx + ty] * g0 * params.scale;
    slopes[8u * tx + ty + 64u] = scores[8u * tx + ty + 64u] * g1 * params.scale;
    slopes[8u * tx + ty + 128u] = scores[8u * tx + ty + 128u] * g2 * params.scale;
    slopes[8u * tx + ty + 192u] = scores[8u * tx + ty + 192u] * g3 * params.scale;
    workgroupBarrier();
    for (var i = 0u; i < 32u; i++) {
      let row = q_base + min(start + i, len - 1u) * q_step;
      let p = scores[8u * i + ty];
      let dy0 = dy[row + e0]; let dy1 = dy[row + e1];
      va0 = fma(vec4<f32>(p.x), dy0, va0); va1 = fma(vec4<f32>(p.x), dy1, va1);
      vb0 = fma(vec4<f32>(p.y), dy0, vb0); vb1 = fma(vec4<f32>(p.y), dy1, vb1);
      vc0 = fma(vec4<f32>(p.z), dy0, vc0); vc1 = fma(vec4<f32>(p.z), dy1, vc1);
      vd0 = fma(vec4<f32>(p.w), dy0, vd0); vd1 = fma(vec4<f32>(p.w), dy1, vd1);
      let g = slopes[8u * i + ty];
      let q0 = q[row + e0]; let q1 = q[row + e1];
      ka0 = fma(vec4<f32>(g.x), q0, ka0); ka1 = fma(vec4<f32>(g.x), q1, ka1);
      kb0 = fma(vec4<f32>(g.y), q0, kb0); kb1 = fma(vec4<f32>(g.y), q1, kb1);
      kc0 = fma(vec4<f32>(g.z), q0, kc0); kc1 = fma(vec4<f32>(g.z), q1, kc1);
      kd0 = fma(vec4<f32>(g.w), q0, kd0); kd1 = fma(vec4<f32>(g.w), q1, kd1);
    }
  }
  if (bounds.y == 0u) {
    return;
  }
  let own_j = vec4<u32>(top_row + ty) + vec4<u32>(0u, 8u, 16u, 24u);
  let at = select(vec4<u32>(NONE), (vec4<u32>(b * all) + own_j) * heads + vec4<u32>(head), own_j < vec4<u32>(all));
  if (at.x != NONE && left + tx < width4) {
    dk[at.x * width4 + left + tx] = ka0;
  }
  if (at.x != NONE && left + tx + 8u < width4) {
    dk[at.x * width4 + left + tx + 8u] = ka1;
  }
  if (at.y != NONE && left + tx < width4) {
    dk[at.y * width4 + left + tx] = kb0;
  }
  if (at.y != NONE && left + tx + 8u < width4) {
    dk[at.y * width4 + left + tx + 8u] = kb1;
  }
  if (at.z != NONE && left + tx < width4) {
    dk[at.z * width4 + left + tx] = kc0;
  }
  if (at.z != NONE && left + tx + 8u < width4) {
    dk[at.z * width4 + left + tx + 8u] = kc1;
  }
  if (at.w != NONE && left + tx < width4) {
    dk[at.w * width4 + left + tx] = kd0;
  }
  if (at.w != NONE && left + tx + 8u < width4) {
    dk[at.w * width4 + left + tx + 8u] = kd1;
  }
  if (at.x != NONE && left + tx < width4) {
    dv[at.x * width4 + left + tx] = va0;
  }
  if (at.x != NONE && left + tx + 8u < width4) {
    dv[at.x * width4 + left + tx + 8u] = va1;
  }
  if (at.y != NONE && left + tx < width4) {
    dv[at.y * width4 + left + tx] = vb0;
  }
  if (at.y != NONE && left + tx + 8u < width4) {
    dv[at.y * width4 + left + tx + 8u] = vb1;
  }
  if (at.z != NONE && left + tx < width4) {
    dv[at.z * width4 + left + tx] = vc0;
  }
  if (at.z != NONE && left + tx + 8u < width4) {
    dv[at.z * width4 + left + tx + 8u] = vc1;
  }
  if (at.w != NONE && left + tx < width4) {
    dv[at.w * width4 + left + tx] = vd0;
  }
  if (at.w != NONE && left + tx + 8u < width4) {
    dv[at.w * width4 + left + tx + 8u] = vd1;
  }
}
