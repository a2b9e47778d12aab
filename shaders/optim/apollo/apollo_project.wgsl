// APOLLO below rank 8, pass 1 of 3 (shaders/README.md, "APOLLO"; arXiv:2412.05270): moments and scales, by channels.
//   R = σ·Pᵀ·G    m ← lerp(m, R, w1)    v ← lerp(v, R², w2)    R̃ = m/(√v + ε)
// A channel c is a column (left) or a row (right) of G: its entry i is g[c·channel_stride + i·dim_stride], i < dim. One
// thread per channel. P [dim, rank] comes from `given` or is made here, 32 × 8 entries at a time: z·unit, z a sum of 63
// signs ("APOLLO projectors" there). Its product with G keeps what f32 would lose where large terms cancel: at rank 1 a
// channel is scaled by 1/|R|.
// m, v [rank, channels]; stats [4, channels] = s = ‖R̃‖/(‖R‖ + 1e-8), ‖g‖², ‖R̃‖², ‖R‖². Twin: optim/apollo/project.rs
struct Params {
  channels: u32,
  dim: u32,
  rank: u32,
  channel_stride: u32,
  dim_stride: u32,
  given: u32,
  sigma: f32,
  unit: f32,
  w1: f32,
  w2: f32,
  eps: f32,
  key0: u32,
  key1: u32,
  refresh_low: u32,
  refresh_high: u32,
}

@group(0) @binding(0) var<storage, read_write> g: array<f32>;
@group(0) @binding(1) var<storage, read_write> given: array<f32>;
@group(0) @binding(2) var<storage, read_write> gate: Gate;
@group(0) @binding(3) var<storage, read_write> m: array<f32>;
@group(0) @binding(4) var<storage, read_write> v: array<f32>;
@group(0) @binding(5) var<storage, read_write> stats: array<f32>;
@group(0) @binding(6) var<storage, read_write> params: Params;

const SIZE: u32 = 256u;
var<workgroup> tile: array<f32, 256>;
var<workgroup> extent: vec2<u32>;

// P[i, j]; 0 past the end.
fn projector(i: u32, j: u32) -> f32 {
  if (i >= params.dim || j >= params.rank) {
    return 0.0;
  }
  let e = i * params.rank + j;
  if (params.given != 0u) {
    return given[e];
  }
  let x = philox(vec4<u32>(e / 2u, 0u, params.refresh_low, params.refresh_high), vec2<u32>(params.key0, params.key1));
  let pair = select(x.xy, x.zw, (e & 1u) == 1u);
  let z = 2i * i32(countOneBits(pair.x) + countOneBits(pair.y & 0x7fffffffu)) - 63i;
  return f32(z) * params.unit;
}

// Entry i of channel c; 0 past the end.
fn entry(c: u32, i: u32) -> f32 {
  if (i >= params.dim) {
    return 0.0;
  }
  return bounded(g[c * params.channel_stride + i * params.dim_stride]);
}

// a + b and its rounding error (Knuth 1969); adding a zero that the compiler does not know keeps it from simplifying
// the error away.
fn two_sum(a: f32, b: f32, zero: u32) -> vec2<f32> {
  let s = bitcast<f32>(bitcast<u32>(a + b) + zero);
  let t = bitcast<f32>(bitcast<u32>(s - a) + zero);
  return vec2<f32>(s, (a - (s - t)) + (b - t));
}

// A sum of three words: each takes what the one before it cannot hold.
fn add(sum: vec3<f32>, x: f32, zero: u32) -> vec3<f32> {
  let a = two_sum(sum.x, x, zero);
  let b = two_sum(sum.y, a.y, zero);
  return vec3<f32>(a.x, b.x, sum.z + b.y);
}

// sum + p·x, x in two: products of 12 bits by 12 are exact.
fn add_product(sum: vec3<f32>, p: f32, x: vec2<f32>, zero: u32) -> vec3<f32> {
  let high = bitcast<f32>(bitcast<u32>(p) & 0xfffff000u);
  let low = p - high;
  return add(add(add(add(sum, high * x.x, zero), high * x.y, zero), low * x.x, zero), low * x.y, zero);
}

// The three words of a sum as one value.
fn whole(sum: vec3<f32>, zero: u32) -> f32 {
  let a = two_sum(sum.x, sum.y, zero);
  return a.x + (a.y + sum.z);
}

@compute @workgroup_size(SIZE)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  // Loop bounds around barriers have to be uniform.
  if (lane == 0u) {
    extent = vec2<u32>(params.dim, params.rank);
  }
  let size = workgroupUniformLoad(&extent);
  let c = grid_index(group, groups, lane, SIZE);
  let live = c < params.channels;
  let zero = params.given >> 1u;
  var length = 0.0;
  var projected = 0.0;
  var moment = 0.0;
  for (var first_j = 0u; first_j < size.y; first_j += 8u) {
    let width = min(8u, size.y - first_j);
    var r = array<vec3<f32>, 8>();
    for (var first_i = 0u; first_i < size.x; first_i += 32u) {
      workgroupBarrier();
      for (var k = lane; k < 256u; k += SIZE) {
        tile[k] = projector(first_i + k / 8u, first_j + k % 8u);
      }
      workgroupBarrier();
      if (live) {
        var square = 0.0;
        for (var e = 0u; e < min(32u, size.x - first_i); e++) {
          let x = entry(c, first_i + e);
          let high = bitcast<f32>(bitcast<u32>(x) & 0xfffff000u);
          square += x * x;
          for (var j = 0u; j < width; j++) {
            r[j] = add_product(r[j], tile[e * 8u + j], vec2<f32>(high, x - high), zero);
          }
        }
        length += select(0.0, square, first_j == 0u);
      }
    }
    if (live) {
      for (var j = 0u; j < width; j++) {
        // Scaled after the sum: where terms cancel, the rounding of entries scaled before would show.
        let x = params.sigma * (whole(r[j], zero) * gate.factor);
        let at = (first_j + j) * params.channels + c;
        let mi = lerp(m[at], x, params.w1);
        let vi = lerp(v[at], x * x, params.w2);
        m[at] = select(m[at], mi, gate.closed == 0u);
        v[at] = select(v[at], vi, gate.closed == 0u);
        let y = mi / (sqrt(vi) + params.eps);
        projected += x * x;
        moment += y * y;
      }
    }
  }
  if (live) {
    stats[c] = sqrt(moment) / (sqrt(projected) + 1e-8);
    stats[params.channels + c] = length * gate.factor * gate.factor;
    stats[2u * params.channels + c] = moment;
    stats[3u * params.channels + c] = projected;
  }
}
