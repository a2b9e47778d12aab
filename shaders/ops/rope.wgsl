// Rotary embedding of q and k, half-split pairing, in place: (a, b) ← (a c − b s, b c + a s) for the elements i and
// i + half of each head.
// q [rows, heads · 2 half], k [rows, kv_heads · 2 half]; row r has position offset + r mod len;
// cosines, sines [positions, half]. sign −1 is the backward pass. One thread: one pair of q, or of k.
// Twin: ops/rope.rs
struct Params {
  pairs: u32,
  kv_pairs: u32,
  heads: u32,
  kv_heads: u32,
  half: u32,
  len: u32,
  offset: u32,
  sign: f32,
}

@group(0) @binding(0) var<storage, read_write> cosines: array<f32>;
@group(0) @binding(1) var<storage, read_write> sines: array<f32>;
@group(0) @binding(2) var<storage, read_write> q: array<f32>;
@group(0) @binding(3) var<storage, read_write> k: array<f32>;
@group(0) @binding(4) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let thread = grid_index(group, groups, lane, 64u);
  let of_q = params.pairs;
  let is_q = thread < of_q;
  let i = select(thread - of_q, thread, is_q);
  if (!is_q && i >= params.kv_pairs) {
    return;
  }
  let half = params.half;
  let column = i % half;
  let head = i / half;
  let row = head / select(params.kv_heads, params.heads, is_q);
  let entry = (params.offset + row % params.len) * half + column;
  let c = cosines[entry];
  let s = sines[entry] * params.sign;
  let at = head * 2u * half + column;
  if (is_q) {
    let a = q[at];
    let b = q[at + half];
    q[at] = a * c - b * s;
    q[at + half] = b * c + a * s;
  } else {
    let a = k[at];
    let b = k[at + half];
    k[at] = a * c - b * s;
    k[at + half] = b * c + a * s;
  }
}
