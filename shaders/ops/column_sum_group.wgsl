// y[c] = Σ x[r, c]. x [n, C], y [C]. For GPUs: a workgroup takes 16 neighbouring columns, a thread every 16th row of
// one of them; the sums of the threads are added by strides 8, 4, 2, 1. Twin: ops/column_sum.rs
struct Params {
  n: u32,
  width: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> params: Params;

var<workgroup> sums: array<f32, 256>;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let column = 16u * group_index(group, groups) + lane % 16u;
  let live = column < params.width;
  let end = select(0u, params.n, live);
  var sum = 0.0;
  for (var r = lane / 16u; r < end; r += 16u) {
    sum += x[r * params.width + column];
  }
  sums[lane] = sum;
  workgroupBarrier();
  for (var stride = 8u; stride > 0u; stride /= 2u) {
    if (lane < 16u * stride) {
      sums[lane] += sums[lane + 16u * stride];
    }
    workgroupBarrier();
  }
  if (lane < 16u && live) {
    y[column] = sums[lane];
  }
}
