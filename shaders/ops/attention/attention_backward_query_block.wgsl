// Made by shaders/blocks.mjs
// dq = scale Σ_j ds_j k_j with p_j = exp(scale q k_j − lse), ds_j = p_j (dy v_j − delta), delta = dy y.
// Shapes and cap, whose slope ds_j has too, as in attention_forward; stats [B, T, heads, 2]: lse is read, delta written
// for the kernel of keys and values. One thread: 8 queries of one head against 8 keys at a time, dq holds the sums;
// this launch adds the keys first .. end. Past an edge the last row is computed again: the same numbers are stored in
// the same place. Twin: ops/attention/kernels.rs
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
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> dy: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> stats: array<f32>;
@group(0) @binding(6) var<storage, read_write> dq: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> params: Params;

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
  let end = min(params.offset + th.w + 1u, params.end);
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
    let tail = (2u * params.batch * heads + b) * len;
    for (var r = 0u; r < 4u; r++) {
      firstl[r] = u32(stats[tail + tl[r]]);
      firsth[r] = u32(stats[tail + th[r]]);
    }
  }
  let seenl = params.offset + tl - firstl;
  let seenh = params.offset + th - firsth;
  var lsel = vec4<f32>(); var deltal = vec4<f32>();
  var lseh = vec4<f32>(); var deltah = vec4<f32>();
  for (var r = 0u; r < 4u; r++) {
    let sl = 2u * ((b * len + tl[r]) * heads + head); lsel[r] = stats[sl];
    let sh = 2u * ((b * len + th[r]) * heads + head); lseh[r] = stats[sh];
  }
  for (var c = 0u; c < width4; c++) {
    for (var r = 0u; r < 4u; r++) {
      deltal[r] += dot(dy[ql[r] + c], y[ql[r] + c]);
      deltah[r] += dot(dy[qh[r] + c], y[qh[r] + c]);
    }
  }
  if (params.first == 0u) {
    for (var c = 0u; c < width4; c++) {
      for (var r = 0u; r < 4u; r++) {
        dq[ql[r] + c] = vec4<f32>();
        dq[qh[r] + c] = vec4<f32>();
      }
    }
    for (var r = 0u; r < 4u; r++) {
      let sl = 2u * ((b * len + tl[r]) * heads + head); stats[sl + 1u] = deltal[r];
      let sh = 2u * ((b * len + th[r]) * heads + head); stats[sh + 1u] = deltah[r];
    }
  }
  for (var j = max(params.first, firstl.x / 8u * 8u); j < end; j += 8u) {
    // Keys counted from each query's first: those before it wrap around, past all that are seen.
    let froml = vec4<u32>(j) - firstl;
    let fromh = vec4<u32>(j) - firsth;
    let kl = base + min(vec4<u32>(j, j + 1u, j + 2u, j + 3u), vec4<u32>(all - 1u)) * step;
    let kh = base + min(vec4<u32>(j + 4u, j + 5u, j + 6u, j + 7u), vec4<u32>(all - 1u)) * step;
    var l0 = vec4<f32>(); var h0 = vec4<f32>(); var m0 = vec4<f32>(); var n0 = vec4<f32>();
    var l1 = vec4<f32>(); var h1 = vec4<f32>(); var m1 = vec4<f32>(); var n1 = vec4<f32>();
    var l2 = vec4<f32>(); var h2 = vec4<f32>(); var m2 = vec4<f32>(); var n2 = vec4<f32>();
    var l3 = vec4<f32>(); var h3 = vec4<f32>(); var m3 = vec4<f32>(); var n3 = vec4<f32>();
    var l4 = vec4<f32>(); var h4 = vec4<f32>(); var m4 = vec4<f32>(); var n4 = vec4<f32>();
    var l5 = vec4<f32>(); var h5 = vec4<f32>(); var m5 = vec4<f32>(); var n5 = vec4<f32>();
    var l6 = vec4<f32>(); var h6 = vec4<f32>(); var m6 = vec4<f32>(); var n6 = vec4<f32>();
    var l7 = vec4<f32>(); var h7 = vec4<f32>(); var m7 = vec4<f32>(); var n7 = vec4<f32>();
    for (var c = 0u; c < width4; c++) {
      let a0 = q[ql.x + c]; let a1 = q[ql.y + c]; let a2 = q[ql.z + c]; let a3 = q[ql.w + c];
      let a4 = q[qh.x + c]; let a5 = q[qh.y + c]; let a6 = q[qh.z + c]; let a7 = q[qh.w + c];
      let g0 = dy[ql.x + c]; let g1 = dy[ql.y + c]; let g2 = dy[ql.z + c]; let g3 = dy[ql.w + c];
      let g4 = dy[qh.x + c]; let g5 = dy[qh.y + c]; let g6 = dy[qh.z + c]; let g7 = dy[qh.w + c];
      let b0 = k[kl.x + c]; l0 += dots(b0, a0, a1, a2, a3); h0 += dots(b0, a4, a5, a6, a7);
      let v0 = v[kl.x + c]; m0 += dots(v0, g0, g1, g2, g3); n0 += dots(v0, g4, g5, g6, g7);
      let b1 = k[kl.y + c]; l1 += dots(b1, a0, a1, a2, a3); h1 += dots(b1, a4, a5, a6, a7);
      let v1 = v[kl.y + c]; m1 += dots(v1, g0, g1, g2, g3); n1 += dots(v1, g4, g5, g6, g7);
      let b2 = k[kl.z + c]; l2 += dots(b2, a0, a1, a2, a3); h2 += dots(b2, a4, a5, a6, a7);
      let v2 = v[kl.z + c]; m2 += dots(v2, g0, g1, g2, g3); n2 += dots(v2, g4, g5, g6, g7);
      let b3 = k[kl.w + c]; l3 += dots(b3, a0, a1, a2, a3); h3 += dots(b3, a4, a5, a6, a7);
      let v3 = v[kl.w + c]; m3 += dots(v3, g0, g1, g2, g3); n3 += dots(v3, g4, g5, g6, g7);
      let b4 = k[kh.x + c]; l4 += dots(b4, a0, a1, a2, a3); h4 += dots(b4, a4, a5, a6, a7);
      let v4 = v[kh.x + c]; m4 += dots(v4, g0, g1, g2, g3); n4 += dots(v4, g4, g5, g6, g7);
      let b5 = k[kh.y + c]; l5 += dots(b5, a0, a1, a2, a3); h5 += dots(b5, a4, a5, a6, a7);
      let v5 = v[kh.y + c]; m5 += dots(v5, g0, g1, g2, g3); n5 += dots(v5, g4, g5, g6, g7);
      let b6 = k[kh.z + c]; l6 += dots(b6, a0, a1, a2, a3); h6 += dots(b6, a4, a5, a6, a7);
      let v6 = v[kh.z + c]; m6 += dots(v6, g0, g1, g2, g3); n6 += dots(v6, g4, g5, g6, g7);
      let b7 = k[kh.w + c]; l7 += dots(b7, a0, a1, a2, a3); h7 += dots(b7, a4, a5, a6, a7);
      let v7 = v[kh.w + c]; m7 += dots(v7, g0, g1, g2, g3); n7 += dots(v7, g4, g5, g6, g7);
    }
    m0 -= deltal; n0 -= deltah; m1 -= deltal; n1 -= deltah;
    m2 -= deltal; n2 -= deltah; m3 -= deltal; n3 -= deltah;
    m4 -= deltal; n4 -= deltah; m5 -= deltal; n5 -= deltah;
    m6 -= deltal; n6 -= deltah; m7 -= deltal; n7 -= deltah;
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
      m0 *= cap_slope(l0, bound); n0 *= cap_slope(h0, bound);
      m1 *= cap_slope(l1, bound); n1 *= cap_slope(h1, bound);
      m2 *= cap_slope(l2, bound); n2 *= cap_slope(h2, bound);
      m3 *= cap_slope(l3, bound); n3 *= cap_slope(h3, bound);
      m4 *= cap_slope(l4, bound); n4 *= cap_slope(h4, bound);
      m5 *= cap_slope(l5, bound); n5 *= cap_slope(h5, bound);
      m6 *= cap_slope(l6, bound); n6 *= cap_slope(h6, bound);
      m7 *= cap_slope(l7, bound); n7 *= cap_slope(h7, bound);
    }
    l0 = select(vec4<f32>(), exp(l0 * params.scale - lsel), froml + 0u <= seenl) * m0 * params.scale;
    h0 = select(vec4<f32>(), exp(h0 * params.scale - lseh), fromh + 0u <= seenh) * n0 * params.scale;
    l1 = select(vec4<f32>(), exp(l1 * params.scale - lsel), froml + 1u <= seenl) * m1 * params.scale;
    h1 = select(vec4<f32>(), exp(h1 * params.scale - lseh), fromh + 1u <= seenh) * n1 * params.scale;
    l2 = select(vec4<f32>(), exp(l2 * params.scale - lsel), froml + 2u <= seenl) * m2 * params.scale;
    h2 = select(vec4<f32>(), exp(h2 * params.scale - lseh), fromh + 2u <= seenh) * n2 * params.scale;
    l3 = select(vec4<f32>(), exp(l3 * params.scale - lsel), froml + 3u <= seenl) * m3 * params.scale;
    h3 = select(vec4<f32>(), exp(h3 * params.scale - lseh), fromh + 3u <= seenh) * n3 * params.scale;
    l4 = select(vec4<f32>(), exp(l4 * params.scale - lsel), froml + 4u <= seenl) * m4 * params.scale;
    h4 = select(vec4<f32>(), exp(h4 * params.scale - lseh), fromh + 4u <= seenh) * n4 * params.scale;
    l5 = select(vec4<f32>(), exp(l5 * params.scale - lsel), froml + 5u <= seenl) * m5 * params.scale;
    h5 = select(vec4<f32>(), exp(h5 * params.scale - lseh), fromh + 5u <= seenh) * n5 * params.scale;
    l6 = select(vec4<f32>(), exp(l6 * params.scale - lsel), froml + 6u <= seenl) * m6 * params.scale;
    h6 = select(vec4<f32>(), exp(h6 * params.scale - lseh), fromh + 6u <= seenh) * n6 * params.scale;
    l7 = select(vec4<f32>(), exp(l7 * params.scale - lsel), froml + 7u <= seenl) * m7 * params.scale;
    h7 = select(vec4<f32>(), exp(h7 * params.scale - lseh), fromh + 7u <= seenh) * n7 * params.scale;
    for (var c = 0u; c < width4; c++) {
      let b0 = k[kl.x + c]; let b1 = k[kl.y + c]; let b2 = k[kl.z + c]; let b3 = k[kl.w + c];
      let b4 = k[kh.x + c]; let b5 = k[kh.y + c]; let b6 = k[kh.z + c]; let b7 = k[kh.w + c];
      let y0 = dq[ql.x + c]; let y1 = dq[ql.y + c]; let y2 = dq[ql.z + c]; let y3 = dq[ql.w + c];
      let y4 = dq[qh.x + c]; let y5 = dq[qh.y + c]; let y6 = dq[qh.z + c]; let y7 = dq[qh.w + c];
      dq[ql.x + c] = y0 + (
        l0.x * b0 + l1.x * b1 + l2.x * b2 + l3.x * b3 + l4.x * b4 + l5.x * b5 + l6.x * b6 + l7.x * b7
      );
      dq[ql.y + c] = y1 + (
        l0.y * b0 + l1.y * b1 + l2.y * b2 + l3.y * b3 + l4.y * b4 + l5.y * b5 + l6.y * b6 + l7.y * b7
      );
      dq[ql.z + c] = y2 + (
        l0.z * b0 + l1.z * b1 + l2.z * b2 + l3.z * b3 + l4.z * b4 + l5.z * b5 + l6.z * b6 + l7.z * b7
      );
      dq[ql.w + c] = y3 + (
        l0.w * b0 + l1.w * b1 + l2.w * b2 + l3.w * b3 + l4.w * b4 + l5.w * b5 + l6.w * b6 + l7.w * b7
      );
      dq[qh.x + c] = y4 + (
        h0.x * b0 + h1.x * b1 + h2.x * b2 + h3.x * b3 + h4.x * b4 + h5.x * b5 + h6.x * b6 + h7.x * b7
      );
      dq[qh.y + c] = y5 + (
        h0.y * b0 + h1.y * b1 + h2.y * b2 + h3.y * b3 + h4.y * b4 + h5.y * b5 + h6.y * b6 + h7.y * b7
      );
      dq[qh.z + c] = y6 + (
        h0.z * b0 + h1.z * b1 + h2.z * b2 + h3.z * b3 + h4.z * b4 + h5.z * b5 + h6.z * b6 + h7.z * b7
      );
      dq[qh.w + c] = y7 + (
        h0.w * b0 + h1.w * b1 + h2.w * b2 + h3.w * b3 + h4.w * b4 + h5.w * b5 + h6.w * b6 + h7.w * b7
      );
    }
  }
}
