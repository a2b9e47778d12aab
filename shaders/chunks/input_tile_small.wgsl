// Made by shaders/blocks.mjs
// Input gradients by tiles: dx[r, i] = Σ_c dy[r, c] w[c, i] in slices of dy's columns, to which the first slice adds
// as many vectors of further products as the stem has more(), of more_output(r, c) and more_weight(j, i); added to dx
// if add has bit 0. dy [n, 4 m4], w [outputs(), 4 k4], dx [slices, n, 4 k4]; rows that w lacks count as zeros. A
// workgroup: 32 rows by 32 columns of dx, 16 products of the sum at a time in workgroup memory; a thread: the rows
// ty + 8 a and the vectors tx.
var<workgroup> left: array<vec4<f32>, 160>;
var<workgroup> right: array<vec4<f32>, 128>;

// Vector c of the columns of dy that the slice has from first on, own of them, or of what comes behind them.
fn left4(row: u32, c: u32, first: u32, own: u32, all: u32) -> vec4<f32> {
  if (row < params.n && c < own) {
    return output4(row, first + c);
  }
  if (row < params.n && c < all) {
    return more_output(row, c - own);
  }
  return vec4<f32>();
}

// Vector i of row r of the weights of those columns, or of what comes behind them.
fn right4(r: u32, i: u32, first: u32, own: u32, all: u32) -> vec4<f32> {
  if (i < params.k4 && r < min(4u * own, outputs() - 4u * first)) {
    return weight4(4u * first + r, i);
  }
  if (i < params.k4 && r >= 4u * own && r < 4u * all) {
    return more_weight(r - 4u * own, i);
  }
  return vec4<f32>();
}

fn store_input(slice: u32, row: u32, i: u32, sum: vec4<f32>) {
  if (row < params.n && i < params.k4) {
    let at = (slice * params.n + row) * params.k4 + i;
    dx[at] = select(vec4<f32>(), dx[at], (params.add & 1u) == 1u) + sum;
  }
}

fn input_gradient(tile: u32, lane: u32, rounds: u32) {
  let k4 = params.k4;
  let across = (k4 + 7u) / 8u;
  let tiles = across * ((params.n + 31u) / 32u);
  let slice = tile / tiles;
  let first = slice * params.slice4;
  let own = min(params.slice4, params.m4 - first);
  let all = own + select(0u, more(), slice == 0u);
  let top = tile % tiles / across * 32u;
  let column = tile % across * 8u;
  let tx = lane % 8u;
  let ty = lane / 8u;
  let row = top + lane / 4u;
  let i4 = column + lane % 8u;
  var c = lane % 4u;
  var r = lane / 8u;
  let into = lane / 4u * 5u + c;
  var a0 = vec4<f32>(); var a1 = vec4<f32>();
  var a2 = vec4<f32>(); var a3 = vec4<f32>();
  var l0 = left4(row, c, first, own, all);
  var r0 = right4(r, i4, first, own, all);
  var l1 = left4(row + 16u, c, first, own, all);
  var r1 = right4(r + 8u, i4, first, own, all);
  for (var round = 0u; round < rounds; round++) {
    left[into] = l0;
    right[lane] = r0;
    left[into + 80u] = l1;
    right[lane + 64u] = r1;
    workgroupBarrier();
    c += 4u; r += 16u;
    l0 = left4(row, c, first, own, all);
    r0 = right4(r, i4, first, own, all);
    l1 = left4(row + 16u, c, first, own, all);
    r1 = right4(r + 8u, i4, first, own, all);
    for (var i = 0u; i < 4u; i++) {
      let aq0 = right[i * 32u + tx];
      let aq1 = right[i * 32u + tx + 8u];
      let aq2 = right[i * 32u + tx + 16u];
      let aq3 = right[i * 32u + tx + 24u];
      var p = left[ty * 5u + i];
      a0 = fma(vec4<f32>(p.w), aq3, fma(vec4<f32>(p.z), aq2, fma(vec4<f32>(p.y), aq1, fma(vec4<f32>(p.x), aq0, a0))));
      p = left[ty * 5u + i + 40u];
      a1 = fma(vec4<f32>(p.w), aq3, fma(vec4<f32>(p.z), aq2, fma(vec4<f32>(p.y), aq1, fma(vec4<f32>(p.x), aq0, a1))));
      p = left[ty * 5u + i + 80u];
      a2 = fma(vec4<f32>(p.w), aq3, fma(vec4<f32>(p.z), aq2, fma(vec4<f32>(p.y), aq1, fma(vec4<f32>(p.x), aq0, a2))));
      p = left[ty * 5u + i + 120u];
      a3 = fma(vec4<f32>(p.w), aq3, fma(vec4<f32>(p.z), aq2, fma(vec4<f32>(p.y), aq1, fma(vec4<f32>(p.x), aq0, a3))));
    }
    workgroupBarrier();
  }
  store_input(slice, top + ty, column + tx, a0);
  store_input(slice, top + ty + 8u, column + tx, a1);
  store_input(slice, top + ty + 16u, column + tx, a2);
  store_input(slice, top + ty + 24u, column + tx, a3);
}
