// y[0] = Σ_r stats[r, 0]: the losses of cross_entropy_forward. stats [n, 2], y [1]. One workgroup: 256 partial sums,
// then a tree, so that the order is fixed. Twin: ops/loss/cross_entropy.rs
struct Params {
  n: u32,
}

@group(0) @binding(0) var<storage, read_write> stats: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> params: Params;

const SIZE: u32 = 64u;
var<workgroup> sums: array<f32, SIZE>;

@compute @workgroup_size(SIZE)
fn main(@builtin(local_invocation_index) lane: u32) {
  // Adds the four partial sums of each thread, by strides 128, 64.
  var sum = 0.0;
  for (var near = 0u; near < 128u; near += 64u) {
    var pair = 0.0;
    for (var far = 0u; far < 256u; far += 128u) {
      var partial = 0.0;
      for (var r = lane + near + far; r < params.n; r += 256u) {
        partial += stats[2u * r];
      }
      pair += partial;
    }
    sum += pair;
  }
  sums[lane] = sum;
  workgroupBarrier();
  for (var half = 32u; half > 0u; half /= 2u) {
    if (lane < half) {
      sums[lane] += sums[lane + half];
    }
    workgroupBarrier();
  }
  if (lane == 0u) {
    y[0] = sums[0];
  }
}
