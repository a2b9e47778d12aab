// A part of w, transposed and in f32: y[4 i + j, 4 at4 + r] = w[first + r, 4 (first4 + i) + j] for r < n and i < m4,
// and zeros from r = n up to a multiple of 4. w [rows, 4 k4], y [4 m4, 4 stride4]. One thread: 4 rows by 4 columns.
// Twin: ops/linear/kernels.rs
struct Params {
  n: u32,
  m4: u32,
  k4: u32,
  first: u32,
  first4: u32,
  stride4: u32,
  at4: u32,
  // Where the second plane of w begins.
  plane: u32,
}

@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> params: Params;

fn part4(row: u32, i: u32) -> vec4<f32> {
  return select(vec4<f32>(), weight4(params.first + min(row, params.n - 1u), params.first4 + i), row < params.n);
}

@compute @workgroup_size(32)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let n4 = (params.n + 3u) / 4u;
  let at = grid_index(group, groups, lane, 32u);
  let i = at / n4;
  let row = at % n4;
  if (i >= params.m4) {
    return;
  }
  let columns = transpose(mat4x4<f32>(
    part4(4u * row, i), part4(4u * row + 1u, i), part4(4u * row + 2u, i), part4(4u * row + 3u, i),
  ));
  let stride4 = params.stride4;
  let to = 4u * i * stride4 + params.at4 + row;
  y[to] = columns[0];
  y[to + stride4] = columns[1];
  y[to + 2u * stride4] = columns[2];
  y[to + 3u * stride4] = columns[3];
}
