// APOLLO, pass 1 of 3 (optimizers.md §6): R = σ·Pᵀ·G by channels, m ← lerp(m, R, w1), v ← lerp(v, R², w2), R̃ = m/(√v + ε).
// A channel c is a column (left) or a row (right) of G: its entry i is g[c·channel_stride + i·dim_stride], i < dim. One thread a channel.
// P [dim, rank] comes from `given` or is made here, 32 × 8 entries at a time: z·unit, z a sum of 63 signs (§6.3).
// m, v [rank, channels]; stats [4, channels] = s = ‖R̃‖/(‖R‖ + 1e-8), ‖g‖², ‖R̃‖², ‖R‖². Twin: kernels/apollo_project.rs
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
  scale: f32,
  key0: u32,
  key1: u32,
  refresh_low: u32,
  refresh_high: u32,
}

@group(0) @binding(0) var<storage, read_write> g: array<f32>;
@group(0) @binding(1) var<storage, read_write> given: array<f32>;
@group(0) @binding(2) var<storage, read_write> m: array<f32>;
@group(0) @binding(3) var<storage, read_write> v: array<f32>;
@group(0) @binding(4) var<storage, read_write> stats: array<f32>;
@group(0) @binding(5) var<storage, read_write> params: Params;

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
  var length = 0.0;
  var projected = 0.0;
  var moment = 0.0;
  for (var first_j = 0u; first_j < size.y; first_j += 8u) {
    let width = min(8u, size.y - first_j);
    var r = array<f32, 8>();
    for (var first_i = 0u; first_i < size.x; first_i += 32u) {
      workgroupBarrier();
      for (var k = lane; k < 256u; k += SIZE) {
        tile[k] = projector(first_i + k / 8u, first_j + k % 8u);
      }
      workgroupBarrier();
      if (live) {
        // Four sums side by side: shorter chains lose less.
        var sum = array<vec4<f32>, 8>();
        var square = vec4<f32>(0.0);
        for (var e = 0u; e < min(32u, size.x - first_i); e += 4u) {
          let i = first_i + e;
          let x = vec4<f32>(entry(c, i), entry(c, i + 1u), entry(c, i + 2u), entry(c, i + 3u));
          square += x * x;
          for (var j = 0u; j < width; j++) {
            let k = e * 8u + j;
            sum[j] += vec4<f32>(tile[k], tile[k + 8u], tile[k + 16u], tile[k + 24u]) * x;
          }
        }
        for (var j = 0u; j < width; j++) {
          r[j] += (sum[j].x + sum[j].z) + (sum[j].y + sum[j].w);
        }
        length += select(0.0, (square.x + square.z) + (square.y + square.w), first_j == 0u);
      }
    }
    if (live) {
      for (var j = 0u; j < width; j++) {
        // Scaled after the sum: where it cancels, entries rounded before would show.
        let x = params.sigma * (r[j] * params.scale);
        let at = (first_j + j) * params.channels + c;
        let mi = lerp(m[at], x, params.w1);
        let vi = lerp(v[at], x * x, params.w2);
        m[at] = mi;
        v[at] = vi;
        let y = mi / (sqrt(vi) + params.eps);
        projected += x * x;
        moment += y * y;
      }
    }
  }
  if (live) {
    stats[c] = sqrt(moment) / (sqrt(projected) + 1e-8);
    stats[params.channels + c] = length * params.scale * params.scale;
    stats[2u * params.channels + c] = moment;
    stats[3u * params.channels + c] = projected;
  }
}
