// APOLLO, the last pass (shaders/README.md, "APOLLO", 3 to 5; arXiv:2412.05270): the update of a matrix [rows, cols],
// f32 or packed bf16, in place. One thread: two elements.
//   U = g·s (of the row, the column, or the tensor)    U ← back·((front·U)/ℓ)    x = p·d − α·U    store by stream p
// stats, factors as apollo_project and apollo_combine write them. Twin: optim/apollo/apply.rs
struct Params {
  n: u32,
  cols: u32,
  channels_are_rows: u32,
  mini: u32,
  front: f32,
  back: f32,
  d: f32,
  alpha: f32,
  @align(16) noise: Noise,
}

@group(0) @binding(0) var<storage, read_write> g: array<f32>;
@group(0) @binding(1) var<storage, read_write> stats: array<f32>;
@group(0) @binding(2) var<storage, read_write> factors: array<f32>;
@group(0) @binding(3) var<storage, read_write> gate: Gate;
@group(0) @binding(4) var<storage, read_write> p: array<u32>;
@group(0) @binding(5) var<storage, read_write> params: Params;

fn element(p0: f32, i: u32) -> f32 {
  var s = factors[0];
  if (params.mini == 0u) {
    s = stats[select(i % params.cols, i / params.cols, params.channels_are_rows != 0u)];
  }
  let u = bounded(g[i]) * gate.factor * s;
  return p0 * params.d - params.alpha * (((u * params.front) / factors[1]) * params.back);
}
