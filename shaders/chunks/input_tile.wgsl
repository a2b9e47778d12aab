// Made by shaders/blocks.mjs
// Input gradients by tiles: dx[r, i] = Σ_c dy[r, c] w[c, i] in slices of dy's columns, to which the first slice adds
// as many vectors of further products as the stem has more(), of more_output(r, c) and more_weight(j, i); added to dx
// if add has bit 0. dy [n, 4 m4], w [outputs(), 4 k4], dx [slices, n, 4 k4]; rows that w lacks count as zeros. A
// workgroup: 64 rows by 64 columns of dx, 16 products of the sum at a time in workgroup memory; a thread: the rows
// ty + 8 a and the vectors tx, tx + 8.
var<workgroup> left: array<vec4<f32>, 320>;
var<workgroup> right: array<vec4<f32>, 256>;

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
  let across = (k4 + 15u) / 16u;
  let tiles = across * ((params.n + 63u) / 64u);
  let slice = tile / tiles;
  let first = slice * params.slice4;
  let own = min(params.slice4, params.m4 - first);
  let all = own + select(0u, more(), slice == 0u);
  let top = tile % tiles / across * 64u;
  let column = tile % across * 16u;
  let tx = lane % 8u;
  let ty = lane / 8u;
  let row = top + lane / 4u;
  let i4 = column + lane % 16u;
  var c = lane % 4u;
  var r = lane / 16u;
  let into = lane / 4u * 5u + c;
  var a0 = vec4<f32>(); var b0 = vec4<f32>(); var a1 = vec4<f32>(); var b1 = vec4<f32>();
  var a2 = vec4<f32>(); var b2 = vec4<f32>(); var a3 = vec4<f32>(); var b3 = vec4<f32>();
  var a4 = vec4<f32>(); var b4 = vec4<f32>(); var a5 = vec4<f32>(); var b5 = vec4<f32>();
  var a6 = vec4<f32>(); var b6 = vec4<f32>(); var a7 = vec4<f32>(); var b7 = vec4<f32>();
  for (var round = 0u; round < rounds; round++) {
    for (var e = 0u; e < 4u; e++) {
      left[into + 80u * e] = left4(row + 16u * e, c, first, own, all);
      right[lane + 64u * e] = right4(r + 4u * e, i4, first, own, all);
    }
    workgroupBarrier();
    c += 4u; r += 16u;
    for (var i = 0u; i < 4u; i++) {
      let aq0 = right[i * 64u + tx]; let bq0 = right[i * 64u + tx + 8u];
      let aq1 = right[i * 64u + tx + 16u]; let bq1 = right[i * 64u + tx + 24u];
      let aq2 = right[i * 64u + tx + 32u]; let bq2 = right[i * 64u + tx + 40u];
      let aq3 = right[i * 64u + tx + 48u]; let bq3 = right[i * 64u + tx + 56u];
      var p = left[ty * 5u + i];
      a0 = fma(vec4<f32>(p.w), aq3, fma(vec4<f32>(p.z), aq2, fma(vec4<f32>(p.y), aq1, fma(vec4<f32>(p.x), aq0, a0))));
      b0 = fma(vec4<f32>(p.w), bq3, fma(vec4<f32>(p.z), bq2, fma(vec4<f32>(p.y), bq1, fma(vec4<f32>(p.x), bq0, b0))));
      p = left[ty * 5u + i + 40u];
      a1 = fma(vec4<f32>(p.w), aq3, fma(vec4<f32>(p.z), aq2, fma(vec4<f32>(p.y), aq1, fma(vec4<f32>(p.x), aq0, a1))));
      b1 = fma(vec4<f32>(p.w), bq3, fma(vec4<f32>(p.z), bq2, fma(vec4<f32>(p.y), bq1, fma(vec4<f32>(p.x), bq0, b1))));
      p = left[ty * 5u + i + 80u];
      a2 = fma(vec4<f32>(p.w), aq3, fma(vec4<f32>(p.z), aq2, fma(vec4<f32>(p.y), aq1, fma(vec4<f32>(p.x), aq0, a2))));
      b2 = fma(vec4<f32>(p.w), bq3, fma(vec4<f32>(p.z), bq2, fma(vec4<f32>(p.y), bq1, fma(vec4<f32>(p.x), bq0, b2))));
      p = left[ty * 5u + i + 120u];
      a3 = fma(vec4<f32>(p.w), aq3, fma(vec4<f32>(p.z), aq2, fma(vec4<f32>(p.y), aq1, fma(vec4<f32>(p.x), aq0, a3))));
      b3 = fma(vec4<f32>(p.w), bq3, fma(vec4<f32>(p.z), bq2, fma(vec4<f32>(p.y), bq1, fma(vec4<f32>(p.x), bq0, b3))));
      p = left[ty * 5u + i + 160u];
      a4 = fma(vec4<f32>(p.w), aq3, fma(vec4<f32>(p.z), aq2, fma(vec4<f32>(p.y), aq1, fma(vec4<f32>(p.x), aq0, a4))));
      b4 = fma(vec4<f32>(p.w), bq3, fma(vec4<f32>(p.z), bq2, fma(vec4<f32>(p.y), bq1, fma(vec4<f32>(p.x), bq0, b4))));
      p = left[ty * 5u + i + 200u];
      a5 = fma(vec4<f32>(p.w), aq3, fma(vec4<f32>(p.z), aq2, fma(vec4<f32>(p.y), aq1, fma(vec4<f32>(p.x), aq0, a5))));
      b5 = fma(vec4<f32>(p.w), bq3, fma(vec4<f32>(p.z), bq2, fma(vec4<f32>(p.y), bq1, fma(vec4<f32>(p.x), bq0, b5))));
      p = left[ty * 5u + i + 240u];
      a6 = fma(vec4<f32>(p.w), aq3, fma(vec4<f32>(p.z), aq2, fma(vec4<f32>(p.y), aq1, fma(vec4<f32>(p.x), aq0, a6))));
      b6 = fma(vec4<f32>(p.w), bq3, fma(vec4<f32>(p.z), bq2, fma(vec4<f32>(p.y), bq1, fma(vec4<f32>(p.x), bq0, b6))));
      p = left[ty * 5u + i + 280u];
      a7 = fma(vec4<f32>(p.w), aq3, fma(vec4<f32>(p.z), aq2, fma(vec4<f32>(p.y), aq1, fma(vec4<f32>(p.x), aq0, a7))));
      b7 = fma(vec4<f32>(p.w), bq3, fma(vec4<f32>(p.z), bq2, fma(vec4<f32>(p.y), bq1, fma(vec4<f32>(p.x), bq0, b7))));
    }
    workgroupBarrier();
  }
  store_input(slice, top + ty, column + tx, a0);
  store_input(slice, top + ty, column + tx + 8u, b0);
  store_input(slice, top + ty + 8u, column + tx, a1);
  store_input(slice, top + ty + 8u, column + tx + 8u, b1);
  store_input(slice, top + ty + 16u, column + tx, a2);
  store_input(slice, top + ty + 16u, column + tx + 8u, b2);
  store_input(slice, top + ty + 24u, column + tx, a3);
  store_input(slice, top + ty + 24u, column + tx + 8u, b3);
  store_input(slice, top + ty + 32u, column + tx, a4);
  store_input(slice, top + ty + 32u, column + tx + 8u, b4);
  store_input(slice, top + ty + 40u, column + tx, a5);
  store_input(slice, top + ty + 40u, column + tx + 8u, b5);
  store_input(slice, top + ty + 48u, column + tx, a6);
  store_input(slice, top + ty + 48u, column + tx + 8u, b6);
  store_input(slice, top + ty + 56u, column + tx, a7);
  store_input(slice, top + ty + 56u, column + tx + 8u, b7);
}
