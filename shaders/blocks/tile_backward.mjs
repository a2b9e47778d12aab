// The gradients of tiled products (tile.mjs): of one product, or of several products with one input.
import { LANES, after, bindings, each, main } from './layout.mjs';
import { SIDES, brought, shape, sums, zeros } from './tile.mjs';

/** Parameters of the gradients of several products: m0 and m1 are rows of the first two matrices. */
const JOINT = ['n', 'm4', 'k4', 'slice4', 'input', 'add', 'm0', 'm1'];

/**
 * Differences between the gradients of one product and those of several: the text of the header, the parameters and bindings, dy, and the end of dW.
 */
const GRADIENTS = {
  one: {
    head: (size) => `
// Gradients of y = x Wᵀ for GPUs in one dispatch: by the first \`input\` workgroups dx = dy W (chunks/input_tile*.wgsl),
// by the others dW = scale dyᵀ x, added to dW if add has bit 1. dy: m columns of [n, 4 stride4] from
// 4 first4 on, in 4 m4; x [n, k], w [m, k], dx [slices, n, k], dw [m, k]; k = 4 k4. A workgroup: ${size} rows by ${size} columns
// of one of them, 16 products of the sum at a time in workgroup memory. Twin: ops/linear/kernels.rs`,
    bound: bindings(
      [
        'n',
        'm',
        'm4',
        'k4',
        'stride4',
        'first4',
        'slice4',
        'input',
        'add',
        '// Factor of dW.\nscale: f32',
        'plane',
      ],
      'w',
      'dy: vec4<f32>',
      'x: vec4<f32>',
      'dx: vec4<f32>',
      'dw: vec4<f32>',
    ),
    outputs: 'params.m',
    output4: 'return dy[row * params.stride4 + params.first4 + c];',
    weight: 'select(vec4<f32>(), dw[at], (params.add & 2u) == 2u) + params.scale * sum',
  },
  three: {
    head: (size) => `
// Gradients of three products y_p = x W_pᵀ for GPUs in one dispatch: by the first \`input\` workgroups dx = Σ dy_p W_p
// (chunks/input_tile*.wgsl), by the others the dW_p = dy_pᵀ x. dy_0 [n, m0], dy_1 [n, m1] and dy_2 lie one after
// another in dy, as the dW_p do in dw; together they have 4 m4 columns. x [n, k], w_p [m_p, k], dx [n, k]; k = 4 k4. A
// workgroup: ${size} rows by ${size} columns of one of them, 16 products of the sum at a time in workgroup memory.
// Twin: ops/linear/joint.rs`,
    bound: bindings(
      JOINT,
      'w',
      'w',
      'w',
      'dy: vec4<f32>',
      'x: vec4<f32>',
      'dx: vec4<f32>',
      'dw: vec4<f32>',
    ),
    outputs: '4u * params.m4',
    output4: `let first = params.m0 / 4u;
      let two = first + params.m1 / 4u;
      let before = select(select(0u, first, c >= first), two, c >= two);
      let width = select(select(first, two - first, c >= first), params.m4 - two, c >= two);
      return dy[params.n * before + row * width + c - before];`,
    weight: 'sum',
  },
  two: {
    head: (size) => `
// Gradients of two products y_p = x W_pᵀ for GPUs in one dispatch: by the first \`input\` workgroups dx = Σ dy_p W_p
// (chunks/input_tile*.wgsl), by the others the dW_p = dy_pᵀ x, which lie one after another in dw. dy_0 [n, m0], dy_1
// [n, m1], together 4 m4 columns, x [n, k], w_p [m_p, k], dx [n, k]; k = 4 k4. A workgroup: ${size} rows by ${size} columns
// of one of them, 16 products of the sum at a time in workgroup memory. Twin: ops/linear/joint.rs`,
    bound: bindings(
      JOINT,
      'w',
      'w',
      'dy0: vec4<f32>',
      'dy1: vec4<f32>',
      'x: vec4<f32>',
      'dx: vec4<f32>',
      'dw: vec4<f32>',
    ),
    outputs: '4u * params.m4',
    output4: `let first = params.m0 / 4u;
      if (c < first) {
        return dy0[row * first + c];
      }
      return dy1[row * (params.m4 - first) + c - first];`,
    weight: 'sum',
  },
};

