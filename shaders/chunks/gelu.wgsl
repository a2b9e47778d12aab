// GELU's tanh form, with the stem's entry point.
// (1 + tanh u) / 2 = 1 / (1 + exp(−2u)), u = √(2/π) (x + 0.044715 x³): no cancellation, and finite for every finite x.
fn half_tanh(x: f32) -> f32 {
  let z = clamp(x, -20.0, 20.0);
  let u = clamp(0.7978845608 * (z + 0.044715 * z * z * z), -43.0, 43.0);
  return select(1.0 / (1.0 + exp(-2.0 * u)), 0.0, x < -20.0);
}
