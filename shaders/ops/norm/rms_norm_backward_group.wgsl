// Gradients of rms_norm in one dispatch, for GPUs. First workgroups, one per row: dx = r (dy v − x r² mean(dy v x)),
// v = w + offset, added to dx if add is 1. Threads of the other workgroups, one per four columns of a part: dw =
// Σ_rows dy x r over the `rows` rows of each of P parts; column_sum adds the parts. x, dy, dx [n, C], w [C], scales
// [n] = r, dw [P, C]; C a multiple of 4. Twin: ops/norm/rms.rs
struct Params {
  n: u32,
  width: u32,
  rows: u32,
  parts: u32,
  add: u32,
  offset: f32,
}

@group(0) @binding(0) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> w: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> scales: array<f32>;
@group(0) @binding(3) var<storage, read_write> dy: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> dx: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> dw: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> params: Params;

var<workgroup> lanes: array<f32, 64>;

fn weight_gradient(i: u32) {
  let quarters = params.width / 4u;
  let column = i % quarters;
  let first = i / quarters * params.rows;
  let end = min(first + params.rows, params.n);
  var sum = vec4<f32>();
  for (var r = first; r < end; r++) {
    sum += dy[r * quarters + column] * x[r * quarters + column] * scales[r];
  }
  dw[i] = sum;
}

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let row = group_index(group, groups);
  let quarters = params.width / 4u;
  let end = select(0u, quarters, row < params.n);
  var sums = vec4<f32>();
  for (var c = lane; c < end; c += 64u) {
    sums += dy[row * quarters + c] * (w[c] + params.offset) * x[row * quarters + c];
  }
  lanes[lane] = (sums.x + sums.y) + (sums.z + sums.w);
  workgroupBarrier();
  for (var stride = 32u; stride > 0u; stride /= 2u) {
    if (lane < stride) {
      lanes[lane] += lanes[lane + stride];
    }
    workgroupBarrier();
  }
  if (row < params.n) {
    let r = scales[row];
    let mean = lanes[0] / f32(params.width) * r * r;
    for (var c = lane; c < end; c += 64u) {
      let at = row * quarters + c;
      let slope = dy[at] * (w[c] + params.offset);
      // Rounded before it is added, as if another launch added it: a zero that the compiler does not know prevents a
      // fused operation.
      let d = bitcast<vec4<f32>>(bitcast<vec4<u32>>(r * (slope - x[at] * mean)) + (params.add >> 1u));
      dx[at] = select(vec4<f32>(), dx[at], params.add == 1u) + d;
    }
  } else {
    let i = (row - params.n) * 64u + lane;
    if (i < params.parts * quarters) {
      weight_gradient(i);
    }
  }
}
