// Adafactor, pass 3 of 4 (shaders/README.md, "Adafactor"; arXiv:1804.04235): the sums for the size of the update of a
// matrix [rows, cols].
// Workgroup ℓ of L = min(256, tiles) takes the tiles (32 × 64) ℓ, ℓ + L, … and writes Σ a², a = (g·1/√row)·1/√col, to
// sums[ℓ]; Σ p² to sums[L + ℓ] (relative_step only, else 0); and Σ row over the rows of its blocks of 256 to sums[2L +
// ℓ]. Lane k of 256 sums column k % 64 and every fourth row of a tile; the lanes are added by strides 128 … 1. A thread
// has the four lanes of a column.
// Twin: optim/adafactor/norm.rs
struct Params {
  rows: u32,
  cols: u32,
  lanes: u32,
  relative_step: u32,
  packed: u32,
}

@group(0) @binding(0) var<storage, read_write> g: array<f32>;
@group(0) @binding(1) var<storage, read_write> p: array<u32>;
@group(0) @binding(2) var<storage, read_write> row: array<f32>;
@group(0) @binding(3) var<storage, read_write> col: array<f32>;
@group(0) @binding(4) var<storage, read_write> gate: Gate;
@group(0) @binding(5) var<storage, read_write> sums: array<f32>;
@group(0) @binding(6) var<storage, read_write> params: Params;

const SIZE: u32 = 64u;
var<workgroup> part: array<vec3<f32>, 64>;

fn parameter(i: u32) -> f32 {
  if (params.packed == 0u) {
    return bitcast<f32>(p[i]);
  }
  let word = p[i / 2u];
  return select(bf16_low(word), bf16_high(word), (i & 1u) == 1u);
}

// Eight parts by strides 4, 2, 1 (times `step`).
fn eight(k: u32, step: u32) -> vec3<f32> {
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
  let across = (params.cols + 63u) / 64u;
  let tiles = across * ((params.rows + 31u) / 32u);
  let quarters = vec4<u32>(0u, 1u, 2u, 3u);
  for (var k = lane; k < 64u; k += SIZE) {
    var u = vec4<f32>(0.0);
    var x = vec4<f32>(0.0);
    for (var tile = me; tile < tiles; tile += max(params.lanes, 1u)) {
      let j = (tile % across) * 64u + k;
      if (j < params.cols) {
        let kappa = 1.0 / sqrt(col[j]);
        var u_tile = vec4<f32>(0.0);
        var x_tile = vec4<f32>(0.0);
        for (var e = 0u; e < 32u; e += 4u) {
          let i = (tile / across) * 32u + e + quarters;
          let inside = i < vec4<u32>(params.rows);
          let near = min(i, vec4<u32>(params.rows - 1u));
          let at = near * params.cols + j;
          let gs = vec4<f32>(bounded(g[at.x]), bounded(g[at.y]), bounded(g[at.z]), bounded(g[at.w]));
          let rows = vec4<f32>(row[near.x], row[near.y], row[near.z], row[near.w]);
          let a = (gs * gate.factor * (1.0 / sqrt(rows))) * kappa;
          u_tile += select(vec4<f32>(0.0), a * a, inside);
          if (params.relative_step != 0u) {
            let p4 = vec4<f32>(parameter(at.x), parameter(at.y), parameter(at.z), parameter(at.w));
            x_tile += select(vec4<f32>(0.0), p4 * p4, inside);
          }
        }
        u += u_tile;
        x += x_tile;
      }
    }
    var total = vec4<f32>(0.0);
    for (var first = me * 256u + k; first < params.rows; first += max(256u * params.lanes, 1u)) {
      for (var e = 0u; e < 4u && first + 64u * e < params.rows; e++) {
        total[e] += row[first + 64u * e];
      }
    }
    part[k] = vec3<f32>(
      (u.x + u.z) + (u.y + u.w),
      (x.x + x.z) + (x.y + x.w),
      (total.x + total.z) + (total.y + total.w),
    );
  }
  workgroupBarrier();
  if (lane == 0u && me < params.lanes) {
    for (var k = 0u; k < 8u; k++) {
      part[k] = eight(k, 8u);
    }
    let all = eight(0u, 1u);
    sums[me] = all.x;
    sums[params.lanes + me] = all.y;
    sums[2u * params.lanes + me] = all.z;
  }
}
