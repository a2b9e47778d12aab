// Adafactor on a vector of n elements, pass 1 of 2 (shaders/README.md, "Adafactor"; arXiv:1804.04235): row ← lerp(row,
// g² + ε₁, w).
// Workgroup ℓ of L = min(256, ⌈n/2048⌉) takes the chunks of 2048 elements ℓ, ℓ + L, … and writes Σ g²/row to sums[ℓ],
// and Σ p² (relative_step only, else 0) to sums[L + ℓ]. Lane k of 256 sums every 256th element of a chunk; the lanes
// are added by strides 128 … 1. A thread has the four lanes k, k + 64, ….
// Twin: optim/adafactor/vector_moments.rs
struct Params {
  n: u32,
  lanes: u32,
  eps1: f32,
  w: f32,
  relative_step: u32,
  packed: u32,
}

@group(0) @binding(0) var<storage, read_write> g: array<f32>;
@group(0) @binding(1) var<storage, read_write> p: array<u32>;
@group(0) @binding(2) var<storage, read_write> gate: Gate;
@group(0) @binding(3) var<storage, read_write> row: array<f32>;
@group(0) @binding(4) var<storage, read_write> sums: array<f32>;
@group(0) @binding(5) var<storage, read_write> params: Params;

const SIZE: u32 = 64u;
var<workgroup> part: array<vec2<f32>, 64>;

fn parameter(i: u32) -> f32 {
  if (params.packed == 0u) {
    return bitcast<f32>(p[i]);
  }
  let word = p[i / 2u];
  return select(bf16_low(word), bf16_high(word), (i & 1u) == 1u);
}

// Eight parts by strides 4, 2, 1 (times `step`).
fn eight(k: u32, step: u32) -> vec2<f32> {
  let a = (part[k] + part[k + 4u * step]) + (part[k + 2u * step] + part[k + 6u * step]);
  return a + ((part[k + step] + part[k + 5u * step]) + (part[k + 3u * step] + part[k + 7u * step]));
}

@compute @workgroup_size(SIZE)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let me = group_index(group, groups);
  for (var k = lane; k < 64u; k += SIZE) {
    var u = vec4<f32>(0.0);
    var x = vec4<f32>(0.0);
    if (me < params.lanes) {
      for (var first = me * 2048u; first < params.n; first += max(2048u * params.lanes, 1u)) {
        var u_chunk = vec4<f32>(0.0);
        var x_chunk = vec4<f32>(0.0);
        for (var e = 0u; e < 32u; e++) {
          let i = first + k + 64u * e;
          if (i < params.n) {
            let gi = bounded(g[i]) * gate.factor;
            let moment = lerp(row[i], gi * gi + params.eps1, params.w);
            if (gate.closed == 0u) {
              row[i] = moment;
            }
            let ui = gi / sqrt(moment);
            u_chunk[e % 4u] += ui * ui;
            if (params.relative_step != 0u) {
              let xi = parameter(i);
              x_chunk[e % 4u] += xi * xi;
            }
          }
        }
        u += u_chunk;
        x += x_chunk;
      }
    }
    part[k] = vec2<f32>((u.x + u.z) + (u.y + u.w), (x.x + x.z) + (x.y + x.w));
  }
  workgroupBarrier();
  if (lane == 0u && me < params.lanes) {
    for (var k = 0u; k < 8u; k++) {
      part[k] = eight(k, 8u);
    }
    let all = eight(0u, 1u);
    sums[me] = all.x;
    sums[params.lanes + me] = all.y;
  }
}
