// Rotary embedding, half-split pairing, in place: (a, b) ← (a c − b s, b c + a s) for the elements i and i + half of
// each head.
// x [rows, heads · 2 half], half a multiple of 4; row r has position offset + r mod len; cosines, sines [positions,
// half]. sign −1 is the backward pass. One thread: four pairs. Twin: ops/rope.rs
struct Params {
  pairs: u32,
  heads: u32,
  half: u32,
  len: u32,
  offset: u32,
  sign: f32,
}

@group(0) @binding(0) var<storage, read_write> cosines: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> sines: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  if (i >= params.pairs / 4u) {
    return;
  }
  let quarters = params.half / 4u;
  let column = i % quarters;
  let head = i / quarters;
  let position = params.offset + head / params.heads % params.len;
  let c = cosines[position * quarters + column];
  let s = sines[position * quarters + column] * params.sign;
  let at = head * 2u * quarters + column;
  let a = x[at];
  let b = x[at + quarters];
  x[at] = a * c - b * s;
  x[at + quarters] = b * c + a * s;
}
