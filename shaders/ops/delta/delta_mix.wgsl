// Rows of a chunk mixed with weights: y[t, h, c] = f Σ_s m[t, h, s] x_s[c], or with `turned` f Σ_s m[s, h, t] x_s[c],
// added to y with `add`. m [n, M, 64] is a lower triangle for each chunk, x [n, width] has x of a head from `first` on,
// y [n, M, dim]; value head h reads head ⌊h own / M⌋. One thread: four rows t. Twin: ops/delta/kernels.rs
struct Params {
  n: u32,
  len: u32,
  heads: u32,
  dim: u32,
  width: u32,
  own: u32,
  first: u32,
  turned: u32,
  add: u32,
  factor: f32,
}

@group(0) @binding(0) var<storage, read_write> m: array<f32>;
@group(0) @binding(1) var<storage, read_write> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<storage, read_write> params: Params;

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
  let first = block / 16u % chunks * 64u;
  let base = block / 16u / chunks * params.len + first;
  let rows = min(64u, params.len - first);
  if (four >= rows) {
    return;
  }
  let head = params.first + h * params.own / heads * dim + c;
  var sum = vec4<f32>();
  if (params.turned != 0u) {
    for (var s = four; s < rows; s++) {
      let at = ((base + s) * heads + h) * 64u + four;
      sum += vec4<f32>(m[at], m[at + 1u], m[at + 2u], m[at + 3u]) * x[(base + s) * params.width + head];
    }
  } else {
    // A row past the end is read as the last, and not written.
    let at = ((base + min(four + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(rows - 1u))) * heads + h) * 64u;
    for (var s = 0u; s < min(four + 4u, rows); s++) {
      let weights = vec4<f32>(m[at.x + s], m[at.y + s], m[at.z + s], m[at.w + s]);
      sum += weights * x[(base + s) * params.width + head];
    }
  }
  for (var k = 0u; k < 4u && four + k < rows; k++) {
    let to = ((base + four + k) * heads + h) * dim + c;
    var value = params.factor * sum[k];
    if (params.add != 0u) {
      value += y[to];
    }
    y[to] = value;
  }
}
