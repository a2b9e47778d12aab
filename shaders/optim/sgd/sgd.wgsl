// SGD without momentum on n elements, in place (shaders/README.md, "SGD"). One thread: two elements, one packed word
// (bf16) or two (f32).
//   g ← bounded(g)·factor    p ← p·d − η·g        d = 1 − ηλ. Twin: optim/sgd/kernel.rs
struct Params {
  n: u32,
  rate: f32,
  d: f32,
  @align(16) noise: Noise,
}

@group(0) @binding(0) var<storage, read_write> g: array<f32>;
@group(0) @binding(1) var<storage, read_write> gate: Gate;
@group(0) @binding(2) var<storage, read_write> p: array<u32>;
@group(0) @binding(3) var<storage, read_write> params: Params;

fn element(p0: f32, i: u32) -> f32 {
  return p0 * params.d - params.rate * (bounded(g[i]) * gate.factor);
}
