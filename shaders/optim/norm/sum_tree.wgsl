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
// The sums of the blocks j, j + 64, j + 128 and j + 192 of 256. Workgroup memory and text are kept short: a software
// adapter compiles a store for each word, and hundreds of instructions for each load in the text.
var<workgroup> fourths: array<f32, 64>;
var<workgroup> rounds: u32;

fn value(i: u32) -> f32 {
  if (i >= params.n) {
    return 0.0;
  }
  return x[i];
}

// Four values by strides 128, 64.
fn four(i: u32) -> f32 {
  var sum = 0.0;
  for (var near = 0u; near < 128u; near += 64u) {
    sum += value(i + near) + value(i + near + 128u);
  }
  return sum;
}

// The sum of a block from its eight leaves, by strides 4, 2, 1.
fn block(first: u32) -> f32 {
  let even = (leaves[first] + leaves[first + 4u]) + (leaves[first + 2u] + leaves[first + 6u]);
  let odd = (leaves[first + 1u] + leaves[first + 5u]) + (leaves[first + 3u] + leaves[first + 7u]);
  return even + odd;
}

// Eight fourths by strides 4, 2, 1 (times `step`).
fn eight(k: u32, step: u32) -> f32 {
  let a = (fourths[k] + fourths[k + 4u * step]) + (fourths[k + 2u * step] + fourths[k + 6u * step]);
  return a + ((fourths[k + step] + fourths[k + 5u * step]) + (fourths[k + 3u * step] + fourths[k + 7u * step]));
}

@compute @workgroup_size(SIZE)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let output = group_index(group, groups);
  let start = output * 65536u;
  for (var k = lane; k < 64u; k += SIZE) {
    fourths[k] = 0.0;
  }
  // A round sums SIZE / 8 blocks, SIZE / 32 fourths. Loop bounds around barriers have to be uniform.
  if (lane == 0u) {
    let blocks = (min(max(params.n, start) - start, 65536u) + 255u) / 256u;
    rounds = (32u * min(blocks, 64u) + SIZE - 1u) / SIZE;
  }
  let last = workgroupUniformLoad(&rounds);
  for (var round = 0u; round < last; round++) {
    let k = round * (SIZE / 32u) + lane / 32u + lane / 8u % 4u * 64u;
    let i = start + k * 256u + lane % 8u;
    var sum = 0.0;
    for (var near = 0u; near < 16u; near += 8u) {
      var half = 0.0;
      for (var far = near; far < near + 32u; far += 16u) {
        half += four(i + far) + four(i + far + 32u);
      }
      sum += half;
    }
    leaves[lane] = sum;
    workgroupBarrier();
    if (lane % 32u == 0u) {
      var fourth = 0.0;
      for (var near = lane; near < lane + 16u; near += 8u) {
        var pair = 0.0;
        for (var far = near; far < near + 32u; far += 16u) {
          pair += block(far);
        }
        fourth += pair;
      }
      fourths[k] = fourth;
    }
    workgroupBarrier();
  }
  if (lane == 0u && start < params.n) {
    for (var k = 0u; k <= 8u; k++) {
      let all = k == 8u;
      let sum = eight(select(k, 0u, all), select(8u, 1u, all));
      if (all) {
        y[output] = sum;
      } else {
        fourths[k] = sum;
      }
    }
  }
}
