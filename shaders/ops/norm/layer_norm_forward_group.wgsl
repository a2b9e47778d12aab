// y = (x − mean) r w + b with r = 1 / sqrt(var + eps), var = mean((x − mean)²). x, y [n, C], w, b [C], stats [n, 2] =
// mean, r; C a multiple of 4. For GPUs: one workgroup per row, in which neighbouring threads read neighbouring
// elements. Twin: ops/norm/layer.rs
struct Params {
  n: u32,
  width: u32,
  eps: f32,
}

@group(0) @binding(0) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> w: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> b: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> stats: array<f32>;
@group(0) @binding(5) var<storage, read_write> params: Params;

var<workgroup> lanes: array<f32, 64>;

// The total over the lanes, each of which has four sums.
fn total(lane: u32, sums: vec4<f32>) -> f32 {
  lanes[lane] = (sums.x + sums.y) + (sums.z + sums.w);
  workgroupBarrier();
  for (var stride = 32u; stride > 0u; stride /= 2u) {
    if (lane < stride) {
      lanes[lane] += lanes[lane + stride];
    }
    workgroupBarrier();
  }
  let all = lanes[0];
  workgroupBarrier();
  return all;
}

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
    sums += x[row * quarters + c];
  }
  let mean = total(lane, sums) / f32(params.width);
  var squares = vec4<f32>();
  for (var c = lane; c < end; c += 64u) {
    let v = x[row * quarters + c] - mean;
    squares += v * v;
  }
  let r = 1.0 / sqrt(total(lane, squares) / f32(params.width) + params.eps);
  for (var c = lane; c < end; c += 64u) {
    y[row * quarters + c] = (x[row * quarters + c] - mean) * r * w[c] + b[c];
  }
  if (lane == 0u && live) {
    stats[2u * row] = mean;
    stats[2u * row + 1u] = r;
  }
}
