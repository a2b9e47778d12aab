// Rows of a chunk that read its state: y[t, h, c] = f w[t, h] Σ_l x_t[l] S[c, l], or with `turned`
// f w[t, h] Σ_l x_t[l] S[l, c], added to y with `add`. x [n, width] has x of a head from `first` on, w [n, M], S of
// chunk j of a sequence is at its place j of `states` in s [B, states, M, …], y [n, M, dim]; value head h reads head
// ⌊h own / M⌋ of x. One thread: four rows t. Twin: ops/delta/kernels.rs
struct Params {
  n: u32,
  len: u32,
  heads: u32,
  dim: u32,
  inner: u32,
  width: u32,
  own: u32,
  first: u32,
  states: u32,
  turned: u32,
  add: u32,
  factor: f32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> s: array<f32>;
@group(0) @binding(2) var<storage, read_write> w: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  let heads = max(params.heads, 1u);
  let dim = max(params.dim, 1u);
  let chunks = (params.len + 63u) / 64u;
  if (i >= params.n / params.len * chunks * 16u * heads * dim) {
    return;
  }
  let c = i % dim;
  let h = i / dim % heads;
  let block = i / dim / heads;
  let four = block % 16u * 4u;
  let chunk = block / 16u % chunks;
  let sequence = block / 16u / chunks;
  let base = sequence * params.len + chunk * 64u;
  let rows = min(64u, params.len - chunk * 64u);
  if (four >= rows) {
    return;
  }
  let head = params.first + h * params.own / heads * params.inner;
  var at_s = ((sequence * params.states + chunk) * heads + h) * dim * params.inner;
  var step = 1u;
  if (params.turned != 0u) {
    at_s += c;
    step = dim;
  } else {
    at_s += c * params.inner;
  }
  // A row past the end is read as the last, and not written.
  let at = (base + min(four + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(rows - 1u))) * params.width + head;
  var sum = vec4<f32>();
  for (var l = 0u; l < params.inner; l++) {
    sum += vec4<f32>(x[at.x + l], x[at.y + l], x[at.z + l], x[at.w + l]) * s[at_s + l * step];
  }
  for (var k = 0u; k < 4u && four + k < rows; k++) {
    let row = (base + four + k) * heads + h;
    var value = params.factor * w[row] * sum[k];
    if (params.add != 0u) {
      value += y[row * dim + c];
    }
    y[row * dim + c] = value;
  }
}
