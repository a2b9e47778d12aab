// Tiled products for GPUs: 64 rows by 64 columns of a matrix in a workgroup of 64 threads, 8 by 8 sums each, or 32 by 32 and 4 by 4 where the larger
// tiles would give few workgroups. Each template is that of a shader.
//
// A thread of a tile of 32 reads its vectors for the next round, l0, l1 and r0, r1, before the products of this one, which run during the memory
// access: there are few such workgroups, and registers to spare. With tiles of 64 there are many workgroups, and no register is free.
//
// The sums of a thread are a0, b0, a1, b1 … a7, b7: `a3` has four columns of its row 3, `b3` four others; tiles of 32 have a0 … a3. Each grows
// by one chain of fused products, in the order of the sum.
import { LANES, after, each, list, main } from './layout.mjs';

export const SIDES = 'ab';

/** A thread's share of a tile of `size` rows and columns, and the tile's number of vectors across. */
export const shape = (size) => ({
  rows: size / 8,
  sides: size / 32,
  across: size / 4,
  loads: size / 16,
});

export const zeros = ({ rows, sides }) =>
  each(rows, (row) => list(sides, (side) => `var ${SIDES[side]}${row} = vec4<f32>();`, ' '), 2);

/**
 * Vectors that a thread loads into workgroup memory in each round: of the left factor and of the right one, stored at `into`, with offsets `by` for
 * each number. `begin` comes before the loop over the rounds, `bring` at the start of each round, `next` after its first barrier, where it moves on
 * by `advance`.
 */
export const brought = ({ sides, loads }, left, right, advance) => {
  const numbered = (e) => (skip) => (e === 0 ? '' : ` + ${skip * e}u`);
  const ahead = (word) =>
    each(
      loads,
      (e) =>
        `${word}l${e} = ${left.vector(numbered(e))};\n${word}r${e} = ${right.vector(numbered(e))};`,
    );
  const one = (by, l, r) => `${left.into(by)} = ${l};\n${right.into(by)} = ${r};`;
  if (sides === 1)
    return {
      begin: ahead('var '),
      bring: each(loads, (e) => one(numbered(e), `l${e}`, `r${e}`)),
      next: `${advance}\n${ahead('')}`,
    };
  const by = (skip) => ` + ${skip}u * e`;
  const bring = `for (var e = 0u; e < ${loads}u; e++) {
    ${one(by, left.vector(by), right.vector(by))}
  }`;
  return { begin: '', bring, next: advance };
};

/** Repeats a part for each sum of a thread. */
export const sums = ({ rows, sides }, part) =>
  each(rows, (row) => each(sides, (side) => part(row, side, `${SIDES[side]}${row}`)));

/** The sums of all rows: row by row, the products of four elements of `rows` with vectors that were read before. */
const chains = ({ rows, sides }, array) =>
  each(
    rows,
    (row) => `
  ${row === 0 ? 'var ' : ''}p = ${array}[${after('ty * 5u + i', 40 * row)}];
  ${each(sides, (side) => {
    const [sum, other] = [`${SIDES[side]}${row}`, `${SIDES[side]}q`];
    return `${sum} = ${LANES.reduce((sofar, e, i) => `fma(vec4<f32>(p.${e}), ${other}${i}, ${sofar})`, sum)};`;
  })}`,
  );

const forward = (of) =>
  brought(
    of,
    { vector: (by) => `input4(top + row${by(16)}, i4)`, into: (by) => `xs[into${by(80)}]` },
    { vector: (by) => `matrix4(left + row${by(16)}, i4)`, into: (by) => `ws[into${by(80)}]` },
    'i4 += 4u;',
  );

