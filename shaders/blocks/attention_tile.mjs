// The tiled attention kernels for GPUs that go by queries, with tiles of 32 queries and 32 keys. Each export is the template of the shader with its
// name.
// A workgroup of 64 threads walks over the tiles that its own 32 rows (queries, or keys) see. A thread has tx and ty below 8: its own rows are ty, ty
// + 8, ty + 16, ty + 24, the lanes of a vector; the other rows are tx … tx + 24, to which s0 … s3 belong. Sums of a row are variables a0, a1 (the
// first row, columns tx and tx + 8, in vec4), b0, b1 … d1; heads wider than 64 have four for each row, and those wider than 128 several workgroups.
import {
  place,
  seen,
  PARAMETERS,
  ROWS,
  four,
  shared,
  PARTIAL,
  walking,
  products,
  element,
  columns,
  sums,
  addRow,
  store,
  reduced,
  plus,
  CAPPED,
  withCap,
} from './attention_parts.mjs';
import { LANES, bindings, each, list, vectors } from './layout.mjs';

/** Kernels for heads of at most 64 columns: `count` vec4 of a row in a thread. */
const NARROW = {
  count: 2,
  size: 'H = 4 width4 ≤ 64',
  columns: '',
  split: '',
  tile: 'tile',
  skip: '',
  first: 'tx == 0u',
  parts: '',
};
/** Kernels for wider heads, with 128 columns a workgroup: more do not fit into the registers of a thread. */
const WIDE = {
  count: 4,
  size: 'H = 4 width4',
  columns: ' and 128 columns of it',
  split: 'let parts = (width4 + 31u) / 32u;\nlet left = tile % parts * 32u;',
  tile: 'tile / parts',
  skip: 'left + ',
  first: 'left + tx == 0u',
  parts: ' * ((width4 + 31u) / 32u)',
};

/** The 32 queries of this workgroup, in descending order because the last ones see the most keys. */
const queries = ({ split, tile }) => `
  ${split}
  let across = (len + 31u) / 32u;
  let head = ${tile} % heads;
  let b = ${tile} / heads / across;
  let top_row = (across - 1u - ${tile} / heads % across) * 32u;
  let q_base = (b * len * heads + head) * width4;
  let k_base = (b * all * params.kv_heads + head / (heads / params.kv_heads)) * width4;
  let k_step = params.kv_heads * width4;
  let q_step = heads * width4;`;

/** The own queries and the offsets of their rows; computed where they are needed, since registers are scarce. */
const OWN_QUERIES = `
  let t = vec4<u32>(top_row + ty) + vec4<u32>(0u, 8u, 16u, 24u);
  let at = select(vec4<u32>(NONE), (vec4<u32>(b * len) + t) * heads + vec4<u32>(head), t < vec4<u32>(len));`;

/** The first and the last key that the own queries see; `load` reads the first one of a query, in documents. */
const seenKeys = (load) => `
  let own_t = min(vec4<u32>(top_row + ty) + vec4<u32>(0u, 8u, 16u, 24u), vec4<u32>(len - 1u));
  let last = vec4<u32>(params.offset) + own_t;
  var first = vec4<u32>();
  if (params.documents != 0u) {
    ${load}
  }`;

const query = (array) => (row) => element(array, 'q_base', 'q_step', `top_row + ${row}`, 'len');
const key = (array) => (row) => element(array, 'k_base', 'k_step', `start + ${row}`, 'all');

/** Own queries times all keys of a tile, whose rows are in `array`. */
const overKeys = (count, array) => `
  for (var j = 0u; j < 32u; j++) {
    let p = scores[8u * j + ty];
    let row = k_base + min(start + j, all - 1u) * k_step;
    ${addRow(count, 'p', array, 'row')}
  }`;

const total = ({ parts }) => `params.batch * heads * ((len + 31u) / 32u)${parts}`;

const FIRST_OF_STARTS = seenKeys(`
  let token = vec4<u32>(b * len) + own_t;
  first = min(${four((a) => `starts[token.${LANES[a]}]`, 'u32')}, last);`);

