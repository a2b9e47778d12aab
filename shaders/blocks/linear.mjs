// The unrolled product of `linear` for widths that are multiples of 4, the template of the shader with its name.
import { DOTS, LANES, after, bindings, each, fromParams, main, vectors, zeros } from './layout.mjs';

export const linear_block = `
// y (+)= x Wᵀ for many rows: y[first + r, column + c] = Σ_i x[r, 4 first4 + i] w[c, i], added to the values in y if
// add is 1. x [n, 4 stride4] f32, w [m, 4 k4], y with rows of width. One thread: 32 rows by 16 columns of y, no
// barriers: each loaded number serves 16 or 32 products, and loads are slow on software adapters.
// Twin: ops/linear/kernels.rs
${bindings(['n', 'm', 'k4', 'stride4', 'first4', 'first', 'width', 'column', 'add', 'plane'], 'w', ...vectors('x'), 'y: f32')}
${DOTS}

// Stores four sums of a row, added to what is there if add is 1; nothing past the edge.
fn put(row: u32, column: u32, sums: vec4<f32>) {
  if (row >= params.n) {
    return;
  }
  let at = (params.first + row) * params.width + params.column + column;
  let add = params.add == 1u;
  ${LANES.map(
    (lane, e) => `if (${after('column', e)} < params.m) {
    y[${after('at', e)}] = select(sums.${lane}, sums.${lane} + y[${after('at', e)}], add);
  }`,
  ).join('\n')}
}
${main(
  8,
  `
  ${fromParams('n', 'm', 'stride4', 'first4')}
  let columns = (m + 15u) / 16u;
  let block = grid_index(group, groups, lane, 8u);
  let row = block / columns * 32u;
  let column = block % columns * 16u;
  if (row >= n) {
    return;
  }
  // Rows and columns are clamped where they are used: the compiler of a software adapter takes long for variables that
  // a loop keeps alive.
  ${zeros(32, 'abcd')}
  for (var i = 0u; i < params.k4; i++) {
    ${each(16, (c) => `let q${c} = weight4(min(${after('column', c)}, m - 1u), i);`, 2)}
    ${each(
      32,
      (r) => `let p${r} = x[min(${after('row', r)}, n - 1u) * stride4 + first4 + i];
      a${r} += dots(p${r}, q0, q1, q2, q3); b${r} += dots(p${r}, q4, q5, q6, q7);
      c${r} += dots(p${r}, q8, q9, q10, q11); d${r} += dots(p${r}, q12, q13, q14, q15);`,
    )}
  }
  // The text stores two rows, to which the others move up: a store becomes hundreds of instructions on a software
  // adapter, whose compiler takes long for sums that live across many of them, as for an array that a loop indexes.
  for (var r = 0u; r < 32u; r += 2u) {
    ${each(8, (i) => `put(${after('row + r', i >> 2)}, ${after('column', 4 * (i % 4))}, ${'abcd'[i % 4]}${i >> 2});`, 2)}
    ${each(30, (r) => [...'abcd'].map((name) => `${name}${r} = ${name}${r + 2};`).join(' '))}
  }`,
)}`;
