// dx (+)= dy W + s dz A for GPUs by tiles (chunks/input_tile.wgsl): dx[r, i] = Σ_c dy[r, c] w[c, i] + Σ_j dz[r, j] s
// a[j, i]. dy [n, m], dz [n, r] f32, w [m, k], the factor a [r, k], dx [slices, n, k]; m = 4 m4, k = 4 k4, r = 4 r4.
// Twin: ops/low_rank.rs
struct Params {
  n: u32,
  m4: u32,
  k4: u32,
  r4: u32,
  slice4: u32,
  add: u32,
  // 1 where the factor is f32, 0 where it is packed bf16.
  wide: u32,
  // s, the scale of the low-rank part.
  scale: f32,
  // Where the second plane of w begins.
  plane: u32,
}

@group(0) @binding(1) var<storage, read_write> dy: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> dz: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> factor: array<u32>;
@group(0) @binding(4) var<storage, read_write> dx: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> params: Params;

// Loops with barriers need bounds that are provably uniform.
var<workgroup> steps: u32;

// Four values of the factor, f32 or packed bf16.
fn factor4(at: u32) -> vec4<f32> {
  if (params.wide == 1u) {
    let v = 4u * at;
    return bitcast<vec4<f32>>(vec4<u32>(factor[v], factor[v + 1u], factor[v + 2u], factor[v + 3u]));
  }
  return bf16_four(vec2<u32>(factor[2u * at], factor[2u * at + 1u]));
}

fn outputs() -> u32 {
  return 4u * params.m4;
}

fn output4(row: u32, c: u32) -> vec4<f32> {
  return dy[row * params.m4 + c];
}

// The low-rank part is r more products of each sum.
fn more() -> u32 {
  return params.r4;
}

fn more_output(row: u32, c: u32) -> vec4<f32> {
  return dz[row * params.r4 + c];
}

fn more_weight(row: u32, i: u32) -> vec4<f32> {
  return params.scale * factor4(row * params.k4 + i);
}

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  if (lane == 0u) {
    steps = (min(params.slice4, params.m4) + params.r4 + 3u) / 4u;
  }
  input_gradient(group_index(group, groups), lane, workgroupUniformLoad(&steps));
}