export const forwardTile = (
  size,
  { rows, sides } = shape(size),
  { begin, bring, next } = forward(shape(size)),
) => `
// The entry point of products by tiles: y[r, c] = Σ_i x[r, i] w[c, i], c < m, which the stem puts in their place, and
// as many vectors of further products as it has more(), of more_input(r, i) and more_weight(c, i). x [n, 4 k4]. A
// workgroup: ${size} rows by ${size} columns of y, 16 products of the sum at a time in workgroup memory; a thread: the
// rows ty + 8 a and the columns tx + 8 b. Rows in workgroup memory are 5 vectors apart, so that 8 neighbouring threads
// read 8 different banks.
var<workgroup> xs: array<vec4<f32>, ${5 * size}>;
var<workgroup> ws: array<vec4<f32>, ${5 * size}>;
// Loops with barriers need bounds that are provably uniform.
var<workgroup> steps: u32;

// Vector i of a row of x, or of what comes behind it.
fn input4(row: u32, i: u32) -> vec4<f32> {
  if (row < params.n && i < params.k4) {
    return x[row * params.k4 + i];
  }
  if (row < params.n && i < params.k4 + more()) {
    return more_input(row, i - params.k4);
  }
  return vec4<f32>();
}

// The same of a row of w.
fn matrix4(row: u32, i: u32) -> vec4<f32> {
  if (row < params.m && i < params.k4) {
    return weight4(row, i);
  }
  if (row < params.m && i < params.k4 + more()) {
    return more_weight(row, i - params.k4);
  }
  return vec4<f32>();
}

// Four values of y from a row's sums on, eight columns apart.
fn store(row: u32, column: u32, sums: vec4<f32>) {
  ${each(
    4,
    (i) => `
  if (row < params.n && ${after('column', 8 * i)} < params.m) {
    put(row, ${after('column', 8 * i)}, sums.${LANES[i]});
  }`,
  )}
}
${main(
  64,
  `
  let across = (params.m + ${size - 1}u) / ${size}u;
  let tile = group_index(group, groups);
  let top = tile / across * ${size}u;
  let left = tile % across * ${size}u;
  if (lane == 0u) {
    steps = (params.k4 + more() + 3u) / 4u;
  }
  let rounds = workgroupUniformLoad(&steps);
  let tx = lane % 8u;
  let ty = lane / 8u;
  let row = lane / 4u;
  var i4 = lane % 4u;
  let into = row * 5u + i4;
  ${zeros({ rows, sides })}
  ${begin}
  for (var round = 0u; round < rounds; round++) {
    ${bring}
    workgroupBarrier();
    ${next}
    for (var i = 0u; i < 4u; i++) {
      ${each(rows, (column) => `let q${column} = ws[${after('tx * 5u + i', 40 * column)}];`, 2)}
      // Element by element of the sum: the columns of the thread.
      ${each(4, (e) => each(sides, (side) => `let ${SIDES[side]}q${e} = vec4<f32>(${list(4, (c) => `q${4 * side + c}.${LANES[e]}`)});`, 2))}
      ${chains({ rows, sides }, 'xs')}
    }
    workgroupBarrier();
  }
  ${sums({ rows, sides }, (row, side, sum) => `store(${after('top + ty', 8 * row)}, ${after('left + tx', 32 * side)}, ${sum});`)}`,
)}`;

const input = (of) =>
  brought(
    of,
    {
      vector: (by) => `left4(row${by(16)}, c, first, own, all)`,
      into: (by) => `left[into${by(80)}]`,
    },
    {
      vector: (by) => `right4(r${by(64 / of.across)}, i4, first, own, all)`,
      into: (by) => `right[lane${by(64)}]`,
    },
    'c += 4u; r += 16u;',
  );

export const inputTile = (
  size,
  { rows, sides, across } = shape(size),
  { begin, bring, next } = input(shape(size)),
) => `
// Input gradients by tiles: dx[r, i] = Σ_c dy[r, c] w[c, i] in slices of dy's columns, to which the first slice adds
// as many vectors of further products as the stem has more(), of more_output(r, c) and more_weight(j, i); added to dx
// if add has bit 0. dy [n, 4 m4], w [outputs(), 4 k4], dx [slices, n, 4 k4]; rows that w lacks count as zeros. A
// workgroup: ${size} rows by ${size} columns of dx, 16 products of the sum at a time in workgroup memory; a thread: the rows
// ty + 8 a and the vectors ${sides === 2 ? 'tx, tx + 8' : 'tx'}.
var<workgroup> left: array<vec4<f32>, ${5 * size}>;
var<workgroup> right: array<vec4<f32>, ${4 * size}>;

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
  let across = (k4 + ${across - 1}u) / ${across}u;
  let tiles = across * ((params.n + ${size - 1}u) / ${size}u);
  let slice = tile / tiles;
  let first = slice * params.slice4;
  let own = min(params.slice4, params.m4 - first);
  let all = own + select(0u, more(), slice == 0u);
  let top = tile % tiles / across * ${size}u;
  let column = tile % across * ${across}u;
  let tx = lane % 8u;
  let ty = lane / 8u;
  let row = top + lane / 4u;
  let i4 = column + lane % ${across}u;
  var c = lane % 4u;
  var r = lane / ${across}u;
  let into = lane / 4u * 5u + c;
  ${zeros({ rows, sides })}
  ${begin}
  for (var round = 0u; round < rounds; round++) {
    ${bring}
    workgroupBarrier();
    ${next}
    for (var i = 0u; i < 4u; i++) {
      ${each(4, (e) => each(sides, (side) => `let ${SIDES[side]}q${e} = right[${after(`i * ${size}u + tx`, across * e + 8 * side)}];`, 2))}
      ${chains({ rows, sides }, 'left')}
    }
    workgroupBarrier();
  }
  ${sums({ rows, sides }, (row, side, sum) => `store_input(slice, ${after('top + ty', 8 * row)}, ${after('column + tx', 8 * side)}, ${sum});`)}
}`;
