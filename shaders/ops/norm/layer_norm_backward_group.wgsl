// Gradients of layer_norm in one dispatch, for GPUs. First workgroups, one per row: dx = r (dy w − mean(dy w) − z
// mean(dy w z)) with z = (x − mean) r, added to dx if add is 1. Threads of the other workgroups, one per four columns
// of a part: dw = Σ_rows dy z, db = Σ_rows dy over the `rows` rows of each of P parts; column_sum adds the parts. x,
// dy, dx [n, C], w [C], stats [n, 2] = mean, r, dw, db [P, C]; C a multiple of 4. Twin: ops/norm/layer.rs
struct Params {
  n: u32,
  width: u32,
  rows: u32,
  parts: u32,
  add: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> w: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> stats: array<f32>;
@group(0) @binding(3) var<storage, read_write> dy: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> dx: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> dw: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> db: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> params: Params;

var<workgroup> lanes: array<vec2<f32>, 64>;

fn weight_gradients(i: u32) {
  let quarters = params.width / 4u;
  let column = i % quarters;
  let first = i / quarters * params.rows;
  let end = min(first + params.rows, params.n);
  var sum_w = vec4<f32>();
  var sum_b = vec4<f32>();
  for (var r = first; r < end; r++) {
    let d = dy[r * quarters + column];
    sum_w += d * ((x[r * quarters + column] - stats[2u * r]) * stats[2u * r + 1u]);
    sum_b += d;
  }
  dw[i] = sum_w;
  db[i] = sum_b;
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
  var mean = 0.0;
  var r = 0.0;
  if (live) {
    mean = stats[2u * row];
    r = stats[2u * row + 1u];
  }
  var sums = vec4<f32>();
  var sums_z = vec4<f32>();
  for (var c = lane; c < end; c += 64u) {
    let d = dy[row * quarters + c] * w[c];
    sums += d;
    sums_z += d * (x[row * quarters + c] - mean) * r;
  }
  lanes[lane] = vec2<f32>((sums.x + sums.y) + (sums.z + sums.w), (sums_z.x + sums_z.y) + (sums_z.z + sums_z.w));
  workgroupBarrier();
  for (var stride = 32u; stride > 0u; stride /= 2u) {
    if (lane < stride) {
      lanes[lane] += lanes[lane + stride];
    }
    workgroupBarrier();
  }
  if (live) {
    let means = lanes[0] / f32(params.width);
    for (var c = lane; c < end; c += 64u) {
      let at = row * quarters + c;
      // Rounded before it is added, as if another launch added it: a zero that the compiler does not know prevents a
      // fused operation.
      let d = r * (dy[at] * w[c] - means.x - (x[at] - mean) * r * means.y);
      let rounded = bitcast<vec4<f32>>(bitcast<vec4<u32>>(d) + (params.add >> 1u));
      dx[at] = select(vec4<f32>(), dx[at], params.add == 1u) + rounded;
    }
  } else {
    let i = (row - params.n) * 64u + lane;
    if (i < params.parts * quarters) {
      weight_gradients(i);
    }
  }
}
