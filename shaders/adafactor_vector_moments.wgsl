// Adafactor on a vector of n elements, pass 1 of 2 (optimizers.md §5): row ← lerp(row, g² + ε₁, w). Workgroup ℓ of L = min(256, ⌈n/2048⌉)
// takes the chunks of 2048 elements ℓ, ℓ + L, … and writes Σ g²/row to sums[ℓ], and Σ p² (relative_step only, else 0) to sums[L + ℓ].
// Twin: kernels/adafactor_vector_moments.rs
struct Params {
  n: u32,
  lanes: u32,
  scale: f32,
  eps1: f32,
  w: f32,
  relative_step: u32,
  packed: u32,
}

@group(0) @binding(0) var<storage, read_write> g: array<f32>;
@group(0) @binding(1) var<storage, read_write> p: array<u32>;
@group(0) @binding(2) var<storage, read_write> row: array<f32>;
@group(0) @binding(3) var<storage, read_write> sums: array<f32>;
@group(0) @binding(4) var<storage, read_write> params: Params;

const SIZE: u32 = 256u;
var<workgroup> part: array<vec2<f32>, 256>;

fn parameter(i: u32) -> f32 {
  if (params.packed == 0u) {
    return bitcast<f32>(p[i]);
  }
  let word = p[i / 2u];
  return select(bf16_low(word), bf16_high(word), (i & 1u) == 1u);
}

@compute @workgroup_size(SIZE)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let me = group_index(group, groups);
  for (var k = lane; k < 256u; k += SIZE) {
    var sum = vec2<f32>(0.0);
    if (me < params.lanes) {
      for (var first = me * 2048u; first < params.n; first += params.lanes * 2048u) {
        var s = vec2<f32>(0.0);
        for (var e = k; e < 2048u; e += 256u) {
          let i = first + e;
          if (i < params.n) {
            let gi = bounded(g[i]) * params.scale;
            let moment = lerp(row[i], gi * gi + params.eps1, params.w);
            row[i] = moment;
            let u = gi / sqrt(moment);
            s.x += u * u;
            if (params.relative_step != 0u) {
              let x = parameter(i);
              s.y += x * x;
            }
          }
        }
        sum += s;
      }
    }
    part[k] = sum;
  }
  workgroupBarrier();
  for (var stride = 128u; stride > 0u; stride /= 2u) {
    for (var k = lane; k < stride; k += SIZE) {
      part[k] += part[k + stride];
    }
    workgroupBarrier();
  }
  if (lane == 0u && me < params.lanes) {
    sums[me] = part[0].x;
    sums[params.lanes + me] = part[0].y;
  }
}
