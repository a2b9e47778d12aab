// APOLLO from rank 8 on, pass 3 of 5 (shaders/README.md, "APOLLO"; arXiv:2412.05270): the moments of the projection
// of pass 2, and the scales, by channels.
//   R = σ·(projected·factor)    m ← lerp(m, R, w1)    v ← lerp(v, R², w2)    R̃ = m/(√v + ε)
// projected, m, v [rank, channels]; lengths [parts, channels] of apollo_prepare; stats [4, channels] = s = ‖R̃‖/(‖R‖ +
// 1e-8), ‖g‖², ‖R̃‖², ‖R‖².
// A workgroup: 16 channels, four threads each; thread q has the ranks q, q + 4, …. Twin: optim/apollo/moments.rs
struct Params {
  channels: u32,
  rank: u32,
  parts: u32,
  sigma: f32,
  w1: f32,
  w2: f32,
  eps: f32,
}

@group(0) @binding(0) var<storage, read_write> projected: array<f32>;
@group(0) @binding(1) var<storage, read_write> lengths: array<f32>;
@group(0) @binding(2) var<storage, read_write> gate: Gate;
@group(0) @binding(3) var<storage, read_write> m: array<f32>;
@group(0) @binding(4) var<storage, read_write> v: array<f32>;
@group(0) @binding(5) var<storage, read_write> stats: array<f32>;
@group(0) @binding(6) var<storage, read_write> params: Params;

var<workgroup> squares: array<vec2<f32>, 64>;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let channels = params.channels;
  let c = group_index(group, groups) * 16u + lane % 16u;
  // ‖R‖², ‖R̃‖² of this thread's ranks.
  var sums = vec2<f32>();
  if (c < channels) {
    for (var j = lane / 16u; j < params.rank; j += 4u) {
      let at = j * channels + c;
      // Scaled after the sum, as for ranks below 8.
      let x = params.sigma * (projected[at] * gate.factor);
      let mi = lerp(m[at], x, params.w1);
      let vi = lerp(v[at], x * x, params.w2);
      if (gate.closed == 0u) {
        m[at] = mi;
        v[at] = vi;
      }
      let y = mi / (sqrt(vi) + params.eps);
      sums += vec2<f32>(x * x, y * y);
    }
  }
  squares[lane] = sums;
  workgroupBarrier();
  if (lane < 16u && c < channels) {
    let all = (squares[lane] + squares[lane + 16u]) + (squares[lane + 32u] + squares[lane + 48u]);
    var length = 0.0;
    for (var part = 0u; part < params.parts; part++) {
      length += lengths[part * channels + c];
    }
    stats[c] = sqrt(all.y) / (sqrt(all.x) + 1e-8);
    stats[channels + c] = length * gate.factor * gate.factor;
    stats[2u * channels + c] = all.y;
    stats[3u * channels + c] = all.x;
  }
}