const weight = (of) =>
  brought(
    of,
    {
      vector: (by) => `outputs4(at${by(64 / of.across)}, top + v)`,
      into: (by) => `left[lane${by(64)}]`,
    },
    {
      vector: (by) => `inputs4(at${by(64 / of.across)}, column + v)`,
      into: (by) => `right[lane${by(64)}]`,
    },
    'at += 16u;',
  );

const backwardTile =
  (of) =>
  (size, { rows, sides, across } = shape(size), { begin, bring, next } = weight(shape(size))) => `
${of.head(size).trim()}
${of.bound}

// Loops with barriers need bounds that are provably uniform: whether dx is computed, and the number of rounds.
var<workgroup> plan: vec2<u32>;

fn outputs() -> u32 {
  return ${of.outputs};
}

// Four values of a row of dy.
fn output4(row: u32, c: u32) -> vec4<f32> {
  ${of.output4}
}

// The sums of dx end with the products of dy and w.
fn more() -> u32 {
  return 0u;
}

fn more_output(row: u32, c: u32) -> vec4<f32> {
  return vec4<f32>();
}

fn more_weight(row: u32, i: u32) -> vec4<f32> {
  return vec4<f32>();
}

// Vectors of a row of dy and of x; zeros past an end.
fn outputs4(row: u32, c: u32) -> vec4<f32> {
  if (row < params.n && c < params.m4) {
    return output4(row, c);
  }
  return vec4<f32>();
}

fn inputs4(row: u32, i: u32) -> vec4<f32> {
  if (row < params.n && i < params.k4) {
    return x[row * params.k4 + i];
  }
  return vec4<f32>();
}

fn store_weight(row: u32, i: u32, sum: vec4<f32>) {
  if (row < outputs() && i < params.k4) {
    let at = row * params.k4 + i;
    dw[at] = ${of.weight};
  }
}

// The rows ${sides === 2 ? '4 (ty + 8 a) + e and the vectors tx, tx + 8' : '4 ty + e and the vectors tx'} of dW; the sum runs over the rows of dy and x.
fn weight_gradient(tile: u32, lane: u32, rounds: u32) {
  let across = (params.k4 + ${across - 1}u) / ${across}u;
  let top = tile / across * ${across}u;
  let column = tile % across * ${across}u;
  let tx = lane % 8u;
  let ty = lane / 8u;
  let v = lane % ${across}u;
  var at = lane / ${across}u;
  ${zeros({ rows, sides })}
  ${begin}
  for (var round = 0u; round < rounds; round++) {
    ${bring}
    workgroupBarrier();
    ${next}
    for (var r = 0u; r < 16u; r++) {
      ${each(sides, (side) => `let ${'pq'[side]} = left[${after(`r * ${across}u + ty`, 8 * side)}];`, 2)}
      ${each(sides, (side) => `let ${SIDES[side]} = right[${after(`r * ${across}u + tx`, 8 * side)}];`, 2)}
      ${sums({ rows, sides }, (row, side, sum) => `${sum} = fma(vec4<f32>(${row < 4 ? 'p' : 'q'}.${LANES[row % 4]}), ${SIDES[side]}, ${sum});`)}
    }
    workgroupBarrier();
  }
  let row = 4u * (top + ty);
  ${sums({ rows, sides }, (at, side, sum) => `store_weight(${after('row', at < 4 ? at : 28 + at)}, ${after('column + tx', 8 * side)}, ${sum});`)}
}
${main(
  64,
  `
  let tile = group_index(group, groups);
  if (lane == 0u) {
    let before = tile < params.input;
    plan = vec2<u32>(u32(before), select((params.n + 15u) / 16u, (min(params.slice4, params.m4) + 3u) / 4u, before));
  }
  let chosen = workgroupUniformLoad(&plan);
  if (chosen.x == 1u) {
    input_gradient(tile, lane, chosen.y);
  } else {
    weight_gradient(tile - params.input, lane, chosen.y);
  }`,
)}`;

export const linearBackwardTile = backwardTile(GRADIENTS.one);
export const linearBackwardThreeTile = backwardTile(GRADIENTS.three);
export const linearBackwardTwoTile = backwardTile(GRADIENTS.two);
