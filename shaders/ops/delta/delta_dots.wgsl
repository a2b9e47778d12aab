// Products of each head of a row, from which its gates' gradients follow: do·o − dv·v, then dv·δ. o, dout, dv, delta
// [n, M, E], x [n, width] ends with v, y [n, 2 M]. One thread: one head of a row. Twin: ops/delta/kernels.rs
struct Params {
  n: u32,
  heads: u32,
  dim: u32,
  width: u32,
}

@group(0) @binding(0) var<storage, read_write> o: array<f32>;
@group(0) @binding(1) var<storage, read_write> dout: array<f32>;
@group(0) @binding(2) var<storage, read_write> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> dv: array<f32>;
@group(0) @binding(4) var<storage, read_write> delta: array<f32>;
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
  if (i >= params.n * heads) {
    return;
  }
  let row = i / heads;
  let at = i * params.dim;
  let at_v = (row + 1u) * params.width - (heads - i % heads) * params.dim;
  var decayed = 0.0;
  var written = 0.0;
  for (var c = 0u; c < params.dim; c++) {
    let d = dv[at + c];
    decayed += dout[at + c] * o[at + c] - d * x[at_v + c];
    written += d * delta[at + c];
  }
  y[row * 2u * heads + i % heads] = decayed;
  y[row * 2u * heads + heads + i % heads] = written;
}
