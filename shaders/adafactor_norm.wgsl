// Adafactor, pass 3 of 4 (optimizers.md §5): what the update's size needs, over a matrix [rows, cols]. Workgroup ℓ of L = min(256, tiles)
// takes the tiles (32 × 64) ℓ, ℓ + L, … and writes Σ a², a = (g·1/√row)·1/√col, to sums[ℓ]; Σ p² to sums[L + ℓ] (relative_step only,
// else 0); and Σ row over the rows of its blocks of 256 to sums[2L + ℓ]. Twin: kernels/adafactor_norm.rs
struct Params {
  rows: u32,
  cols: u32,
  lanes: u32,
  scale: f32,
  relative_step: u32,
  packed: u32,
}

@group(0) @binding(0) var<storage, read_write> g: array<f32>;
@group(0) @binding(1) var<storage, read_write> p: array<u32>;
@group(0) @binding(2) var<storage, read_write> row: array<f32>;
@group(0) @binding(3) var<storage, read_write> col: array<f32>;
@group(0) @binding(4) var<storage, read_write> sums: array<f32>;
@group(0) @binding(5) var<storage, read_write> params: Params;

const SIZE: u32 = 256u;
var<workgroup> part: array<vec3<f32>, 256>;

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
  let across = (params.cols + 63u) / 64u;
  let tiles = across * ((params.rows + 31u) / 32u);
  for (var k = lane; k < 256u; k += SIZE) {
    var sum = vec3<f32>(0.0);
    for (var tile = me; tile < tiles; tile += params.lanes) {
      let j = (tile % across) * 64u + k % 64u;
      if (j < params.cols) {
        let kappa = 1.0 / sqrt(col[j]);
        var s = vec2<f32>(0.0);
        for (var e = k / 64u; e < 32u; e += 4u) {
          let i = (tile / across) * 32u + e;
          if (i < params.rows) {
            let at = i * params.cols + j;
            let a = (bounded(g[at]) * params.scale * (1.0 / sqrt(row[i]))) * kappa;
            s.x += a * a;
            if (params.relative_step != 0u) {
              let x = parameter(at);
              s.y += x * x;
            }
          }
        }
        sum.x += s.x;
        sum.y += s.y;
      }
    }
    for (var i = me * 256u + k; i < params.rows; i += params.lanes * 256u) {
      sum.z += row[i];
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
    sums[2u * params.lanes + me] = part[0].z;
  }
}
