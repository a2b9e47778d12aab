// The unrolled products of `linear` for any shape: blocks of 16 rows by 8 columns; values past the edges are not stored. Each export is the template
// of the shader with its name.
import { LANES, bindings, each, fromParams, main, zeros } from './layout.mjs';

/** Stores 8 columns of a row, up to the edge of the [rows, width] matrix. `put(at, sum)` stores one. */
const store = (rows, width, put, more = '', row = 'row') => `
fn store(row: u32, column: u32, low: vec4<f32>, high: vec4<f32>${more}) {
  let width = params.${width};
  if (row >= params.${rows}) {
    return;
  }
  for (var c = 0u; c < 4u; c++) {
    if (column + c < width) {
      ${put(`${row} * width + column + c`, 'low[c]')}
    }
    if (column + 4u + c < width) {
      ${put(`${row} * width + column + 4u + c`, 'high[c]')}
    }
  }
}`;

/** The rows r0 … r15, times `step`, and the first and second four columns. */
const clampedAny = (rows, columns, step = '') => `
  // Past the edge the last row or column is read again; its sums are not stored.
  ${each(16, (r) => `let r${r} = min(row + ${r}u, ${rows} - 1u)${step};`, 2)}
  let first = min(vec4<u32>(column) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(${columns} - 1u));
  let second = min(vec4<u32>(column) + vec4<u32>(4u, 5u, 6u, 7u), vec4<u32>(${columns} - 1u));`;

/** The sums: in round i, `left(r)` is the number of row r, `right` that of a column. */
const loopAny = (from, to, left, right) => `
  ${zeros(16, 'ab')}
  for (var i = ${from}; i < ${to}; i++) {
    let q = vec4<f32>(${LANES.map((x) => right(`first.${x}`)).join(', ')});
    let z = vec4<f32>(${LANES.map((x) => right(`second.${x}`)).join(', ')});
    ${each(16, (r) => `let p${r} = ${left(r)}; a${r} += p${r} * q; b${r} += p${r} * z;`)}
  }`;

const storeAny = (more = '') =>
  each(16, (r) => `store(row + ${r}u, column, a${r}, b${r}${more});`, 2);

export const linear_forward_any_block = `
// y = x Wᵀ for any shape with many rows: y[r, c] = Σ_i x[r, i] w[c, i]. x [n, k], w [m, k],
// y [n, m]. One thread: 16 rows by 8 columns of y. Twin: ops/linear/kernels.rs
${bindings(['n', 'm', 'k', 'plane'], 'w', 'x: f32', 'y: f32')}
${store('n', 'm', (at, sum) => `y[${at}] = ${sum};`)}
${main(
  32,
  `
  ${fromParams('n', 'm', 'k')}
  let columns = (m + 7u) / 8u;
  let block = grid_index(group, groups, lane, 32u);
  let row = block / columns * 16u;
  let column = block % columns * 8u;
  if (row >= n) {
    return;
  }
  ${clampedAny('n', 'm', ' * k')}
  ${loopAny(
    '0u',
    'k',
    (r) => `x[r${r} + i]`,
    (column) => `weight1(${column}, i)`,
  )}
  ${storeAny()}`,
)}`;

export const linear_backward_input_any_block = `
// dx = dy W for any shape with many rows: dx[r, i] = Σ_c dy[r, c] w[c, i]. dy [n, m], w [m, k],
// dx [n, k]. One thread: 16 rows by 8 columns of dx. Twin: ops/linear/kernels.rs
// Long sums are cut: slice s of dy's columns gives the partial sum dx[s], dx [S, n, k], and column_sum adds them up.
${bindings(['n', 'm', 'k', 'slice', 'plane'], 'w', 'dy: f32', 'dx: f32')}
${store('n', 'k', (at, sum) => `dx[${at}] = ${sum};`, ', above: u32', '(above + row)')}
${main(
  32,
  `
  ${fromParams('n', 'm', 'k')}
  let columns = (k + 7u) / 8u;
  let block = grid_index(group, groups, lane, 32u);
  let blocks = (n + 15u) / 16u * columns;
  let above = block / blocks * n;
  let row = block % blocks / columns * 16u;
  let column = block % columns * 8u;
  let start = block / blocks * params.slice;
  if (start >= m) {
    return;
  }
  let end = min(start + params.slice, m);
  ${clampedAny('n', 'k', ' * m')}
  ${loopAny(
    'start',
    'end',
    (r) => `dy[r${r} + i]`,
    (column) => `weight1(i, ${column})`,
  )}
  ${storeAny(', above')}`,
)}`;

export const linear_backward_weight_any_block = `
// dW (+)= dyᵀ x for any shape: dw[c, i] = Σ_r dy[r, c] x[r, i], added to the values in dw if add is 1. dy [n, m],
// x [n, k], dw [m, k]. One thread: 16 rows by 8 columns of dW. Twin: ops/linear/kernels.rs
${bindings(['n', 'm', 'k', 'add'], 'dy: f32', 'x: f32', 'dw: f32')}

fn put(at: u32, sum: f32) {
  dw[at] = select(0.0, dw[at], params.add == 1u) + sum;
}
${store('m', 'k', (at, sum) => `put(${at}, ${sum});`)}
${main(
  32,
  `
  ${fromParams('n', 'm', 'k')}
  let columns = (k + 7u) / 8u;
  let block = grid_index(group, groups, lane, 32u);
  let row = block / columns * 16u;
  let column = block % columns * 8u;
  if (row >= m) {
    return;
  }
  ${clampedAny('m', 'k')}
  ${loopAny(
    '0u',
    'n',
    (r) => `dy[i * m + r${r}]`,
    (column) => `x[i * k + ${column}]`,
  )}
  ${storeAny()}`,
)}`;
