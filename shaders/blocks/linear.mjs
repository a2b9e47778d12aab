// The unrolled products of `linear` for widths that are multiples of 4. Each export is the template of the shader of its name.
import { DOTS, FOUR, LANES, after, bindings, each, fromParams, kept, list, main, vectors, zeros } from './layout.mjs';

/** The four vec4 of a row in the blocks of 16 columns. */
const COLUMNS = ['column', 'next1', 'next2', 'next3'];

const nextColumns = each(3, (i) => `let next${i + 1} = min(column + ${i + 1}u, k4 - 1u);`);
const clampedRows = each(16, (r) => `let r${r} = min(row + ${r}u, n - 1u);`, 2);
const nextRows = each(3, (i) => `let row${i + 1} = min(row0 + ${i + 1}u, m4 - 1u);`);

/** Stores the sums of 16 rows by 16 columns, added to what `array` has if add is 1. Row r is one of its rows if `inside`, its row number `row`. */
const store = (array, inside, row) => `
  ${kept.array(16, 'abcd')}
  ${kept.put(16, 'abcd')}
  for (var sum = 0u; sum < 64u; sum++) {
    let r = sum / 4u;
    let c = column + sum % 4u;
    if (${inside} && c < k4) {
      let at = (${row}) * k4 + c;
      ${array}[at] = sums[sum] + select(vec4<f32>(), ${array}[at], params.add == 1u);
    }
  }`;

/** Four products for each sum of row r: its four numbers p with the rows e, f, g and h of 16 columns. */
const addFour = (r) => each(4, (i) => `${'abcd'[i]}${r} += four(p${r}, e${i}, f${i}, g${i}, h${i});`, 2);

/** Four columns of dy at a time, with the four rows of w that belong to them. */
const inputLoop = `
  for (var c = start; c < end; c++) {
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
  // Past the edge the last row or column is computed again: the same sums are stored in the same place. Each is clamped
  // where it is used: a software adapter's compiler takes long for variables that a loop keeps alive.
  ${zeros(32, 'abcd')}
  for (var i = 0u; i < k4; i++) {
    ${each(16, (c) => `let q${c} = weight4(min(${after('column', c)}, m - 1u), i);`, 2)}
    ${each(32, (r) => `let p${r} = x[min(${after('row', r)}, n - 1u) * k4 + i];
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
// dx (+)= dy W for many rows: dx[r, i] = Σ_c dy[r, c] w[c, i], added to the values in dx if add is 1. dy [n, m] f32,
// w [m, k], dx [n, k]; m = 4 m4, k = 4 k4. One thread: 16 rows by 16 columns of dx, no barriers.
// Long sums are cut: slice s of dy's columns gives the partial sum dx[s], dx [S, n, k], and column_sum adds them up.
// Twin: ops/linear/kernels.rs
${bindings(['n', 'm4', 'k4', 'slice4', 'plane', 'add'], 'w', ...vectors('dy', 'dx'))}
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
  // Past the edge the last row or column is computed again, and not stored.
  ${nextColumns}
  ${clampedRows}
  ${zeros(16, 'abcd')}
  ${inputLoop}
  ${store('dx', 'row + r < n', 'above + row + r')}`)}`;

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
  // Past the edge the last row or column is computed again, and not stored.
  ${nextColumns}
  ${nextRows}
  ${zeros(16, 'abcd')}
  ${weightLoop}
  ${store('dw', 'row0 + r / 4u < m4', '4u * row0 + r')}`)}`;
