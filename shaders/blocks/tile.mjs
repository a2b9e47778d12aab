// Products by tiles for GPUs: 64 rows by 64 columns of a matrix in a workgroup of 64 threads, 8 by 8 sums each, or 32 by 32 and 4 by 4
// where those would be few workgroups. Each template is that of a shader.
//
// The sums of a thread are a0, b0, a1, b1 … a7, b7: `a3` has four columns of its row 3, `b3` four others; tiles of 32 have a0 … a3. Each grows
// by one chain of fused products, in the order of the sum.
import { LANES, after, each, fromParams, list, main } from './layout.mjs';

export const SIDES = 'ab';

/** What a thread has of a tile so many rows high and columns wide, and its vectors across. */
export const shape = (size) => ({ rows: size / 8, sides: size / 32, across: size / 4, loads: size / 16 });

export const zeros = ({ rows, sides }) => each(rows, (row) => list(sides, (side) => `var ${SIDES[side]}${row} = vec4<f32>();`, ' '), 2);

/** For each sum of a thread. */
export const sums = ({ rows, sides }, part) => each(rows, (row) => each(sides, (side) => part(row, side, `${SIDES[side]}${row}`)));

/** The sums of all rows: row by row the products of four elements of `rows` with vectors that were read before. */
const chains = ({ rows, sides }, array) => each(rows, (row) => `
  ${row === 0 ? 'var ' : ''}p = ${array}[${after('ty * 5u + i', 40 * row)}];
  ${each(sides, (side) => {
    const [sum, other] = [`${SIDES[side]}${row}`, `${SIDES[side]}q`];
    return `${sum} = ${LANES.reduce((sofar, e, i) => `fma(vec4<f32>(p.${e}), ${other}${i}, ${sofar})`, sum)};`;
  })}`);

export const forwardTile = (size, { rows, sides, loads } = shape(size)) => `
// The entry point of products by tiles: y[r, c] = Σ_i x[r, i] w[c, i], c < m, which the stem puts in their place, and
// as many vectors of further products as it has more(), of more_input(r, i) and more_weight(c, i). x [n, 4 k4]. A
// workgroup: ${size} rows by ${size} columns of y, 16 products of the sum at a time in workgroup memory; a thread: the
// rows ty + 8 a and the columns tx + 8 b. Rows in workgroup memory are 5 vectors apart, so that 8 neighbouring threads
// read 8 different banks.
var<workgroup> xs: array<vec4<f32>, ${5 * size}>;
var<workgroup> ws: array<vec4<f32>, ${5 * size}>;
// Loops with barriers need bounds that are provably uniform.
var<workgroup> steps: u32;

// Four values of y from a row's sums on, eight columns apart.
fn store(row: u32, column: u32, sums: vec4<f32>) {
  ${each(4, (i) => `
  if (row < params.n && ${after('column', 8 * i)} < params.m) {
    put(row, ${after('column', 8 * i)}, sums.${LANES[i]});
  }`)}
}
${main(64, `
  ${fromParams('n', 'm', 'k4')}
  let across = (m + ${size - 1}u) / ${size}u;
  let tile = group_index(group, groups);
  let top = tile / across * ${size}u;
  let left = tile % across * ${size}u;
  if (lane == 0u) {
    steps = (k4 + more() + 3u) / 4u;
  }
  let rounds = workgroupUniformLoad(&steps);
  let tx = lane % 8u;
  let ty = lane / 8u;
  ${zeros({ rows, sides })}
  for (var round = 0u; round < rounds; round++) {
    for (var e = 0u; e < ${loads}u; e++) {
      let row = lane / 4u + 16u * e;
      let i = 4u * round + lane % 4u;
      var p = vec4<f32>();
      var q = vec4<f32>();
      if (i < k4) {
        if (top + row < n) {
          p = x[(top + row) * k4 + i];
        }
        if (left + row < m) {
          q = weight4(left + row, i);
        }
      } else if (i < k4 + more()) {
        if (top + row < n) {
          p = more_input(top + row, i - k4);
        }
        if (left + row < m) {
          q = more_weight(left + row, i - k4);
        }
      }
      xs[row * 5u + lane % 4u] = p;
      ws[row * 5u + lane % 4u] = q;
    }
    workgroupBarrier();
    for (var i = 0u; i < 4u; i++) {
      ${each(rows, (column) => `let q${column} = ws[${after('tx * 5u + i', 40 * column)}];`, 2)}
      // Element by element of the sum: the columns of the thread.
      ${each(4, (e) => each(sides, (side) => `let ${SIDES[side]}q${e} = vec4<f32>(${list(4, (c) => `q${4 * side + c}.${LANES[e]}`)});`, 2))}
      ${chains({ rows, sides }, 'xs')}
    }
    workgroupBarrier();
  }
  ${sums({ rows, sides }, (row, side, sum) => `store(${after('top + ty', 8 * row)}, ${after('left + tx', 32 * side)}, ${sum});`)}`)}`;

export const inputTile = (size, { rows, sides, across, loads } = shape(size)) => `
// Input gradients by tiles: dx[r, i] = Σ_c dy[r, c] w[c, i] in slices of dy's columns, to which the first slice adds
// as many vectors of further products as the stem has more(), of more_output(r, c) and more_weight(j, i); added to dx
// if add has bit 0. dy [n, 4 m4], w [outputs(), 4 k4], dx [slices, n, 4 k4]; rows that w lacks count as zeros. A
// workgroup: ${size} rows by ${size} columns of dx, 16 products of the sum at a time in workgroup memory; a thread: the rows
// ty + 8 a and the vectors ${sides === 2 ? 'tx, tx + 8' : 'tx'}.
var<workgroup> left: array<vec4<f32>, ${5 * size}>;
var<workgroup> right: array<vec4<f32>, ${4 * size}>;

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
  let rows = min(4u * own, outputs() - 4u * first);
  let top = tile % tiles / across * ${size}u;
  let column = tile % across * ${across}u;
  let tx = lane % 8u;
  let ty = lane / 8u;
  ${zeros({ rows, sides })}
  for (var round = 0u; round < rounds; round++) {
    for (var e = 0u; e < ${loads}u; e++) {
      let row = top + lane / 4u + 16u * e;
      let c = 4u * round + lane % 4u;
      var p = vec4<f32>();
      if (row < params.n && c < own) {
        p = output4(row, first + c);
      } else if (row < params.n && c < all) {
        p = more_output(row, c - own);
      }
      left[(row - top) * 5u + lane % 4u] = p;
      let r = 16u * round + lane / ${across}u + ${64 / across}u * e;
      let i = column + lane % ${across}u;
      var q = vec4<f32>();
      if (i < k4 && r < rows) {
        q = weight4(4u * first + r, i);
      } else if (i < k4 && r >= 4u * own && r < 4u * all) {
        q = more_weight(r - 4u * own, i);
      }
      right[(r % 16u) * ${across}u + lane % ${across}u] = q;
    }
    workgroupBarrier();
    for (var i = 0u; i < 4u; i++) {
      ${each(4, (e) => each(sides, (side) => `let ${SIDES[side]}q${e} = right[${after(`i * ${size}u + tx`, across * e + 8 * side)}];`, 2))}
      ${chains({ rows, sides }, 'left')}
    }
    workgroupBarrier();
  }
  ${sums({ rows, sides }, (row, side, sum) => `store_input(slice, ${after('top + ty', 8 * row)}, ${after('column + tx', 8 * side)}, ${sum});`)}
}`;
