// Gradients of rms_norm in one dispatch. First threads, one per row: dx = r (dy v − x r² mean(dy v x)), v = w +
// offset, added to dx if add is 1. Other threads, one per column of a part: dw = Σ_rows dy x r over the `rows` rows
// of each of P parts; column_sum adds the parts. x, dy, dx [n, C], w [C], scales [n] = r, dw [P, C].
// Twin: ops/norm/rms.rs
struct Params {
  n: u32,
  width: u32,
  rows: u32,
  parts: u32,
  add: u32,
  offset: f32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> w: array<f32>;
@group(0) @binding(2) var<storage, read_write> scales: array<f32>;
@group(0) @binding(3) var<storage, read_write> dy: array<f32>;
@group(0) @binding(4) var<storage, read_write> dx: array<f32>;
@group(0) @binding(5) var<storage, read_write> dw: array<f32>;
@group(0) @binding(6) var<storage, read_write> params: Params;

fn input_gradient(i: u32) {
  let width = params.width;
  let row = i * width;
  var sum = 0.0;
  for (var c = 0u; c < width; c++) {
    sum += dy[row + c] * (w[c] + params.offset) * x[row + c];
  }
  let r = scales[i];
  let mean = sum / f32(width) * r * r;
  for (var c = 0u; c < width; c++) {
    let slope = dy[row + c] * (w[c] + params.offset);
    // Rounded before it is added, as if another launch added it: a zero that the compiler does not know prevents a
    // fused operation.
    let d = bitcast<f32>(bitcast<u32>(r * (slope - x[row + c] * mean)) + (params.add >> 1u));
    dx[row + c] = select(0.0, dx[row + c], params.add == 1u) + d;
  }
}

fn weight_gradient(i: u32) {
  let width = params.width;
  let column = i % width;
  let first = i / width * params.rows;
  let end = min(first + params.rows, params.n);
  var sum = 0.0;
  for (var r = first; r < end; r++) {
    sum += dy[r * width + column] * x[r * width + column] * scales[r];
  }
  dw[i] = sum;
}

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  // The second part starts with a new workgroup.
  let first = (params.n + 63u) / 64u * 64u;
  if (i < params.n) {
    input_gradient(i);
  } else if (i >= first && i - first < params.parts * params.width) {
    weight_gradient(i - first);
  }
}
