// Products of the rows t and s of a chunk, y[t, h, s] = d (x_t · z_s) with the decay d from s to t, for s ≤ t of one
// document, or for s < t with `strict`, where `weighted` multiplies by β of t; 0 for all other s. With `times` the
// product x_t · z_s itself multiplies y. x [n, x_width] has x of a head from `x_first` on, z [n, z_width] from 0 on;
// value head h reads head ⌊h own / M⌋. sums [n, M, 2] as delta_decay makes them, gates [n, 2 M] end with β,
// y [n, M, 64]. One thread: four rows t. Twin: ops/delta/kernels.rs
struct Params {
  n: u32,
  len: u32,
  heads: u32,
  dim: u32,
  own: u32,
  x_width: u32,
  x_first: u32,
  z_width: u32,
  strict: u32,
  weighted: u32,
  documents: u32,
  times: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> z: array<f32>;
@group(0) @binding(2) var<storage, read_write> sums: array<f32>;
@group(0) @binding(3) var<storage, read_write> gates: array<f32>;
@group(0) @binding(4) var<storage, read_write> starts: array<u32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
@group(0) @binding(6) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  let heads = max(params.heads, 1u);
  let chunks = (params.len + 63u) / 64u;
  if (i >= params.n / params.len * chunks * 16u * heads * 64u) {
    return;
  }
  let s = i % 64u;
  let h = i / 64u % heads;
  let four = i / 64u / heads % 16u * 4u;
  let first = i / 1024u / heads % chunks * 64u;
  let base = i / 1024u / heads / chunks * params.len + first;
  let rows = min(64u, params.len - first);
  if (four >= rows) {
    return;
  }
  let head = h * params.own / heads * params.dim;
  var dots = vec4<f32>();
  if (s < rows && s <= four + 3u) {
    let at_z = (base + s) * params.z_width + head;
    // A row past the end is read as the last, and not written.
    let at_x = (base + min(four + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(rows - 1u))) * params.x_width
      + params.x_first + head;
    for (var c = 0u; c < params.dim; c++) {
      let rows_of_x = vec4<f32>(x[at_x.x + c], x[at_x.y + c], x[at_x.z + c], x[at_x.w + c]);
      dots += rows_of_x * z[at_z + c];
    }
  }
  for (var k = 0u; k < 4u; k++) {
    let t = four + k;
    if (t >= rows) {
      return;
    }
    let row = base + t;
    if (params.times != 0u) {
      y[(row * heads + h) * 64u + s] *= dots[k];
      continue;
    }
    var seen = s + params.strict <= t;
    if (params.documents != 0u) {
      seen = seen && first + s >= starts[row];
    }
    var value = 0.0;
    if (seen) {
      let to = 2u * (row * heads + h);
      let at = 2u * ((base + s) * heads + h);
      value = exp(-((sums[to] - sums[at]) + (sums[to + 1u] - sums[at + 1u]))) * dots[k];
      if (params.weighted != 0u) {
        value *= gates[row * 2u * heads + heads + h];
      }
    }
    y[(row * heads + h) * 64u + s] = value;
  }
}
