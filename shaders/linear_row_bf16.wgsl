// y = x Wᵀ for few rows (generation): y[r, c] = Σ_i x[r, i] w[c, i]. x [n, k] f32, w [m, k] packed bf16, y [n, m]; k = 4 k4.
// One thread: one element of y. Twin: kernels/linear/kernels.rs
struct Params {
  n: u32,
  m: u32,
  k4: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> w: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  let m = params.m;
  let k4 = params.k4;
  if (i >= params.n * m) {
    return;
  }
  let from_x = i / m * k4;
  let from_w = i % m * k4;
  var sum = 0.0;
  for (var j = 0u; j < k4; j++) {
    let words = w[from_w + j];
    let q = vec4<f32>(bf16_low(words.x), bf16_high(words.x), bf16_low(words.y), bf16_high(words.y));
    sum += dot(x[from_x + j], q);
  }
  y[i] = sum;
}
