// Two levels of the block tree (optimizers.md §8): y[j] = the tree sum of x[65536·j …], n values in all; a workgroup an output.
// Repeated until one value is left. Twin: kernels/sum_tree.rs
struct Params {
  n: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> params: Params;

const SIZE: u32 = 256u;
var<workgroup> lanes: array<f32, 256>;
var<workgroup> blocks: array<f32, 256>;

fn value(i: u32) -> f32 {
  if (i >= params.n) {
    return 0.0;
  }
  return x[i];
}

@compute @workgroup_size(SIZE)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let output = group_index(group, groups);
  let start = output * 65536u;
  for (var round = 0u; round < 16u; round++) {
    for (var k = lane; k < 256u; k += SIZE) {
      let at = start + (round * 16u + k / 16u) * 256u + k % 16u;
      var s: array<f32, 16>;
      for (var e = 0u; e < 16u; e++) {
        s[e] = value(at + 16u * e);
      }
      for (var stride = 8u; stride > 0u; stride /= 2u) {
        for (var e = 0u; e < stride; e++) {
          s[e] += s[e + stride];
        }
      }
      lanes[k] = s[0];
    }
    workgroupBarrier();
    for (var k = lane; k < 16u; k += SIZE) {
      var s: array<f32, 16>;
      for (var e = 0u; e < 16u; e++) {
        s[e] = lanes[16u * k + e];
      }
      for (var stride = 8u; stride > 0u; stride /= 2u) {
        for (var e = 0u; e < stride; e++) {
          s[e] += s[e + stride];
        }
      }
      blocks[round * 16u + k] = s[0];
    }
    workgroupBarrier();
  }
  for (var stride = 128u; stride > 0u; stride /= 2u) {
    for (var k = lane; k < stride; k += SIZE) {
      blocks[k] += blocks[k + stride];
    }
    workgroupBarrier();
  }
  if (lane == 0u && start < params.n) {
    y[output] = blocks[0];
  }
}
