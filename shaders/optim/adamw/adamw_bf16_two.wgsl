// AdamW on two packed bf16 tensors of n and other_n elements with bf16 m and v and f32 gradients, in place
// (shaders/README.md, "AdamW"; arXiv:1711.05101, 2010.06192). s0, s1: m of a tensor from the first word on, v from the
// word `second` on. One thread per word, that is per two elements; all arithmetic is f32, and the three writes are
// rounded (to nearest, or stochastically with one Philox call per word).
//   g ← bounded(g)·factor    m′ = lerp(m, g, w1)    v′ = lerp(v, g², w2)    x = p·d − α·m′/(√v′ + ε)    store m′, v′, x
// Twin: optim/adamw/two.rs
struct Params {
  n: u32,
  second: u32,
  w1: f32,
  w2: f32,
  d: f32,
  alpha: f32,
  eps: f32,
  key_low: u32,
  key_high: u32,
  step_low: u32,
  step_high: u32,
  rounding: u32,
  other_n: u32,
  other_second: u32,
  other_w1: f32,
  other_w2: f32,
  other_d: f32,
  other_alpha: f32,
  other_eps: f32,
  other_key_low: u32,
  other_key_high: u32,
  other_step_low: u32,
  other_step_high: u32,
  other_rounding: u32,
}

@group(0) @binding(0) var<storage, read_write> g0: array<f32>;
@group(0) @binding(1) var<storage, read_write> g1: array<f32>;
@group(0) @binding(2) var<storage, read_write> gate: Gate;
@group(0) @binding(3) var<storage, read_write> p0: array<u32>;
@group(0) @binding(4) var<storage, read_write> s0: array<u32>;
@group(0) @binding(5) var<storage, read_write> p1: array<u32>;
@group(0) @binding(6) var<storage, read_write> s1: array<u32>;
@group(0) @binding(7) var<storage, read_write> params: Params;

struct Rule {
  w1: f32,
  w2: f32,
  d: f32,
  alpha: f32,
  eps: f32,
}

// Two values, or the first one and zero.
fn of_pair(values: vec2<f32>, paired: bool) -> vec2<f32> {
  return select(vec2<f32>(values.x, 0.0), values, paired);
}

// The words of m′, v′ and x of two elements, or of the last one, from the words of p, m and v and the gradients.
fn updated(words: vec3<u32>, gradients: vec2<f32>, paired: bool, rule: Rule, noise: Noise, pair: u32) -> vec3<u32> {
  let g = vec2<f32>(bounded(gradients.x), bounded(gradients.y)) * gate.factor;
  let p = vec2<f32>(bf16_low(words.x), bf16_high(words.x));
  let next_m = vec2<f32>(lerp(bf16_low(words.y), g.x, rule.w1), lerp(bf16_high(words.y), g.y, rule.w1));
  let next_v = vec2<f32>(lerp(bf16_low(words.z), g.x * g.x, rule.w2), lerp(bf16_high(words.z), g.y * g.y, rule.w2));
  let x = of_pair(p * rule.d - rule.alpha * (next_m / (sqrt(next_v) + rule.eps)), paired);
  let m = of_pair(next_m, paired);
  let v = of_pair(next_v, paired);
  var bits = vec3<u32>(0u);
  if (noise.rounding == ROUND_STOCHASTIC) {
    bits = noise_words(noise, pair).xyz;
  }
  let rounding = noise.rounding;
  let of_m = bf16_pair(m.x, m.y, bits.x, rounding);
  return vec3<u32>(of_m, bf16_pair(v.x, v.y, bits.y, rounding), bf16_pair(x.x, x.y, bits.z, rounding));
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let thread = grid_index(group, groups, lane, 256u);
  let pairs = (params.n + 1u) / 2u;
  if (thread >= pairs + (params.other_n + 1u) / 2u || gate.closed != 0u) {
    return;
  }
  if (thread < pairs) {
    let i = thread;
    let at = params.second + i;
    let key = vec2<u32>(params.key_low, params.key_high);
    let noise = Noise(key, vec2<u32>(params.step_low, params.step_high), params.rounding, 0u);
    let rule = Rule(params.w1, params.w2, params.d, params.alpha, params.eps);
    let paired = 2u * i + 1u < params.n;
    var g = vec2<f32>(g0[2u * i], 0.0);
    if (paired) {
      g.y = g0[2u * i + 1u];
    }
    let words = updated(vec3<u32>(p0[i], s0[i], s0[at]), g, paired, rule, noise, i);
    s0[i] = words.x;
    s0[at] = words.y;
    p0[i] = words.z;
  } else {
    let i = thread - pairs;
    let at = params.other_second + i;
    let key = vec2<u32>(params.other_key_low, params.other_key_high);
    let noise = Noise(key, vec2<u32>(params.other_step_low, params.other_step_high), params.other_rounding, 0u);
    let rule = Rule(params.other_w1, params.other_w2, params.other_d, params.other_alpha, params.other_eps);
    let paired = 2u * i + 1u < params.other_n;
    var g = vec2<f32>(g1[2u * i], 0.0);
    if (paired) {
      g.y = g1[2u * i + 1u];
    }
    let words = updated(vec3<u32>(p1[i], s1[i], s1[at]), g, paired, rule, noise, i);
    s1[i] = words.x;
    s1[at] = words.y;
    p1[i] = words.z;
  }
}
