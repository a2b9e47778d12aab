// APOLLO from rank 8 on, pass 1 of 5 (shaders/README.md, "APOLLO"; arXiv:2412.05270): the gradient bounded in place,
// the squared length of each channel in parts, and the projector.
//   g ← bounded(g)    lengths[part, c] = Σ g² of channel c    pt[j, i] = P[i, j]
// A channel is a row of G [rows, cols] where by_row is 1, else a column. Each of the first `lines` workgroups takes one
// row (one part), or 64 columns of 32 rows (⌈rows / 32⌉ parts). A thread of the others makes two entries of P [dim,
// rank], dim = cols or rows, from `given` or as z·unit, z a sum of 63 signs ("APOLLO projectors" there).
// Twin: optim/apollo/prepare.rs
struct Params {
  rows: u32,
  cols: u32,
  rank: u32,
  by_row: u32,
  lines: u32,
  given: u32,
  unit: f32,
  key0: u32,
  key1: u32,
  refresh_low: u32,
  refresh_high: u32,
}

@group(0) @binding(0) var<storage, read_write> given: array<f32>;
@group(0) @binding(1) var<storage, read_write> g: array<f32>;
@group(0) @binding(2) var<storage, read_write> pt: array<f32>;
@group(0) @binding(3) var<storage, read_write> lengths: array<f32>;
@group(0) @binding(4) var<storage, read_write> params: Params;

const SIZE: u32 = 64u;
const PART: u32 = 32u;
var<workgroup> squares: array<f32, 64>;

// The square of an entry of g, which is bounded in place.
fn square(at: u32) -> f32 {
  let raw = g[at];
  let x = bounded(raw);
  if (bitcast<u32>(x) != bitcast<u32>(raw)) {
    g[at] = x;
  }
  return x * x;
}

// Writes entry e = i·rank + j of P to pt.
fn entry(e: u32, bits: vec2<u32>) {
  let i = e / params.rank;
  let j = e % params.rank;
  let dim = select(params.rows, params.cols, params.by_row == 1u);
  if (i >= dim) {
    return;
  }
  if (params.given != 0u) {
    pt[j * dim + i] = given[e];
    return;
  }
  let z = 2i * i32(countOneBits(bits.x) + countOneBits(bits.y & 0x7fffffffu)) - 63i;
  pt[j * dim + i] = f32(z) * params.unit;
}

@compute @workgroup_size(SIZE)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let line = group_index(group, groups);
  let live = line < params.lines;
  let cols = params.cols;
  let strips = (cols + 63u) / 64u;
  let column = line % strips * 64u + lane;
  var sum = 0.0;
  if (live && params.by_row == 1u) {
    for (var c = lane; c < cols; c += SIZE) {
      sum += square(line * cols + c);
    }
  } else if (live && column < cols) {
    let first = line / strips * PART;
    for (var r = first; r < min(first + PART, params.rows); r++) {
      sum += square(r * cols + column);
    }
  }
  squares[lane] = sum;
  workgroupBarrier();
  if (live && params.by_row == 1u) {
    if (lane == 0u) {
      var all = 0.0;
      for (var k = 0u; k < SIZE; k++) {
        all += squares[k];
      }
      lengths[line] = all;
    }
  } else if (live) {
    if (column < cols) {
      lengths[line / strips * cols + column] = sum;
    }
  } else {
    let pair = (line - params.lines) * SIZE + lane;
    let key = vec2<u32>(params.key0, params.key1);
    let x = philox(vec4<u32>(pair, 0u, params.refresh_low, params.refresh_high), key);
    entry(2u * pair, x.xy);
    entry(2u * pair + 1u, x.zw);
  }
}
