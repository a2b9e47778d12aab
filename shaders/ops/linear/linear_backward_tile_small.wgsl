// Made by shaders/blocks.mjs
// Gradients of y = x Wᵀ for GPUs in one dispatch: by the first `input` workgroups dx = dy W (chunks/input_tile*.wgsl),
// by the others dW = scale dyᵀ x, added to dW if add has bit 1. dy: m columns of [n, 4 stride4] from
// 4 first4 on, in 4 m4; x [n, k], w [m, k], dx [slices, n, k], dw [m, k]; k = 4 k4. A workgroup: 32 rows by 32 columns
// of one of them, 16 products of the sum at a time in workgroup memory. Twin: ops/linear/kernels.rs
struct Params {
  n: u32,
  m: u32,
  m4: u32,
  k4: u32,
  stride4: u32,
  first4: u32,
  slice4: u32,
  input: u32,
  add: u32,
  // Factor of dW.
  scale: f32,
  // Where the second plane of w begins.
  plane: u32,
}

@group(0) @binding(1) var<storage, read_write> dy: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> dx: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> dw: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> params: Params;

// Loops with barriers need bounds that are provably uniform: whether dx is computed, and the number of rounds.
var<workgroup> plan: vec2<u32>;

fn outputs() -> u32 {
  return params.m;
}

// Four values of a row of dy.
fn output4(row: u32, c: u32) -> vec4<f32> {
  return dy[row * params.stride4 + params.first4 + c];
}

// The sums of dx end with the products of dy and w.
fn more() -> u32 {
  return 0u;
}

fn more_output(row: u32, c: u32) -> vec4<f32> {
  return vec4<f32>();
}

fn more_weight(row: u32, i: u32) -> vec4<f32> {
  return vec4<f32>();
}

// Vectors of a row of dy and of x; zeros past an end.
fn outputs4(row: u32, c: u32) -> vec4<f32> {
  if (row < params.n && c < params.m4) {
    return output4(row, c);
  }
  return vec4<f32>();
}

fn inputs4(row: u32, i: u32) -> vec4<f32> {
  if (row < params.n && i < params.k4) {
    return x[row * params.k4 + i];
  }
  return vec4<f32>();
}

fn store_weight(row: u32, i: u32, sum: vec4<f32>) {
  if (row < outputs() && i < params.k4) {
    let at = row * params.k4 + i;
    dw[at] = select(vec4<f32>(), dw[at], (params.add & 2u) == 2u) + params.scale * sum;
  }
}

// The rows 4 ty + e and the vectors tx of dW; the sum runs over the rows of dy and x.
fn weight_gradient(tile: u32, lane: u32, rounds: u32) {
  let across = (params.k4 + 7u) / 8u;
  let top = tile / across * 8u;
  let column = tile % across * 8u;
  let tx = lane % 8u;
  let ty = lane / 8u;
  let v = lane % 8u;
  var at = lane / 8u;
  var a0 = vec4<f32>(); var a1 = vec4<f32>();
  var a2 = vec4<f32>(); var a3 = vec4<f32>();
  var l0 = outputs4(at, top + v);
  var r0 = inputs4(at, column + v);
  var l1 = outputs4(at + 8u, top + v);
  var r1 = inputs4(at + 8u, column + v);
  for (var round = 0u; round < rounds; round++) {
    left[lane] = l0;
    right[lane] = r0;
    left[lane + 64u] = l1;
    right[lane + 64u] = r1;
    workgroupBarrier();
    at += 16u;
    l0 = outputs4(at, top + v);
    r0 = inputs4(at, column + v);
    l1 = outputs4(at + 8u, top + v);
    r1 = inputs4(at + 8u, column + v);
    for (var r = 0u; r < 16u; r++) {
      let p = left[r * 8u + ty];
      let a = right[r * 8u + tx];
      a0 = fma(vec4<f32>(p.x), a, a0);
      a1 = fma(vec4<f32>(p.y), a, a1);
      a2 = fma(vec4<f32>(p.z), a, a2);
      a3 = fma(vec4<f32>(p.w), a, a3);
    }
    workgroupBarrier();
  }
  let row = 4u * (top + ty);
  store_weight(row, column + tx, a0);
  store_weight(row + 1u, column + tx, a1);
  store_weight(row + 2u, column + tx, a2);
  store_weight(row + 3u, column + tx, a3);
}

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let tile = group_index(group, groups);
  if (lane == 0u) {
    let before = tile < params.input;
    plan = vec2<u32>(u32(before), select((params.n + 15u) / 16u, (min(params.slice4, params.m4) + 3u) / 4u, before));
  }
  let chosen = workgroupUniformLoad(&plan);
  if (chosen.x == 1u) {
    input_gradient(tile, lane, chosen.y);
  } else {
    weight_gradient(tile - params.input, lane, chosen.y);
  }
}
