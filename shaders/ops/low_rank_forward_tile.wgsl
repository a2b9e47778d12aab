// y = x Wᵀ + s z Bᵀ for GPUs by tiles (chunks/forward_tile.wgsl): y[r, c] = Σ_i x[r, i] w[c, i] + Σ_j z[r, j] s b[c,
// j]. x [n, k], z [n, r], y [n, m] f32, w [m, k], the factor b [m, r]; k = 4 k4, r = 4 r4. Twin: ops/low_rank.rs
struct Params {
  n: u32,
  m: u32,
  k4: u32,
  r4: u32,
  // 1 where the factor is f32, 0 where it is packed bf16.
  wide: u32,
  // s, the scale of the low-rank part.
  scale: f32,
  // Where the second plane of w begins.
  plane: u32,
}

@group(0) @binding(1) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> z: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> factor: array<u32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<storage, read_write> params: Params;

// Four values of the factor, f32 or packed bf16.
fn factor4(at: u32) -> vec4<f32> {
  if (params.wide == 1u) {
    let v = 4u * at;
    return bitcast<vec4<f32>>(vec4<u32>(factor[v], factor[v + 1u], factor[v + 2u], factor[v + 3u]));
  }
  return bf16_four(vec2<u32>(factor[2u * at], factor[2u * at + 1u]));
}

fn put(row: u32, column: u32, value: f32) {
  y[row * params.m + column] = value;
}

// The low-rank part is r more products of each sum.
fn more() -> u32 {
  return params.r4;
}

fn more_input(row: u32, i: u32) -> vec4<f32> {
  return z[row * params.r4 + i];
}

fn more_weight(row: u32, i: u32) -> vec4<f32> {
  return params.scale * factor4(row * params.r4 + i);
}
