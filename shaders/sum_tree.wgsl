// Two levels of the block tree (shaders/README.md, "Block tree"): y[j] = the tree sum of x[65536·j …], n values in
// total; one workgroup per output. Repeated until one value is left. Twin: optim/norm/tree.rs
struct Params {
  n: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> params: Params;

const SIZE: u32 = 64u;
var<workgroup> leaves: array<f32, SIZE>;
var<workgroup> blocks: array<f32, 256>;
var<workgroup> rounds: u32;

fn value(i: u32) -> f32 {
  if (i >= params.n) {
    return 0.0;
  }
  return x[i];
}

// Four values by strides 128, 64.
fn four(i: u32) -> f32 {
  return (value(i) + value(i + 128u)) + (value(i + 64u) + value(i + 192u));
}

// Block k of `done`; 0 past the end.
fn block(k: u32, done: u32) -> f32 {
  if (k >= done) {
    return 0.0;
  }
  return blocks[k];
}

// Eight blocks by strides 4, 2, 1 (times `step`).
fn eight(k: u32, step: u32) -> f32 {
  let a = (blocks[k] + blocks[k + 4u * step]) + (blocks[k + 2u * step] + blocks[k + 6u * step]);
  return a + ((blocks[k + step] + blocks[k + 5u * step]) + (blocks[k + 3u * step] + blocks[k + 7u * step]));
}

@compute @workgroup_size(SIZE)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let output = group_index(group, groups);
  let start = output * 65536u;
  // A round sums SIZE / 8 blocks. Loop bounds around barriers have to be uniform.
  if (lane == 0u) {
    let count = (min(max(params.n, start) - start, 65536u) + 255u) / 256u;
    rounds = (8u * count + SIZE - 1u) / SIZE;
  }
  let last = workgroupUniformLoad(&rounds);
  for (var round = 0u; round < last; round++) {
    let k = round * (SIZE / 8u) + lane / 8u;
    let i = start + k * 256u + lane % 8u;
    let a = (four(i) + four(i + 32u)) + (four(i + 16u) + four(i + 48u));
    let b = (four(i + 8u) + four(i + 40u)) + (four(i + 24u) + four(i + 56u));
    leaves[lane] = a + b;
    workgroupBarrier();
    if (lane % 8u == 0u) {
      let even = (leaves[lane] + leaves[lane + 4u]) + (leaves[lane + 2u] + leaves[lane + 6u]);
      let odd = (leaves[lane + 1u] + leaves[lane + 5u]) + (leaves[lane + 3u] + leaves[lane + 7u]);
      blocks[k] = even + odd;
    }
    workgroupBarrier();
  }
  let done = last * (SIZE / 8u);
  for (var k = lane; k < 64u; k += SIZE) {
    blocks[k] = (block(k, done) + block(k + 128u, done)) + (block(k + 64u, done) + block(k + 192u, done));
  }
  workgroupBarrier();
  if (lane == 0u && start < params.n) {
    for (var k = 0u; k < 8u; k++) {
      blocks[k] = eight(k, 8u);
    }
    y[output] = eight(0u, 1u);
  }
}
