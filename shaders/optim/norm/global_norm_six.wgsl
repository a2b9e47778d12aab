// Sums of squares of six gradients, one for each block of 256 of their elements (chunks/norm_blocks.wgsl). The
// workgroups of a gradient follow those of the one before. Twin: optim/norm/blocks.rs
struct Params {
  n0: u32,
  n1: u32,
  n2: u32,
  n3: u32,
  n4: u32,
  n5: u32,
  first0: u32,
  first1: u32,
  first2: u32,
  first3: u32,
  first4: u32,
  first5: u32,
}

@group(0) @binding(0) var<storage, read_write> g0: array<f32>;
@group(0) @binding(1) var<storage, read_write> g1: array<f32>;
@group(0) @binding(2) var<storage, read_write> g2: array<f32>;
@group(0) @binding(3) var<storage, read_write> g3: array<f32>;
@group(0) @binding(4) var<storage, read_write> g4: array<f32>;
@group(0) @binding(5) var<storage, read_write> g5: array<f32>;
@group(0) @binding(6) var<storage, read_write> partials: array<f32>;
@group(0) @binding(7) var<storage, read_write> params: Params;

// The number of workgroups of a gradient of n elements.
fn parts(n: u32) -> u32 {
  return (n + 2047u) / 2048u;
}

fn share_of(group: u32) -> Share {
  let before1 = parts(params.n0);
  let before2 = before1 + parts(params.n1);
  let before3 = before2 + parts(params.n2);
  let before4 = before3 + parts(params.n3);
  let before5 = before4 + parts(params.n4);
  if (group < before1) {
    return Share(0u, params.n0, params.first0, group);
  }
  if (group < before2) {
    return Share(1u, params.n1, params.first1, group - before1);
  }
  if (group < before3) {
    return Share(2u, params.n2, params.first2, group - before2);
  }
  if (group < before4) {
    return Share(3u, params.n3, params.first3, group - before3);
  }
  if (group < before5) {
    return Share(4u, params.n4, params.first4, group - before4);
  }
  return Share(5u, params.n5, params.first5, group - before5);
}

fn value(gradient: u32, i: u32) -> f32 {
  switch gradient {
    case 0u: { return g0[i]; }
    case 1u: { return g1[i]; }
    case 2u: { return g2[i]; }
    case 3u: { return g3[i]; }
    case 4u: { return g4[i]; }
    default: { return g5[i]; }
  }
}
