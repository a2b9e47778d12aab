// Gradients of the decay's logarithm g = −exp(A) softplus(a + bias), of which dg arrives: da = −dg exp(A) σ(a + bias),
// and dA = dg g of each row, which column_sum adds. a, dg, da, da_log [n, M], A, bias [M]. One thread: one head of a
// row. Twin: ops/delta/kernels.rs
struct Params {
  n: u32,
  heads: u32,
}

@group(0) @binding(0) var<storage, read_write> a: array<f32>;
@group(0) @binding(1) var<storage, read_write> log_rates: array<f32>;
@group(0) @binding(2) var<storage, read_write> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> dg: array<f32>;
@group(0) @binding(4) var<storage, read_write> da: array<f32>;
@group(0) @binding(5) var<storage, read_write> drates: array<f32>;
@group(0) @binding(6) var<storage, read_write> params: Params;

// ln(1 + exp(x)); for a small e = exp(−|x|) by the series of ln(1 + e), which 1 + e would round away.
fn softplus(x: f32) -> f32 {
  let e = exp(-min(abs(x), 87.0));
  let series = e * (1.0 - e * (0.5 - e * (0.33333334 - e * 0.25)));
  return max(x, 0.0) + select(log(1.0 + e), series, e < 0.03);
}

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
  let h = i % heads;
  let x = a[i] + bias[h];
  let slope = -dg[i] * exp(log_rates[h]);
  da[i] = slope / (1.0 + exp(min(-x, 87.0)));
  drates[i] = slope * softplus(x);
}
