// Made by shaders/blocks.mjs
// dv_j = Σ_t p dy_t, dk_j = scale Σ_t ds q_t over the queries t ≥ j − offset of all heads that share the key; p, ds as
// in attention_backward_query_block. q, dy [B, T, heads, H], k, v, dk, dv [B, offset + T, kv_heads, H],
// stats [B, T, heads, 2] = lse, delta.
// One thread: 8 keys of one head against 8 queries at a time, dk and dv hold the sums; this launch adds the queries
// first .. end. Past an edge the last row is computed again: the same numbers are stored in the same place.
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
@group(0) @binding(3) var<storage, read_write> dy: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> stats: array<f32>;
@group(0) @binding(5) var<storage, read_write> dk: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> dv: array<vec4<f32>>;
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
  let blocks = (all + 7u) / 8u;
  if (i >= params.batch * blocks * kv_heads) {
    return;
  }
  let head = i % kv_heads;
  let b = i / kv_heads / blocks;
  let j = i / kv_heads % blocks * 8u;
  let jl = min(vec4<u32>(j, j + 1u, j + 2u, j + 3u), vec4<u32>(all - 1u));
  let jh = min(vec4<u32>(j + 4u, j + 5u, j + 6u, j + 7u), vec4<u32>(all - 1u));
  let kl = ((b * all + jl) * kv_heads + head) * width4;
  let kh = ((b * all + jh) * kv_heads + head) * width4;
  if (params.first == 0u) {
    for (var c = 0u; c < width4; c++) {
      for (var r = 0u; r < 4u; r++) {
        dk[kl[r] + c] = vec4<f32>();
        dk[kh[r] + c] = vec4<f32>();
      }
      for (var r = 0u; r < 4u; r++) {
        dv[kl[r] + c] = vec4<f32>();
        dv[kh[r] + c] = vec4<f32>();
      }
    }
  }
  // The first query that sees one of the keys, in steps of 8.
  let start = max(params.first, (max(j, params.offset) - params.offset) / 8u * 8u);
  let end = min(len, params.end);
  let shared_by = heads / kv_heads;
  for (var g = 0u; g < shared_by; g++) {
    let at = b * len * heads + head * shared_by + g;
    for (var t = start; t < end; t += 8u) {
      let sl = at + min(vec4<u32>(t, t + 1u, t + 2u, t + 3u), vec4<u32>(len - 1u)) * heads;
      let sh = at + min(vec4<u32>(t + 4u, t + 5u, t + 6u, t + 7u), vec4<u32>(len - 1u)) * heads;
      let ql = sl * width4;
      let qh = sh * width4;
      var firstl = vec4<u32>();
      var firsth = vec4<u32>();
      if (params.documents != 0u) {
        let tail = 2u * params.batch * len * heads;
        let al = tail + sl / heads;
        let ah = tail + sh / heads;
        for (var r = 0u; r < 4u; r++) {
          firstl[r] = u32(stats[al[r]]);
          firsth[r] = u32(stats[ah[r]]);
        }
        if (firstl.x > jh.w) {
          break;
        }
      }
      var l0 = vec4<f32>(); var h0 = vec4<f32>(); var m0 = vec4<f32>(); var n0 = vec4<f32>();
      var l1 = vec4<f32>(); var h1 = vec4<f32>(); var m1 = vec4<f32>(); var n1 = vec4<f32>();
      var l2 = vec4<f32>(); var h2 = vec4<f32>(); var m2 = vec4<f32>(); var n2 = vec4<f32>();
      var l3 = vec4<f32>(); var h3 = vec4<f32>(); var m3 = vec4<f32>(); var n3 = vec4<f32>();
      var l4 = vec4<f32>(); var h4 = vec4<f32>(); var m4 = vec4<f32>(); var n4 = vec4<f32>();
      var l5 = vec4<f32>(); var h5 = vec4<f32>(); var m5 = vec4<f32>(); var n5 = vec4<f32>();
      var l6 = vec4<f32>(); var h6 = vec4<f32>(); var m6 = vec4<f32>(); var n6 = vec4<f32>();
      var l7 = vec4<f32>(); var h7 = vec4<f32>(); var m7 = vec4<f32>(); var n7 = vec4<f32>();
      for (var c = 0u; c < width4; c++) {
        let a0 = k[kl.x + c]; let a1 = k[kl.y + c]; let a2 = k[kl.z + c]; let a3 = k[kl.w + c];
        let a4 = k[kh.x + c]; let a5 = k[kh.y + c]; let a6 = k[kh.z + c]; let a7 = k[kh.w + c];
        let g0 = v[kl.x + c]; let g1 = v[kl.y + c]; let g2 = v[kl.z + c]; let g3 = v[kl.w + c];
        let g4 = v[kh.x + c]; let g5 = v[kh.y + c]; let g6 = v[kh.z + c]; let g7 = v[kh.w + c];
        let b0 = q[ql.x + c]; l0 += dots(b0, a0, a1, a2, a3); h0 += dots(b0, a4, a5, a6, a7);
        let d0 = dy[ql.x + c]; m0 += dots(d0, g0, g1, g2, g3); n0 += dots(d0, g4, g5, g6, g7);
        let b1 = q[ql.y + c]; l1 += dots(b1, a0, a1, a2, a3); h1 += dots(b1, a4, a5, a6, a7);
        let d1 = dy[ql.y + c]; m1 += dots(d1, g0, g1, g2, g3); n1 += dots(d1, g4, g5, g6, g7);
        let b2 = q[ql.z + c]; l2 += dots(b2, a0, a1, a2, a3); h2 += dots(b2, a4, a5, a6, a7);
        let d2 = dy[ql.z + c]; m2 += dots(d2, g0, g1, g2, g3); n2 += dots(d2, g4, g5, g6, g7);
        let b3 = q[ql.w + c]; l3 += dots(b3, a0, a1, a2, a3); h3 += dots(b3, a4, a5, a6, a7);
        let d3 = dy[ql.w + c]; m3 += dots(d3, g0, g1, g2, g3); n3 += dots(d3, g4, g5, g6, g7);
        let b4 = q[qh.x + c]; l4 += dots(b4, a0, a1, a2, a3); h4 += dots(b4, a4, a5, a6, a7);
        let d4 = dy[qh.x + c]; m4 += dots(d4, g0, g1, g2, g3); n4 += dots(d4, g4, g5, g6, g7);
        let b5 = q[qh.y + c]; l5 += dots(b5, a0, a1, a2, a3); h5 += dots(b5, a4, a5, a6, a7);
        let d5 = dy[qh.y + c]; m5 += dots(d5, g0, g1, g2, g3); n5 += dots(d5, g4, g5, g6, g7);
        let b6 = q[qh.z + c]; l6 += dots(b6, a0, a1, a2, a3); h6 += dots(b6, a4, a5, a6, a7);
        let d6 = dy[qh.z + c]; m6 += dots(d6, g0, g1, g2, g3); n6 += dots(d6, g4, g5, g6, g7);
        let b7 = q[qh.w + c]; l7 += dots(b7, a0, a1, a2, a3); h7 += dots(b7, a4, a5, a6, a7);
        let d7 = dy[qh.w + c]; m7 += dots(d7, g0, g1, g2, g3); n7 += dots(d7, g4, g5, g6, g7);
      }
      let f0 = stats[2u * sl.x + 1u]; m0 -= f0; n0 -= f0;
      let f1 = stats[2u * sl.y + 1u]; m1 -= f1; n1 -= f1;
      let f2 = stats[2u * sl.z + 1u]; m2 -= f2; n2 -= f2;
      let f3 = stats[2u * sl.w + 1u]; m3 -= f3; n3 -= f3;
      let f4 = stats[2u * sh.x + 1u]; m4 -= f4; n4 -= f4;
      let f5 = stats[2u * sh.y + 1u]; m5 -= f5; n5 -= f5;
      let f6 = stats[2u * sh.z + 1u]; m6 -= f6; n6 -= f6;
      let f7 = stats[2u * sh.w + 1u]; m7 -= f7; n7 -= f7;
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
      let e0 = stats[2u * sl.x];
      let u0 = vec4<u32>(select(0u, params.offset + t + 1u - firstl.x, t + 0u < len));
      l0 = select(vec4<f32>(), exp(l0 * params.scale - e0), jl - firstl.x < u0);
      m0 = l0 * m0 * params.scale;
      h0 = select(vec4<f32>(), exp(h0 * params.scale - e0), jh - firstl.x < u0);
      n0 = h0 * n0 * params.scale;
      let e1 = stats[2u * sl.y];
      let u1 = vec4<u32>(select(0u, params.offset + t + 2u - firstl.y, t + 1u < len));
      l1 = select(vec4<f32>(), exp(l1 * params.scale - e1), jl - firstl.y < u1);
      m1 = l1 * m1 * params.scale;
      h1 = select(vec4<f32>(), exp(h1 * params.scale - e1), jh - firstl.y < u1);
      n1 = h1 * n1 * params.scale;
      let e2 = stats[2u * sl.z];
      let u2 = vec4<u32>(select(0u, params.offset + t + 3u - firstl.z, t + 2u < len));
      l2 = select(vec4<f32>(), exp(l2 * params.scale - e2), jl - firstl.z < u2);
      m2 = l2 * m2 * params.scale;
      h2 = select(vec4<f32>(), exp(h2 * params.scale - e2), jh - firstl.z < u2);
      n2 = h2 * n2 * params.scale;
      let e3 = stats[2u * sl.w];
      let u3 = vec4<u32>(select(0u, params.offset + t + 4u - firstl.w, t + 3u < len));
      l3 = select(vec4<f32>(), exp(l3 * params.scale - e3), jl - firstl.w < u3);
      m3 = l3 * m3 * params.scale;
      h3 = select(vec4<f32>(), exp(h3 * params.scale - e3), jh - firstl.w < u3);
      n3 = h3 * n3 * params.scale;
      let e4 = stats[2u * sh.x];
      let u4 = vec4<u32>(select(0u, params.offset + t + 5u - firsth.x, t + 4u < len));
      l4 = select(vec4<f32>(), exp(l4 * params.scale - e4), jl - firsth.x < u4);
      m4 = l4 * m4 * params.scale;
      h4 = select(vec4<f32>(), exp(h4 * params.scale - e4), jh - firsth.x < u4);
      n4 = h4 * n4 * params.scale;
      let e5 = stats[2u * sh.y];
      let u5 = vec4<u32>(select(0u, params.offset + t + 6u - firsth.y, t + 5u < len));
      l5 = select(vec4<f32>(), exp(l5 * params.scale - e5), jl - firsth.y < u5);
      m5 = l5 * m5 * params.scale;
      h5 = select(vec4<f32>(), exp(h5 * params.scale - e5), jh - firsth.y < u5);
      n5 = h5 * n5 * params.scale;
      let e6 = stats[2u * sh.z];
      let u6 = vec4<u32>(select(0u, params.offset + t + 7u - firsth.z, t + 6u < len));
      l6 = select(vec4<f32>(), exp(l6 * params.scale - e6), jl - firsth.z < u6);
      m6 = l6 * m6 * params.scale;
      h6 = select(vec4<f32>(), exp(h6 * params.scale - e6), jh - firsth.z < u6);
      n6 = h6 * n6 * params.scale;
      let e7 = stats[2u * sh.w];
      let u7 = vec4<u32>(select(0u, params.offset + t + 8u - firsth.w, t + 7u < len));
      l7 = select(vec4<f32>(), exp(l7 * params.scale - e7), jl - firsth.w < u7);
      m7 = l7 * m7 * params.scale;
      h7 = select(vec4<f32>(), exp(h7 * params.scale - e7), jh - firsth.w < u7);
      n7 = h7 * n7 * params.scale;
      for (var c = 0u; c < width4; c++) {
        let a0 = q[ql.x + c]; let b0 = dy[ql.x + c]; let a1 = q[ql.y + c]; let b1 = dy[ql.y + c];
        let a2 = q[ql.z + c]; let b2 = dy[ql.z + c]; let a3 = q[ql.w + c]; let b3 = dy[ql.w + c];
        let a4 = q[qh.x + c]; let b4 = dy[qh.x + c]; let a5 = q[qh.y + c]; let b5 = dy[qh.y + c];
        let a6 = q[qh.z + c]; let b6 = dy[qh.z + c]; let a7 = q[qh.w + c]; let b7 = dy[qh.w + c];
        let y0 = dk[kl.x + c]; let z0 = dv[kl.x + c]; let y1 = dk[kl.y + c]; let z1 = dv[kl.y + c];
        let y2 = dk[kl.z + c]; let z2 = dv[kl.z + c]; let y3 = dk[kl.w + c]; let z3 = dv[kl.w + c];
        let y4 = dk[kh.x + c]; let z4 = dv[kh.x + c]; let y5 = dk[kh.y + c]; let z5 = dv[kh.y + c];
        let y6 = dk[kh.z + c]; let z6 = dv[kh.z + c]; let y7 = dk[kh.w + c]; let z7 = dv[kh.w + c];
        dk[kl.x + c] = y0 + (
          m0.x * a0 + m1.x * a1 + m2.x * a2 + m3.x * a3 + m4.x * a4 + m5.x * a5 + m6.x * a6 + m7.x * a7
        );
        dv[kl.x + c] = z0 + (
          l0.x * b0 + l1.x * b1 + l2.x * b2 + l3.x * b3 + l4.x * b4 + l5.x * b5 + l6.x * b6 + l7.x * b7
        );
        dk[kl.y + c] = y1 + (
          m0.y * a0 + m1.y * a1 + m2.y * a2 + m3.y * a3 + m4.y * a4 + m5.y * a5 + m6.y * a6 + m7.y * a7
        );
        dv[kl.y + c] = z1 + (
          l0.y * b0 + l1.y * b1 + l2.y * b2 + l3.y * b3 + l4.y * b4 + l5.y * b5 + l6.y * b6 + l7.y * b7
        );
        dk[kl.z + c] = y2 + (
          m0.z * a0 + m1.z * a1 + m2.z * a2 + m3.z * a3 + m4.z * a4 + m5.z * a5 + m6.z * a6 + m7.z * a7
        );
        dv[kl.z + c] = z2 + (
          l0.z * b0 + l1.z * b1 + l2.z * b2 + l3.z * b3 + l4.z * b4 + l5.z * b5 + l6.z * b6 + l7.z * b7
        );
        dk[kl.w + c] = y3 + (
          m0.w * a0 + m1.w * a1 + m2.w * a2 + m3.w * a3 + m4.w * a4 + m5.w * a5 + m6.w * a6 + m7.w * a7
        );
        dv[kl.w + c] = z3 + (
          l0.w * b0 + l1.w * b1 + l2.w * b2 + l3.w * b3 + l4.w * b4 + l5.w * b5 + l6.w * b6 + l7.w * b7
        );
        dk[kh.x + c] = y4 + (
          n0.x * a0 + n1.x * a1 + n2.x * a2 + n3.x * a3 + n4.x * a4 + n5.x * a5 + n6.x * a6 + n7.x * a7
        );
        dv[kh.x + c] = z4 + (
          h0.x * b0 + h1.x * b1 + h2.x * b2 + h3.x * b3 + h4.x * b4 + h5.x * b5 + h6.x * b6 + h7.x * b7
        );
        dk[kh.y + c] = y5 + (
          n0.y * a0 + n1.y * a1 + n2.y * a2 + n3.y * a3 + n4.y * a4 + n5.y * a5 + n6.y * a6 + n7.y * a7
        );
        dv[kh.y + c] = z5 + (
          h0.y * b0 + h1.y * b1 + h2.y * b2 + h3.y * b3 + h4.y * b4 + h5.y * b5 + h6.y * b6 + h7.y * b7
        );
        dk[kh.z + c] = y6 + (
          n0.z * a0 + n1.z * a1 + n2.z * a2 + n3.z * a3 + n4.z * a4 + n5.z * a5 + n6.z * a6 + n7.z * a7
        );
        dv[kh.z + c] = z6 + (
          h0.z * b0 + h1.z * b1 + h2.z * b2 + h3.z * b3 + h4.z * b4 + h5.z * b5 + h6.z * b6 + h7.z * b7
        );
        dk[kh.w + c] = y7 + (
          n0.w * a0 + n1.w * a1 + n2.w * a2 + n3.w * a3 + n4.w * a4 + n5.w * a5 + n6.w * a6 + n7.w * a7
        );
        dv[kh.w + c] = z7 + (
          h0.w * b0 + h1.w * b1 + h2.w * b2 + h3.w * b3 + h4.w * b4 + h5.w * b5 + h6.w * b6 + h7.w * b7
        );
      }
    }
  }
}
