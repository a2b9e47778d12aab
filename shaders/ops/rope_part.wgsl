// Rotary embedding of the first 2 half dimensions of each head, in place: (a, b) ← (a c − b s, b c + a s) for the
// elements i and i + half, or, if adjacent is 1, 2 i and 2 i + 1. x [rows, heads · width]; row r has position offset +
// r mod len, less starts[r] with documents (else one word is bound); cosines, sines [positions, half]. sign −1 is the
// backward pass. One thread: one pair. Twin: ops/rope.rs
struct Params {
  pairs: u32,
  heads: u32,
  width: u32,
  half: u32,
  adjacent: u32,
  len: u32,
  offset: u32,
  sign: f32,
  documents: u32,
}

@group(0) @binding(0) var<storage, read_write> cosines: array<f32>;
@group(0) @binding(1) var<storage, read_write> sines: array<f32>;
@group(0) @binding(2) var<storage, read_write> starts: array<u32>;
@group(0) @binding(3) var<storage, read_write> x: array<f32>;
@group(0) @binding(4) var<storage, read_write> params: Params;

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
  let pair = i % half;
  let head = i / half;
  let row = head / params.heads;
  var position = params.offset + row % params.len;
  if (params.documents != 0u) {
    position -= starts[row];
  }
  let entry = position * half + pair;
  let c = cosines[entry];
  let s = sines[entry] * params.sign;
  let adjacent = params.adjacent != 0u;
  let at = head * params.width + select(pair, 2u * pair, adjacent);
  let other = at + select(half, 1u, adjacent);
  let a = x[at];
  let b = x[other];
  x[at] = a * c - b * s;
  x[other] = b * c + a * s;
}
