// The unrolled products of `linear` for widths that are multiples of 4. Each export is the template of the shader of its name.
import { DOTS, FOUR, LANES, bindings, each, fromParams, kept, list, main, vectors, zeros } from './layout.mjs';

/** The four vec4 of a row in the blocks of 16 columns. */
const COLUMNS = ['column', 'next1', 'next2', 'next3'];

const COMPUTED_AGAIN = '// Past the edge the last row or column is computed again: the same sums are stored in the same place';

const nextColumns = each(3, (i) => `let next${i + 1} = min(column + ${i + 1}u, k4 - 1u);`);
const nextRows = each(3, (i) => `let row${i + 1} = min(row0 + ${i + 1}u, m4 - 1u);`);
const clampedRows = (rows) => each(rows, (r) => `let r${r} = min(row + ${r}u, n - 1u);`, 2);

/** `body` for each of the sums of 16 rows by 16 columns: `sum` is its number, `at` its place. `start` says where row r starts. */
const overSums = (start, body) => `
  for (var sum = 0u; sum < 64u; sum++) {
    let r = sum / 4u;
    let at = ${start} + min(column + sum % 4u, k4 - 1u);
    ${body}
  }`;

/** The sums of a block of `array` begin with what it has if add is 1. */
const begin = (array, start) => `
  ${kept.array(16, 'abcd')}
  if (params.add == 1u) {
    ${overSums(start, `sums[sum] = ${array}[at];`)}
  }
  ${kept.take(16, 'abcd')}`;
const end = (array, start) => `
  ${kept.put(16, 'abcd')}
  ${overSums(start, `${array}[at] = sums[sum];`)}`;

/** Four products for each sum of row r: its four numbers p with the rows e, f, g and h of 16 columns. */
const addFour = (r) => each(4, (i) => `${'abcd'[i]}${r} += four(p${r}, e${i}, f${i}, g${i}, h${i});`, 2);

/** Four columns of dy at a time, with the four rows of w that belong to them. */
const inputLoop = (first, last) => `
  for (var c = ${first}; c < ${last}; c++) {
    ${each(4, (i) => `let e${i} = weight4(4u * c, ${COLUMNS[i]});`, 2)}
    ${each(3, (j) => each(4, (i) => `let ${'fgh'[j]}${i} = weight4(4u * c + ${j + 1}u, ${COLUMNS[i]});`, 2))}
    ${each(16, (r) => `let p${r} = dy[r${r} * m4 + c];
      ${addFour(r)}`)}
  }`;

/** Four rows of x and dy at a time; those past the last one count as zero. */
const weightLoop = `
  for (var r = 0u; r < n; r += 4u) {
    let at = min(r + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(n - 1u));
    let live = select(vec4<f32>(), vec4<f32>(1.0), r + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(n));
    ${each(4, (j) => each(4, (i) => `let ${'efgh'[j]}${i} = x[at.${LANES[j]} * k4 + ${COLUMNS[i]}];`, 2))}
    ${each(4, (j) => each(4, (i) => `let ${'stuv'[j]}${i} = dy[at.${LANES[j]} * m4 + row${i}];`, 2))}
    ${each(16, (r) => `let p${r} = live * vec4<f32>(${list(4, (j) => `${'stuv'[j]}${r >> 2}.${LANES[r % 4]}`)});
      ${addFour(r)}`)}
  }`;

/** Where row r of a block of dx or dW starts. */
const INPUT_ROW = 'min(row + r, n - 1u) * k4';
const WEIGHT_ROW = '(4u * min(row0 + r / 4u, m4 - 1u) + r % 4u) * k4';

export const linear_forward_block = `
// y = x Wᵀ for many rows: y[r, c] = Σ_i x[r, i] w[c, i]. x [n, k] f32, w [m, k],
// y [n, m]; k = 4 k4. One thread: 32 rows by 16 columns of y, no barriers: each loaded number serves 16 or 32 products,
// and loads are slow on software adapters. Twin: ops/linear/kernels.rs
${bindings(['n', 'm', 'k4', 'plane'], 'w', ...vectors('x'), 'y: f32')}
${DOTS}

fn store(at: u32, columns: vec4<u32>, sums: vec4<f32>) {
  ${each(4, (i) => `y[at + columns.${LANES[i]}] = sums.${LANES[i]};`)}
}
${main(16, `
  ${fromParams('n', 'm', 'k4')}
  let columns = (m + 15u) / 16u;
  let block = grid_index(group, groups, lane, 16u);
  let row = block / columns * 32u;
  let column = block % columns * 16u;
  if (row >= n) {
    return;
  }
  ${COMPUTED_AGAIN}.
  ${clampedRows(32)}
  ${each(4, (j) => `let c${'abcd'[j]} = min(column + vec4<u32>(${list(4, (i) => `${4 * j + i}u`)}), vec4<u32>(m - 1u));`)}
  ${zeros(32, 'abcd')}
  for (var i = 0u; i < k4; i++) {
    ${each(16, (c) => `let q${c} = weight4(c${'abcd'[c >> 2]}.${LANES[c % 4]}, i);`, 4)}
    ${each(32, (r) => `let p${r} = x[r${r} * k4 + i];
      a${r} += dots(p${r}, q0, q1, q2, q3); b${r} += dots(p${r}, q4, q5, q6, q7);
      c${r} += dots(p${r}, q8, q9, q10, q11); d${r} += dots(p${r}, q12, q13, q14, q15);`)}
  }
  ${kept.array(32, 'abcd')}
  ${kept.put(32, 'abcd')}
  for (var sum = 0u; sum < 128u; sum++) {
    let columns = min(vec4<u32>(column + sum % 4u * 4u) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(m - 1u));
    store(min(row + sum / 4u, n - 1u) * m, columns, sums[sum]);
  }`)}`;

