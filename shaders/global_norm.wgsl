// Sums of squares of a gradient of n elements, one for each block of 256 (optimizers.md §8): partials[first + block] = Σ bounded(g)².
// A workgroup does 16 blocks; 16 threads a block, each 16 elements in registers; strides 128 … 1, as the block tree says.
// NaN and Inf pass into the sum. Twin: kernels/global_norm.rs
struct Params {
  n: u32,
  first: u32,
}

@group(0) @binding(0) var<storage, read_write> g: array<f32>;
@group(0) @binding(1) var<storage, read_write> partials: array<f32>;
@group(0) @binding(2) var<storage, read_write> params: Params;

const SIZE: u32 = 256u;
var<workgroup> lanes: array<f32, 256>;

fn square(i: u32) -> f32 {
  if (i >= params.n) {
    return 0.0;
  }
  let x = bounded(g[i]);
  return x * x;
}

@compute @workgroup_size(SIZE)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let first_block = group_index(group, groups) * 16u;
  for (var k = lane; k < 256u; k += SIZE) {
    let start = (first_block + k / 16u) * 256u + k % 16u;
    var x: array<f32, 16>;
    for (var e = 0u; e < 16u; e++) {
      x[e] = square(start + 16u * e);
    }
    for (var stride = 8u; stride > 0u; stride /= 2u) {
      for (var e = 0u; e < stride; e++) {
        x[e] += x[e + stride];
      }
    }
    lanes[k] = x[0];
  }
  workgroupBarrier();
  for (var k = lane; k < 16u; k += SIZE) {
    let block = first_block + k;
    if (block * 256u < params.n) {
      var x: array<f32, 16>;
      for (var e = 0u; e < 16u; e++) {
        x[e] = lanes[16u * k + e];
      }
      for (var stride = 8u; stride > 0u; stride /= 2u) {
        for (var e = 0u; e < stride; e++) {
          x[e] += x[e + stride];
        }
      }
      partials[params.first + block] = x[0];
    }
  }
}
