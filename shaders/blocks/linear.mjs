// The unrolled product of `linear` for widths that are multiples of 4, the template of the shader with its name.
import {
  DOTS,
  LANES,
  after,
  bindings,
  each,
  fromParams,
  kept,
  main,
  vectors,
  zeros,
} from './layout.mjs';

export const linear_block = `
// y (+)= x Wᵀ for many rows: y[first + r, column + c] = Σ_i x[r, 4 first4 + i] w[c, i], added to the values in y if
// add is 1. x [n, 4 stride4] f32, w [m, 4 k4], y with rows of width. One thread: 32 rows by 16 columns of y, no
// barriers: each loaded number serves 16 or 32 products, and loads are slow on software adapters.
// Twin: ops/linear/kernels.rs
${bindings(['n', 'm', 'k4', 'stride4', 'first4', 'first', 'width', 'column', 'add', 'plane'], 'w', ...vectors('x'), 'y: f32')}
${DOTS}

// Where four sums are stored. Past the edge the last row or column is computed again: the same sums, in the same place.
fn places(row: u32, column: u32, n: u32, m: u32) -> vec4<u32> {
  let columns = vec4<u32>(column) + vec4<u32>(0u, 1u, 2u, 3u);
  return (params.first + min(row, n - 1u)) * params.width + params.column + min(columns, vec4<u32>(m - 1u));
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
  ${kept.array(32, 'abcd')}
  ${kept.put(32, 'abcd')}
  // All that is added to is read before anything is stored, since sums of an edge share a place.
  if (params.add == 1u) {
    for (var sum = 0u; sum < 128u; sum++) {
      let at = places(row + sum / 4u, column + sum % 4u * 4u, n, m);
      sums[sum] += vec4<f32>(${LANES.map((e) => `y[at.${e}]`).join(', ')});
    }
  }
  for (var sum = 0u; sum < 128u; sum++) {
    let at = places(row + sum / 4u, column + sum % 4u * 4u, n, m);
    ${LANES.map((e) => `y[at.${e}] = sums[sum].${e};`).join(' ')}
  }`,
)}`;
