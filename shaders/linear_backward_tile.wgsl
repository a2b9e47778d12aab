// Gradients of y = x Wᵀ for GPUs in one dispatch: by the first `input` workgroups dx = dy W (chunks/input_tile.wgsl),
// by the others dW = scale dyᵀ x, added to dW if add has bit 1. dy [n, m], x [n, k], w [m, k], dx [slices, n, k], dw
// [m, k]; m = 4 m4, k = 4 k4. A workgroup: 64 rows by 64 columns of one of them, 16 products of the sum at a time in
// workgroup memory. Twin: ops/linear/kernels.rs
struct Params {
  n: u32,
  m4: u32,
  k4: u32,
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

// The rows 4 (ty + 8 a) + e and the vectors tx, tx + 8 of dW; the sum runs over the rows of dy and x.
fn weight_gradient(tile: u32, lane: u32, rounds: u32) {
  let k4 = params.k4;
  let across = (k4 + 15u) / 16u;
  let top = tile / across * 16u;
  let column = tile % across * 16u;
  let tx = lane % 8u;
  let ty = lane / 8u;
  var sums = array<vec4<f32>, 16>();
  for (var round = 0u; round < rounds; round++) {
    for (var e = 0u; e < 4u; e++) {
      let r = lane / 16u + 4u * e;
      let row = 16u * round + r;
      let v = lane % 16u;
      left[r * 16u + v] = vec4<f32>();
      right[r * 16u + v] = vec4<f32>();
      if (row < params.n && top + v < params.m4) {
        left[r * 16u + v] = dy[row * params.m4 + top + v];
      }
      if (row < params.n && column + v < k4) {
        right[r * 16u + v] = x[row * k4 + column + v];
      }
    }
    workgroupBarrier();
    for (var r = 0u; r < 16u; r++) {
      let p = left[r * 16u + ty];
      let q = left[r * 16u + ty + 8u];
      let a = right[r * 16u + tx];
      let b = right[r * 16u + tx + 8u];
      for (var e = 0u; e < 4u; e++) {
        sums[2u * e] += p[e] * a;
        sums[2u * e + 1u] += p[e] * b;
        sums[2u * e + 8u] += q[e] * a;
        sums[2u * e + 9u] += q[e] * b;
      }
    }
    workgroupBarrier();
  }
  for (var a = 0u; a < 16u; a++) {
    let v = top + ty + 8u * (a / 8u);
    let i = column + tx + 8u * (a % 2u);
    if (v < params.m4 && i < k4) {
      let at = (4u * v + a % 8u / 2u) * k4 + i;
      dw[at] = select(vec4<f32>(), dw[at], (params.add & 2u) == 2u) + params.scale * sums[a];
    }
  }
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
