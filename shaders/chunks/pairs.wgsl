// The entry point of an update that writes one buffer, p [n]. The stem defines it for one element: x = element(p, i).
// One thread: two elements, one packed word of p (bf16) or two (f32). x is rounded with stream p.
@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let pair = grid_index(group, groups, lane, 256u);
  let i = 2u * pair;
  if (i >= params.n || gate.closed != 0u) {
    return;
  }
  let paired = i + 1u < params.n;
  if (params.noise.rounding == ROUND_F32) {
    p[i] = bitcast<u32>(element(bitcast<f32>(p[i]), i));
    if (paired) {
      p[i + 1u] = bitcast<u32>(element(bitcast<f32>(p[i + 1u]), i + 1u));
    }
    return;
  }
  let x0 = element(bf16_low(p[pair]), i);
  var x1 = 0.0;
  if (paired) {
    x1 = element(bf16_high(p[pair]), i + 1u);
  }
  let words = noise_words(params.noise, pair);
  p[pair] = bf16_pair(x0, x1, words.z, params.noise.rounding);
}
