// Made by shaders/blocks.mjs
// Causal attention, grouped queries, online softmax: y = softmax(scale q kᵀ) v over the keys first ..= offset + t;
// first, cap: attention_forward. q, y [B, T, heads, H], k, v [B, offset + T, kv_heads, H],
// stats [B, T, heads, 2] = log Σ exp, 0; H = 4 width4.
// One thread: 8 queries of one head against 8 keys at a time, so that each element loaded serves 8 products; y holds
// the sums. A long row is cut: this launch adds the keys first .. end, stats keep the maximum and the sum between
// launches. Past an edge the last row is computed again: the same numbers are stored in the same place.
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
  first: u32,
  end: u32,
}

@group(0) @binding(0) var<storage, read_write> q: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> k: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> v: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> starts: array<u32>;
@group(0) @binding(4) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> stats: array<f32>;
@group(0) @binding(6) var<storage, read_write> params: Params;

const LOWEST: f32 = -3.4028234e38;

fn dots(p: vec4<f32>, a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>) -> vec4<f32> {
  return vec4<f32>(dot(p, a), dot(p, b), dot(p, c), dot(p, d));
}

@compute @workgroup_size(32)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 32u);
  let heads = params.heads; let kv_heads = params.kv_heads; let len = params.len; let width4 = params.width4;
  let all = params.offset + len;
  let blocks = (len + 7u) / 8u;
  if (i >= params.batch * blocks * heads) {
    return;
  }
  let head = i % heads;
  let b = i / heads / blocks;
  let t = i / heads % blocks * 8u;
  let tl = min(vec4<u32>(t, t + 1u, t + 2u, t + 3u), vec4<u32>(len - 1u));
  let th = min(vec4<u32>(t + 4u, t + 5u, t + 6u, t + 7u), vec4<u32>(len - 1u));
  let keys = params.offset + th.w + 1u;
  let end = min(keys, params.end);
  if (params.first >= end) {
    return;
  }
  let ql = ((b * len + tl) * heads + head) * width4;
  let qh = ((b * len + th) * heads + head) * width4;
  let base = (b * all * kv_heads + head / (heads / kv_heads)) * width4;
  let step = kv_heads * width4;
  var firstl = vec4<u32>();
  var firsth = vec4<u32>();
  if (params.documents != 0u) {
    for (var r = 0u; r < 4u; r++) {
      firstl[r] = min(starts[b * len + tl[r]], params.offset + tl[r]);
      firsth[r] = min(starts[b * len + th[r]], params.offset + th[r]);
    }
    if (head == 0u) {
      let tail = 2u * params.batch * len * heads + b * len;
      for (var r = 0u; r < 4u; r++) {
        stats[tail + tl[r]] = f32(firstl[r]);
        stats[tail + th[r]] = f32(firsth[r]);
      }
    }
  }
  let seenl = params.offset + tl - firstl;
  let seenh = params.offset + th - firsth;
  var topl = vec4<f32>(LOWEST);
  var toph = vec4<f32>(LOWEST);
  var suml = vec4<f32>();
  var sumh = vec4<f32>();
  if (params.first == 0u) {
    for (var c = 0u; c < width4; c++) {
      for (var r = 0u; r < 4u; r++) {
        y[ql[r] + c] = vec4<f32>();
        y[qh[r] + c] = vec4<f32>();
      }
    }
  } else {
    for (var r = 0u; r < 4u; r++) {
      let sl = 2u * ((b * len + tl[r]) * heads + head); topl[r] = stats[sl]; suml[r] = stats[sl + 1u];
      let sh = 2u * ((b * len + th[r]) * heads + head); toph[r] = stats[sh]; sumh[r] = stats[sh + 1u];
    }
  }
  for (var j = max(params.first, firstl.x / 8u * 8u); j < end; j += 8u) {
    // Keys counted from each query's first: those before it wrap around, past all that are seen.
    let froml = vec4<u32>(j) - firstl;
    let fromh = vec4<u32>(j) - firsth;
    let kl = base + min(vec4<u32>(j, j + 1u, j + 2u, j + 3u), vec4<u32>(all - 1u)) * step;
    let kh = base + min(vec4<u32>(j + 4u, j + 5u, j + 6u, j + 7u), vec4<u32>(all - 1u)) * step;
    var l0 = vec4<f32>(); var h0 = vec4<f32>();
    var l1 = vec4<f32>(); var h1 = vec4<f32>();
    var l2 = vec4<f32>(); var h2 = vec4<f32>();
    var l3 = vec4<f32>(); var h3 = vec4<f32>();
    var l4 = vec4<f32>(); var h4 = vec4<f32>();
    var l5 = vec4<f32>(); var h5 = vec4<f32>();
    var l6 = vec4<f32>(); var h6 = vec4<f32>();
    var l7 = vec4<f32>(); var h7 = vec4<f32>();
    for (var c = 0u; c < width4; c++) {
      let a0 = q[ql.x + c]; let a1 = q[ql.y + c]; let a2 = q[ql.z + c]; let a3 = q[ql.w + c];
      let a4 = q[qh.x + c]; let a5 = q[qh.y + c]; let a6 = q[qh.z + c]; let a7 = q[qh.w + c];
      let b0 = k[kl.x + c]; l0 += dots(b0, a0, a1, a2, a3); h0 += dots(b0, a4, a5, a6, a7);
      let b1 = k[kl.y + c]; l1 += dots(b1, a0, a1, a2, a3); h1 += dots(b1, a4, a5, a6, a7);
      let b2 = k[kl.z + c]; l2 += dots(b2, a0, a1, a2, a3); h2 += dots(b2, a4, a5, a6, a7);
      let b3 = k[kl.w + c]; l3 += dots(b3, a0, a1, a2, a3); h3 += dots(b3, a4, a5, a6, a7);
      let b4 = k[kh.x + c]; l4 += dots(b4, a0, a1, a2, a3); h4 += dots(b4, a4, a5, a6, a7);
      let b5 = k[kh.y + c]; l5 += dots(b5, a0, a1, a2, a3); h5 += dots(b5, a4, a5, a6, a7);
      let b6 = k[kh.z + c]; l6 += dots(b6, a0, a1, a2, a3); h6 += dots(b6, a4, a5, a6, a7);
      let b7 = k[kh.w + c]; l7 += dots(b7, a0, a1, a2, a3); h7 += dots(b7, a4, a5, a6, a7);
    }
    if (params.cap > 0.0) {
      let bound = params.cap / params.scale;
      l0 = capped(l0, bound); h0 = capped(h0, bound);
      l1 = capped(l1, bound); h1 = capped(h1, bound);
      l2 = capped(l2, bound); h2 = capped(h2, bound);
      l3 = capped(l3, bound); h3 = capped(h3, bound);
      l4 = capped(l4, bound); h4 = capped(h4, bound);
      l5 = capped(l5, bound); h5 = capped(h5, bound);
      l6 = capped(l6, bound); h6 = capped(h6, bound);
      l7 = capped(l7, bound); h7 = capped(h7, bound);
    }
    l0 = select(vec4<f32>(LOWEST), l0 * params.scale, froml + 0u <= seenl);
    h0 = select(vec4<f32>(LOWEST), h0 * params.scale, fromh + 0u <= seenh);
    l1 = select(vec4<f32>(LOWEST), l1 * params.scale, froml + 1u <= seenl);
    h1 = select(vec4<f32>(LOWEST), h1 * params.scale, fromh + 1u <= seenh);
    l2 = select(vec4<f32>(LOWEST), l2 * params.scale, froml + 2u <= seenl);
    h2 = select(vec4<f32>(LOWEST), h2 * params.scale, fromh + 2u <= seenh);
    l3 = select(vec4<f32>(LOWEST), l3 * params.scale, froml + 3u <= seenl);
    h3 = select(vec4<f32>(LOWEST), h3 * params.scale, fromh + 3u <= seenh);
    l4 = select(vec4<f32>(LOWEST), l4 * params.scale, froml + 4u <= seenl);
    h4 = select(vec4<f32>(LOWEST), h4 * params.scale, fromh + 4u <= seenh);
    l5 = select(vec4<f32>(LOWEST), l5 * params.scale, froml + 5u <= seenl);
    h5 = select(vec4<f32>(LOWEST), h5 * params.scale, fromh + 5u <= seenh);
    l6 = select(vec4<f32>(LOWEST), l6 * params.scale, froml + 6u <= seenl);
    h6 = select(vec4<f32>(LOWEST), h6 * params.scale, fromh + 6u <= seenh);
    l7 = select(vec4<f32>(LOWEST), l7 * params.scale, froml + 7u <= seenl);
    h7 = select(vec4<f32>(LOWEST), h7 * params.scale, fromh + 7u <= seenh);
    let nextl = max(topl, max(max(max(l0, l1), max(l2, l3)), max(max(l4, l5), max(l6, l7))));
    let oldl = exp(topl - nextl);
    let nexth = max(toph, max(max(max(h0, h1), max(h2, h3)), max(max(h4, h5), max(h6, h7))));
    let oldh = exp(toph - nexth);
    l0 = select(vec4<f32>(), exp(l0 - nextl), froml + 0u <= seenl);
    h0 = select(vec4<f32>(), exp(h0 - nexth), fromh + 0u <= seenh);
    l1 = select(vec4<f32>(), exp(l1 - nextl), froml + 1u <= seenl);
    h1 = select(vec4<f32>(), exp(h1 - nexth), fromh + 1u <= seenh);
    l2 = select(vec4<f32>(), exp(l2 - nextl), froml + 2u <= seenl);
    h2 = select(vec4<f32>(), exp(h2 - nexth), fromh + 2u <= seenh);
    l3 = select(vec4<f32>(), exp(l3 - nextl), froml + 3u <= seenl);
    h3 = select(vec4<f32>(), exp(h3 - nexth), fromh + 3u <= seenh);
    l4 = select(vec4<f32>(), exp(l4 - nextl), froml + 4u <= seenl);
    h4 = select(vec4<f32>(), exp(h4 - nexth), fromh + 4u <= seenh);
    l5 = select(vec4<f32>(), exp(l5 - nextl), froml + 5u <= seenl);
    h5 = select(vec4<f32>(), exp(h5 - nexth), fromh + 5u <= seenh);
    l6 = select(vec4<f32>(), exp(l6 - nextl), froml + 6u <= seenl);
    h6 = select(vec4<f32>(), exp(h6 - nexth), fromh + 6u <= seenh);
    l7 = select(vec4<f32>(), exp(l7 - nextl), froml + 7u <= seenl);
    h7 = select(vec4<f32>(), exp(h7 - nexth), fromh + 7u <= seenh);
    suml = suml * oldl + (((l0 + l1) + (l2 + l3)) + ((l4 + l5) + (l6 + l7)));
    topl = nextl;
    sumh = sumh * oldh + (((h0 + h1) + (h2 + h3)) + ((h4 + h5) + (h6 + h7)));
    toph = nexth;
    for (var c = 0u; c < width4; c++) {
      let b0 = v[kl.x + c]; let b1 = v[kl.y + c]; let b2 = v[kl.z + c]; let b3 = v[kl.w + c];
      let b4 = v[kh.x + c]; let b5 = v[kh.y + c]; let b6 = v[kh.z + c]; let b7 = v[kh.w + c];
      let y0 = y[ql.x + c] * oldl.x; let y1 = y[ql.y + c] * oldl.y;
      let y2 = y[ql.z + c] * oldl.z; let y3 = y[ql.w + c] * oldl.w;
      let y4 = y[qh.x + c] * oldh.x; let y5 = y[qh.y + c] * oldh.y;
      let y6 = y[qh.z + c] * oldh.z; let y7 = y[qh.w + c] * oldh.w;
      y[ql.x + c] = y0 + (
        l0.x * b0 + l1.x * b1 + l2.x * b2 + l3.x * b3 + l4.x * b4 + l5.x * b5 + l6.x * b6 + l7.x * b7
      );
      y[ql.y + c] = y1 + (
        l0.y * b0 + l1.y * b1 + l2.y * b2 + l3.y * b3 + l4.y * b4 + l5.y * b5 + l6.y * b6 + l7.y * b7
      );
      y[ql.z + c] = y2 + (
        l0.z * b0 + l1.z * b1 + l2.z * b2 + l3.z * b3 + l4.z * b4 + l5.z * b5 + l6.z * b6 + l7.z * b7
      );
      y[ql.w + c] = y3 + (
        l0.w * b0 + l1.w * b1 + l2.w * b2 + l3.w * b3 + l4.w * b4 + l5.w * b5 + l6.w * b6 + l7.w * b7
      );
      y[qh.x + c] = y4 + (
        h0.x * b0 + h1.x * b1 + h2.x * b2 + h3.x * b3 + h4.x * b4 + h5.x * b5 + h6.x * b6 + h7.x * b7
      );
      y[qh.y + c] = y5 + (
        h0.y * b0 + h1.y * b1 + h2.y * b2 + h3.y * b3 + h4.y * b4 + h5.y * b5 + h6.y * b6 + h7.y * b7
      );
      y[qh.z + c] = y6 + (
        h0.z * b0 + h1.z * b1 + h2.z * b2 + h3.z * b3 + h4.z * b4 + h5.z * b5 + h6.z * b6 + h7.z * b7
      );
      y[qh.w + c] = y7 + (
        h0.w * b0 + h1.w * b1 + h2.w * b2 + h3.w * b3 + h4.w * b4 + h5.w * b5 + h6.w * b6 + h7.w * b7
      );
    }
  }
  if (keys <= params.end) {
    // A row past the edge is the last one, which is divided once.
    for (var c = 0u; c < width4; c++) {
      for (var r = 0u; r < 4u; r++) {
        y[ql[r] + c] /= select(1.0, suml[r], t + r < len);
        y[qh[r] + c] /= select(1.0, sumh[r], t + 4u + r < len);
      }
    }
    topl += log(suml); suml = vec4<f32>();
    toph += log(sumh); sumh = vec4<f32>();
  }
  for (var r = 0u; r < 4u; r++) {
    let sl = 2u * ((b * len + tl[r]) * heads + head); stats[sl] = topl[r]; stats[sl + 1u] = suml[r];
    let sh = 2u * ((b * len + th[r]) * heads + head); stats[sh] = toph[r]; stats[sh + 1u] = sumh[r];
  }
}