const forward = (size) => `
// Causal attention, grouped queries, online softmax, for GPUs: y = softmax(scale q kᵀ) v over the keys first ..= offset
// + t; with cap > 0 a score z is cap tanh(z / cap). With documents, first is starts [B, T], which grows with t and is
// stored as f32 after the stats; otherwise first is 0 (and one word of starts is bound). q, y [B, T, heads, H],
// k, v [B, offset + T, kv_heads, H], stats [B, T, heads, 2] = log Σ exp, 0; ${size.size}.
// A workgroup: 32 queries of one head${size.columns}, by 32 keys at a time. Twin: ops/attention/kernels.rs
${bindings(PARAMETERS, ...vectors('q', 'k', 'v'), 'starts: u32', 'y: vec4<f32>', 'stats: f32')}

const LOWEST = -3.4028234e38;
${shared('scores')}
${PARTIAL}

${walking(
  total(size),
  queries(size),
  `
  var begin = 0u;
  if (params.documents != 0u) {
    begin = min(starts[b * len + top_row], params.offset + top_row);
  }
  let end = min(params.offset + top_row + 32u, all);`,
  `
  ${columns(size.count, size.skip)}
  ${sums(size.count)}
  var top = vec4<f32>(LOWEST);
  var total = vec4<f32>();`,
  `
  ${products('s', query('q'), key('k'))}
  ${withCap(CAPPED)}
  ${FIRST_OF_STARTS}
  ${each(4, seen)}
  ${each(4, (b) => `s${b} = select(vec4<f32>(LOWEST), s${b} * params.scale, seen${b});`)}
  partial[lane] = max(max(s0, s1), max(s2, s3));
  workgroupBarrier();
  var next = top;
  ${reduced('next', (a, b) => `max(${a}, ${b})`)}
  let old = exp(top - next);
  top = next;
  ${each(4, (b) => `s${b} = select(vec4<f32>(), exp(s${b} - next), seen${b});`)}
  total = fma(total, old, (s0 + s1) + (s2 + s3));
  ${each(4, (b) => `scores[${place(b)}] = s${b};`, 2)}
  ${each(4, (a) => list(size.count, (c) => `${ROWS[a]}${c} *= old.${LANES[a]};`, ' '))}
  workgroupBarrier();
  ${overKeys(size.count, 'v')}`,
  `
  ${OWN_QUERIES}
  ${FIRST_OF_STARTS}
  partial[lane] = total;
  workgroupBarrier();
  total = vec4<f32>();
  ${reduced('total', plus)}
  ${store(size.count, 'y', 'at', size.skip, (lane) => ` / total.${lane}`)}
  let lse = top + log(total);
  ${LANES.map(
    (e) => `
    if (${size.first} && at.${e} != NONE) {
      stats[2u * at.${e}] = lse.${e};
      stats[2u * at.${e} + 1u] = 0.0;
      if (params.documents != 0u && head == 0u) {
        stats[2u * params.batch * len * heads + b * len + t.${e}] = f32(first.${e});
      }
    }`,
  ).join('\n')}`,
)}`;

export const attention_forward_tile = forward(NARROW);
export const attention_forward_tile_wide = forward(WIDE);

const backwardQuery = (size) => `
// dq = scale Σ_j ds_j k_j with p_j = exp(scale q k_j − lse), ds_j = p_j (dy v_j − delta), delta = dy y, for GPUs.
// Shapes and cap, whose slope ds_j has too, as in attention_forward_tile, ${size.size}; stats [B, T, heads, 2]:
// lse is read, delta written for attention_backward_key_value_tile; with documents, the first key of each query [B, T]
// is stored after them.
// A workgroup: 32 queries of one head${size.columns}, by 32 keys at a time. Twin: ops/attention/kernels.rs
${bindings(PARAMETERS, ...vectors('q', 'k', 'v', 'y', 'dy'), 'stats: f32', 'dq: vec4<f32>')}

${shared('scores')}
${PARTIAL}

${walking(
  total(size),
  queries(size),
  `
  var begin = 0u;
  if (params.documents != 0u) {
    begin = u32(stats[2u * params.batch * len * heads + b * len + top_row]);
  }
  let end = min(params.offset + top_row + 32u, all);`,
  `
  ${columns(size.count, size.skip)}
  // The deltas of the own rows, which stay in workgroup memory.
  var delta = vec4<f32>();
  if (bounds.y != 0u) {
    let t = min(vec4<u32>(top_row + ty) + vec4<u32>(0u, 8u, 16u, 24u), vec4<u32>(len - 1u));
    let rows = (vec4<u32>(b * len) + t) * heads + vec4<u32>(head);
    for (var c = tx; c < width4; c += 8u) {
      let i = rows * width4 + c;
      delta += ${four((a) => `dot(dy[i.${LANES[a]}], y[i.${LANES[a]}])`)};
    }
  }
  partial[lane] = delta;
  workgroupBarrier();
  delta = vec4<f32>();
  ${reduced('delta', plus)}
  workgroupBarrier();
  partial[lane] = delta;
  ${sums(size.count)}`,
  `
  ${products('s', query('q'), key('k'))}
  ${withCap(CAPPED)}
  ${seenKeys(`
    let token = vec4<u32>(2u * params.batch * len * heads + b * len) + own_t;
    first = vec4<u32>(${four((a) => `stats[token.${LANES[a]}]`)});`)}
  let row_of = 2u * ((vec4<u32>(b * len) + own_t) * heads + vec4<u32>(head));
  let lse = ${four((a) => `stats[row_of.${LANES[a]}]`)};
  ${each(4, seen)}
  ${each(4, (b) => `scores[${place(b)}] = select(vec4<f32>(), exp(s${b} * params.scale - lse), seen${b});`)}
  ${withCap(each(4, (b) => `scores[${place(b)}] *= cap_slope(s${b}, bound);`))}
  ${products('g', query('dy'), key('v'))}
  // Each thread reads back what it wrote itself.
  ${each(4, (b) => `scores[${place(b)}] *= (g${b} - partial[lane]) * params.scale;`)}
  workgroupBarrier();
  ${overKeys(size.count, 'k')}`,
  `
  ${OWN_QUERIES}
  ${store(size.count, 'dq', 'at', size.skip, () => '')}
  ${LANES.map(
    (e) => `
    if (${size.first} && at.${e} != NONE) {
      stats[2u * at.${e} + 1u] = partial[lane].${e};
    }`,
  ).join('\n')}`,
)}`;

export const attention_backward_query_tile = backwardQuery(NARROW);
export const attention_backward_query_tile_wide = backwardQuery(WIDE);