export const linear_backward_input_block = `
// dx = dy W for many rows: dx[r, i] = Σ_c dy[r, c] w[c, i]. dy [n, m] f32, w [m, k],
// dx [n, k]; m = 4 m4, k = 4 k4. One thread: 16 rows by 16 columns of dx, no barriers. Twin: ops/linear/kernels.rs
// Long sums are cut: slice s of dy's columns gives the partial sum dx[s], dx [S, n, k], and column_sum adds them up.
${bindings(['n', 'm4', 'k4', 'slice4', 'plane'], 'w', ...vectors('dy', 'dx'))}
${FOUR}
${main(16, `
  ${fromParams('n', 'm4', 'k4')}
  let columns = (k4 + 3u) / 4u;
  let block = grid_index(group, groups, lane, 16u);
  let blocks = (n + 15u) / 16u * columns;
  let above = block / blocks * n;
  let row = block % blocks / columns * 16u;
  let column = block % columns * 4u;
  let start = block / blocks * params.slice4;
  if (start >= m4) {
    return;
  }
  let end = min(start + params.slice4, m4);
  ${COMPUTED_AGAIN}.
  ${nextColumns}
  ${clampedRows(16)}
  ${zeros(16, 'abcd')}
  ${inputLoop('start', 'end')}
  ${kept.array(16, 'abcd')}
  ${end('dx', '(above + min(row + r, n - 1u)) * k4')}`)}`;

export const linear_backward_weight_block = `
// dW (+)= dyᵀ x: dw[c, i] = Σ_r dy[r, c] x[r, i], added to the values in dw if add is 1. dy [n, m], x [n, k],
// dw [m, k]; m = 4 m4, k = 4 k4. One thread: 16 rows by 16 columns of dW, no barriers. Twin: ops/linear/kernels.rs
${bindings(['n', 'm4', 'k4', 'add'], ...vectors('dy', 'x', 'dw'))}
${FOUR}
${main(16, `
  ${fromParams('n', 'm4', 'k4')}
  let columns = (k4 + 3u) / 4u;
  let block = grid_index(group, groups, lane, 16u);
  let row0 = block / columns * 4u;
  let column = block % columns * 4u;
  if (row0 >= m4) {
    return;
  }
  ${COMPUTED_AGAIN},
  // so the old values are read before anything is written.
  ${nextColumns}
  ${nextRows}
  ${begin('dw', WEIGHT_ROW)}
  ${weightLoop}
  ${end('dw', WEIGHT_ROW)}`)}`;

export const linear_backward_block = `
// Both gradients of y = x Wᵀ in one dispatch: dx = dy W (added to dx if add is 1) by some workgroups, dW = dyᵀ x by the
// others. dy [n, m], x, dx [n, k], w [m, k], dw [m, k] f32; m = 4 m4, k = 4 k4.
// One thread: 16 rows by 16 columns of one of them, no barriers. Twin: ops/linear/kernels.rs
${bindings(['n', 'm4', 'k4', 'add', 'plane'], 'w', ...vectors('dy', 'x', 'dx', 'dw'))}
${FOUR}

${COMPUTED_AGAIN}.
fn input_gradient(row: u32, column: u32) {
  ${fromParams('n', 'm4', 'k4')}
  ${nextColumns}
  ${clampedRows(16)}
  ${begin('dx', INPUT_ROW)}
  ${inputLoop('0u', 'm4')}
  ${end('dx', INPUT_ROW)}
}

fn weight_gradient(row0: u32, column: u32) {
  ${fromParams('n', 'm4', 'k4')}
  ${nextColumns}
  ${nextRows}
  ${zeros(16, 'abcd')}
  ${weightLoop}
  ${kept.array(16, 'abcd')}
  ${end('dw', WEIGHT_ROW)}
}
${main(16, `
  let columns = (params.k4 + 3u) / 4u;
  let input = ((params.n + 15u) / 16u * columns + 15u) / 16u;
  let weight = ((params.m4 + 3u) / 4u * columns + 15u) / 16u;
  // A core of a software adapter takes a run of consecutive workgroups, so the slower ones of dW are interleaved with
  // those of dx.
  let stride = (input + weight) / weight;
  let g = group_index(group, groups);
  if (g % stride == stride - 1u && g / stride < weight) {
    let i = g / stride * 16u + lane;
    if (i / columns * 4u < params.m4) {
      weight_gradient(i / columns * 4u, i % columns * 4u);
    }
  } else {
    let i = (g - min((g + 1u) / stride, weight)) * 16u + lane;
    if (i / columns * 16u < params.n) {
      input_gradient(i / columns * 16u, i % columns * 4u);
    }
  }`)}`;
