// y = x r (w + offset) with r = 1 / sqrt(mean(x²) + eps). x [n, C], w [C], y [n, C], scales [n] = r; C a multiple of
// 4. For GPUs: one workgroup per row, in which neighbouring threads read neighbouring elements. Twin: ops/norm/rms.rs
struct Params {
  n: u32,
  width: u32,
  eps: f32,
  offset: f32,
}

@group(0) @binding(0) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> w: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> scales: array<f32>;
@group(0) @binding(4) var<storage, read_write> params: Params;

var<workgroup> lanes: array<f32, 64>;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let row = group_index(group, groups);
  let quarters = params.width / 4u;
  let live = row < params.n;
  let end = select(0u, quarters, live);
  var sums = vec4<f32>();
  for (var c = lane; c < end; c += 64u) {
    let v = x[row * quarters + c];
    sums += v * v;
  }
  lanes[lane] = (sums.x + sums.y) + (sums.z + sums.w);
  workgroupBarrier();
  for (var stride = 32u; stride > 0u; stride /= 2u) {
    if (lane < stride) {
      lanes[lane] += lanes[lane + stride];
    }
    workgroupBarrier();
  }
  let r = 1.0 / sqrt(lanes[0] / f32(params.width) + params.eps);
  for (var c = lane; c < end; c += 64u) {
    y[row * quarters + c] = x[row * quarters + c] * r * (w[c] + params.offset);
  }
  if (lane == 0u && live) {
    scales[row] = r;
  }
}
