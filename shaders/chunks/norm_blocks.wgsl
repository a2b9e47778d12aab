// The entry point of the first stage of the gradient norm: sums of squares of blocks of 256 elements
// (shaders/README.md, "Block tree"). The stem gives the gradient of a workgroup, and its elements.
//   partials[first + block] = Σ bounded(g)²
// A workgroup sums 8 blocks, with 8 threads per block. Each adds its 32 elements by strides 128 … 8 in registers; then
// the first thread of the block adds by strides 4, 2, 1. NaN and Inf pass into the sum.
const SIZE: u32 = 64u;
var<workgroup> leaves: array<f32, SIZE>;

// The share of a workgroup: the index of the gradient, its n elements, the index `first` of its first partial, and the
// index `part` of the workgroup among those of this gradient.
struct Share {
  gradient: u32,
  n: u32,
  first: u32,
  part: u32,
}

fn square(share: Share, i: u32) -> f32 {
  if (i >= share.n) {
    return 0.0;
  }
  let x = bounded(value(share.gradient, i));
  return x * x;
}

// Four values by strides 128, 64.
fn four(share: Share, i: u32) -> f32 {
  return (square(share, i) + square(share, i + 128u)) + (square(share, i + 64u) + square(share, i + 192u));
}

@compute @workgroup_size(SIZE)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let share = share_of(group_index(group, groups));
  let block = share.part * (SIZE / 8u) + lane / 8u;
  let i = block * 256u + lane % 8u;
  // By strides 32, 16 and 8. In loops, since a software adapter's compiler takes long for text that reads buffers.
  var sum = 0.0;
  for (var near = 0u; near < 2u; near++) {
    var part = 0.0;
    for (var far = 0u; far < 2u; far++) {
      var pair = 0.0;
      for (var wide = 0u; wide < 2u; wide++) {
        pair += four(share, i + 8u * near + 16u * far + 32u * wide);
      }
      part += pair;
    }
    sum += part;
  }
  leaves[lane] = sum;
  workgroupBarrier();
  if (lane % 8u == 0u && block * 256u < share.n) {
    let even = (leaves[lane] + leaves[lane + 4u]) + (leaves[lane + 2u] + leaves[lane + 6u]);
    let odd = (leaves[lane + 1u] + leaves[lane + 5u]) + (leaves[lane + 3u] + leaves[lane + 7u]);
    partials[share.first + block] = even + odd;
  }
}
