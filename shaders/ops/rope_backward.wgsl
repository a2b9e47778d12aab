// Gradients of queries, keys and values, one after another as one product reads them: dk and dv of query heads that
// share a head are added up in the order of the heads, and those of queries and keys are rotated back.
// dq, dk, dv [rows, heads · 2 half], half = 4 half4; dy: [rows, heads · 2 half], [rows, kv_heads · 2 half] twice. Row r
// has position offset + r mod len; cosines, sines [positions, half].
// One thread: four pairs of a query or a key, or four elements of a value. Twin: ops/rope.rs
struct Params {
  rows: u32,
  heads: u32,
  kv_heads: u32,
  half4: u32,
  len: u32,
  offset: u32,
}

@group(0) @binding(0) var<storage, read_write> cosines: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> sines: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> dq: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> dk: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> dv: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> dy: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let thread = grid_index(group, groups, lane, 64u);
  let half4 = params.half4;
  let width4 = 2u * half4;
  let sharing = params.heads / params.kv_heads;
  let of_q = params.rows * params.heads * half4;
  let of_k = params.rows * params.kv_heads * half4;
  if (thread >= of_q + 3u * of_k) {
    return;
  }
  if (thread >= of_q + of_k) {
    let i = thread - of_q - of_k;
    let first = i / width4 * sharing * width4 + i % width4;
    var sum = dv[first];
    for (var other = 1u; other < sharing; other++) {
      sum += dv[first + other * width4];
    }
    dy[2u * (of_q + of_k) + i] = sum;
    return;
  }
  let is_q = thread < of_q;
  let i = select(thread - of_q, thread, is_q);
  let head = i / half4;
  let column = i % half4;
  let row = head / select(params.kv_heads, params.heads, is_q);
  let entry = (params.offset + row % params.len) * half4 + column;
  let c = cosines[entry];
  let s = sines[entry];
  var a = vec4<f32>();
  var b = vec4<f32>();
  if (is_q) {
    a = dq[head * width4 + column];
    b = dq[head * width4 + column + half4];
  } else {
    let first = head * sharing * width4 + column;
    a = dk[first];
    b = dk[first + half4];
    for (var other = 1u; other < sharing; other++) {
      a += dk[first + other * width4];
      b += dk[first + other * width4 + half4];
    }
  }
  let to = select(2u * of_q, 0u, is_q) + head * width4 + column;
  dy[to] = a * c + b * s;
  dy[to + half4] = b * c - a * s;
}
