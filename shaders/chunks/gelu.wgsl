// GELU's tanh form, with the stem's entry point.
// (1 + tanh u) / 2 = 1 / (1 + exp(−2u)), u = √(2/π) (x + 0.044715 x³): no cancellation, and finite for every finite x.
fn half_tanh(x: f32) -> f32 {
  let z = clamp(x, -20.0, 20.0);
  let u = clamp(0.7978845608 * (z + 0.044715 * z * z * z), -43.0, 43.0);
  return select(1.0 / (1.0 + exp(-2.0 * u)), 0.0, x < -20.0);
}

// The slope of GELU where half_tanh is h.
fn gelu_slope(x: f32, h: f32) -> f32 {
  let z = clamp(x, -20.0, 20.0);
  let slope = 2.0 * z * h * (1.0 - h) * 0.7978845608 * (1.0 + 0.134145 * z * z);
  // A NaN input must stay NaN, but clamp would hide it.
  let broken = select(0.0, x, is_nan_bits(bitcast<u32>(x)));
  return h + slope + broken;
}
