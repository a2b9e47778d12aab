// Rotary embedding, half-split pairing, in place: (a, b) ← (a c − b s, b c + a s) for the elements i and i + half of
// each head.
// x [rows, heads · 2 half]; row r has position offset + r mod len; cosines, sines [positions, half]. sign −1 is the
// backward pass.
// One thread: one pair. Twin: ops/rope.rs
struct Params {
  pairs: u32,
  heads: u32,
  half: u32,
  len: u32,
  offset: u32,
  sign: f32,
}

@group(0) @binding(0) var<storage, read_write> cosines: array<f32>;
@group(0) @binding(1) var<storage, read_write> sines: array<f32>;
@group(0) @binding(2) var<storage, read_write> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  if (i >= params.pairs) {
    return;
  }
  let half = params.half;
  let column = i % half;
  let head = i / half;
  let position = params.offset + head / params.heads % params.len;
  let c = cosines[position * half + column];
  let s = sines[position * half + column] * params.sign;
  let at = head * 2u * half + column;
  let a = x[at];
  let b = x[at + half];
  x[at] = a * c - b * s;
  x[at + half] = b * c + a * s;
}
