// The soft cap of attention's scores and of logits, with the stem's entry point: z = c tanh(s / c), whose slope is
// 1 − (z / c)². tanh is the polynomial of Cephes' tanhf below 0.625 and 1 − 2/(e²ˣ + 1) from there on, so that no
// digits cancel. Past 15 it is 1; NaN stays NaN.
fn capped(s: vec4<f32>, c: f32) -> vec4<f32> {
  let u = s / c;
  let x = select(u, sign(u) * 15.0, abs(u) > vec4<f32>(15.0));
  let x2 = x * x;
  let p = ((-5.70498872745e-3 * x2 + 2.06390887954e-2) * x2 - 5.37397155531e-2) * x2 + 1.33314422036e-1;
  let near = x + x * (x2 * (p * x2 - 3.33332819422e-1));
  let far = sign(x) * (1.0 - 2.0 / (exp(2.0 * abs(x)) + 1.0));
  return c * select(far, near, abs(x) < vec4<f32>(0.625));
}

fn cap_slope(z: vec4<f32>, c: f32) -> vec4<f32> {
  let t = z / c;
  return 1.0 - t * t;
}
