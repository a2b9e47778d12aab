// Sums of squares of a gradient of n elements, one for each block of 256 (shaders/README.md, "Block tree").
//   partials[first + block] = Σ bounded(g)²
// A workgroup sums 8 blocks; 8 threads per block, each with 32 elements in registers: strides 128 … 8, and the first of
// them 4, 2, 1.
// NaN and Inf pass into the sum. Twin: optim/norm/blocks.rs
struct Params {
  n: u32,
  first: u32,
}

@group(0) @binding(0) var<storage, read_write> g: array<f32>;
@group(0) @binding(1) var<storage, read_write> partials: array<f32>;
@group(0) @binding(2) var<storage, read_write> params: Params;

const SIZE: u32 = 64u;
var<workgroup> leaves: array<f32, SIZE>;

fn square(i: u32) -> f32 {
  if (i >= params.n) {
    return 0.0;
  }
  let x = bounded(g[i]);
  return x * x;
}

// Four values by strides 128, 64.
fn four(i: u32) -> f32 {
  return (square(i) + square(i + 128u)) + (square(i + 64u) + square(i + 192u));
}

@compute @workgroup_size(SIZE)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let block = group_index(group, groups) * (SIZE / 8u) + lane / 8u;
  let i = block * 256u + lane % 8u;
  let a = (four(i) + four(i + 32u)) + (four(i + 16u) + four(i + 48u));
  let b = (four(i + 8u) + four(i + 40u)) + (four(i + 24u) + four(i + 56u));
  leaves[lane] = a + b;
  workgroupBarrier();
  if (lane % 8u == 0u && block * 256u < params.n) {
    let even = (leaves[lane] + leaves[lane + 4u]) + (leaves[lane + 2u] + leaves[lane + 6u]);
    let odd = (leaves[lane + 1u] + leaves[lane + 5u]) + (leaves[lane + 3u] + leaves[lane + 7u]);
    partials[params.first + block] = even + odd;
  }
}
