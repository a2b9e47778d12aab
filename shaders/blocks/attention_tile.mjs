// The tiled attention kernels for GPUs, with tiles of 32 queries and 32 keys. Each export is the template of the shader with its name.
//
// A workgroup of 64 threads walks over the tiles that its own 32 rows (queries, or keys) see. A thread has tx and ty below 8: its own rows are ty, ty
// + 8, ty + 16, ty + 24, the lanes of a vector; the other rows are tx … tx + 24, to which s0 … s3 belong. Sums of a row are variables a0, a1 (the
// first row, columns tx and tx + 8, in vec4), b0, b1 … d1; heads wider than 64 have four for each row.
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
} from './attention_parts.mjs';
import { LANES, bindings, each, list, vectors } from './layout.mjs';

/** The 32 queries of this workgroup, in descending order because the last ones see the most keys. */
const QUERIES = `
  let across = (len + 31u) / 32u;
  let head = tile % heads;
  let b = tile / heads / across;
  let top_row = (across - 1u - tile / heads % across) * 32u;
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

const TOTAL = 'params.batch * heads * ((len + 31u) / 32u)';

const FIRST_OF_STARTS = seenKeys(`
  let token = vec4<u32>(b * len) + own_t;
  first = min(${four((a) => `starts[token.${LANES[a]}]`, 'u32')}, last);`);

const forward = (count) => `
// Causal attention, grouped queries, online softmax, for GPUs: y = softmax(scale q kᵀ) v over the keys first ..= offset
// + t. With documents, first is starts [B, T], which grows with t and is stored as f32 after the stats; otherwise first
// is 0 (and one word of starts is bound). q, y [B, T, heads, H], k, v [B, offset + T, kv_heads, H], stats [B, T, heads,
// 2] = log Σ exp, 0; H = 4 width4 ≤ ${32 * count}.
// A workgroup: 32 queries of one head, by 32 keys at a time. Twin: ops/attention/kernels.rs
${bindings(PARAMETERS, ...vectors('q', 'k', 'v'), 'starts: u32', 'y: vec4<f32>', 'stats: f32')}

const LOWEST = -3.4028234e38;
${shared('scores')}
${PARTIAL}

${walking(
  TOTAL,
  QUERIES,
  `
  var begin = 0u;
  if (params.documents != 0u) {
    begin = min(starts[b * len + top_row], params.offset + top_row);
  }
  let end = min(params.offset + top_row + 32u, all);`,
  `
  ${columns(count)}
  ${sums(count)}
  var top = vec4<f32>(LOWEST);
  var total = vec4<f32>();`,
  `
  ${products('s', query('q'), key('k'))}
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
  ${each(4, (a) => list(count, (c) => `${ROWS[a]}${c} *= old.${LANES[a]};`, ' '))}
  workgroupBarrier();
  ${overKeys(count, 'v')}`,
  `
  ${OWN_QUERIES}
  ${FIRST_OF_STARTS}
  partial[lane] = total;
  workgroupBarrier();
  total = vec4<f32>();
  ${reduced('total', plus)}
  ${store(count, 'y', 'at', '', (lane) => ` / total.${lane}`)}
  let lse = top + log(total);
  ${LANES.map(
    (e) => `
    if (tx == 0u && at.${e} != NONE) {
      stats[2u * at.${e}] = lse.${e};
      stats[2u * at.${e} + 1u] = 0.0;
      if (params.documents != 0u && head == 0u) {
        stats[2u * params.batch * len * heads + b * len + t.${e}] = f32(first.${e});
      }
    }`,
  ).join('\n')}`,
)}`;

export const attention_forward_tile = forward(2);
export const attention_forward_tile_wide = forward(4);

const backwardQuery = (count) => `
// dq = scale Σ_j ds_j k_j with p_j = exp(scale q k_j − lse), ds_j = p_j (dy v_j − delta), delta = dy y, for GPUs.
// Shapes as in attention_forward_tile, H = 4 width4 ≤ ${32 * count}; stats [B, T, heads, 2]: lse is read, delta written for
// attention_backward_key_value_tile; with documents, the first key of each query [B, T] is stored after them.
// A workgroup: 32 queries of one head, by 32 keys at a time. Twin: ops/attention/kernels.rs
${bindings(PARAMETERS, ...vectors('q', 'k', 'v', 'y', 'dy'), 'stats: f32', 'dq: vec4<f32>')}

${shared('scores')}
${PARTIAL}

${walking(
  TOTAL,
  QUERIES,
  `
  var begin = 0u;
  if (params.documents != 0u) {
    begin = u32(stats[2u * params.batch * len * heads + b * len + top_row]);
  }
  let end = min(params.offset + top_row + 32u, all);`,
  `
  ${columns(count)}
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
  ${sums(count)}`,
  `
  ${products('s', query('q'), key('k'))}
  ${seenKeys(`
    let token = vec4<u32>(2u * params.batch * len * heads + b * len) + own_t;
    first = vec4<u32>(${four((a) => `stats[token.${LANES[a]}]`)});`)}
  let row_of = 2u * ((vec4<u32>(b * len) + own_t) * heads + vec4<u32>(head));
  let lse = ${four((a) => `stats[row_of.${LANES[a]}]`)};
  ${each(4, seen)}
  ${each(4, (b) => `scores[${place(b)}] = select(vec4<f32>(), exp(s${b} * params.scale - lse), seen${b});`)}
  ${products('g', query('dy'), key('v'))}
  // Each thread reads back what it wrote itself.
  ${each(4, (b) => `scores[${place(b)}] *= (g${b} - partial[lane]) * params.scale;`)}
  workgroupBarrier();
  ${overKeys(count, 'k')}`,
  `
  ${OWN_QUERIES}
  ${store(count, 'dq', 'at', '', () => '')}
  ${LANES.map(
    (e) => `
    if (tx == 0u && at.${e} != NONE) {
      stats[2u * at.${e} + 1u] = partial[lane].${e};
    }`,
  ).join('\n')}`,
)}`;

export const attention_backward_query_tile = backwardQuery(2);
export const attention_backward_query_tile_wide = backwardQuery(4);

/** The 32 keys of this workgroup, and 64 of their columns. */
const KEYS = `
  let halves = (width4 + 15u) / 16u;
  let left = tile % halves * 16u;
  let head = tile / halves % heads;
  let across = (all + 31u) / 32u;
  let b = tile / halves / heads / across;
  let top_row = tile / halves / heads % across * 32u;
  let q_base = (b * len * heads + head) * width4;
  let q_step = heads * width4;
  let k_base = (b * all * params.kv_heads + head / (heads / params.kv_heads)) * width4;
  let k_step = params.kv_heads * width4;
  let firsts = 2u * params.batch * len * heads + b * len;`;

const ownKey = (array) => (row) => element(array, 'k_base', 'k_step', `top_row + ${row}`, 'all');
const otherQuery = (array) => (row) => element(array, 'q_base', 'q_step', `start + ${row}`, 'len');

export const attention_backward_key_value_tile = `
// dv_j = Σ_t p dy_t, dk_j = scale Σ_t ds q_t over the queries t ≥ j − offset of one head, for GPUs; p, ds as in
// attention_backward_query_tile. q, dy [B, T, heads, H], k, v [B, offset + T, kv_heads, H], dk, dv [B, offset + T,
// heads, H], stats [B, T, heads, 2] = lse, delta.
// With documents, a query sees the keys from its first one on, which is stored after the stats and grows with t.
// A workgroup: 32 keys of one query head, by 32 queries at a time, and 64 columns of dk and dv: those of 128 do not fit
// into the registers of a thread, so that the scores of a wider head are computed twice. Twin: ops/attention/kernels.rs
${bindings(PARAMETERS, ...vectors('q', 'k', 'v', 'dy'), 'stats: f32', ...vectors('dk', 'dv'))}

${shared('scores', 'slopes')}

${walking(
  'params.batch * heads * ((all + 31u) / 32u) * ((width4 + 15u) / 16u)',
  KEYS,
  `
  let begin = min(max(top_row, params.offset) - params.offset, len - 1u);
  var end = len;
  if (params.documents != 0u) {
    // The number of queries from there on whose first key is not past these: their first keys grow.
    var count = 0u;
    for (var bit = 0x80000000u; bit > 0u; bit >>= 1u) {
      if (bit <= len - begin - count && stats[firsts + begin + count + bit - 1u] <= f32(top_row + 31u)) {
        count += bit;
      }
    }
    end = begin + max(count, 1u);
  }`,
  `
  ${columns(2, 'left + ')}
  ${sums(2, 'k')}
  ${sums(2, 'v')}`,
  `
  ${products('s', ownKey('k'), otherQuery('q'))}
  // The tiles of the other queries, read where they are needed, since registers are few.
  let j = vec4<u32>(top_row + ty) + vec4<u32>(0u, 8u, 16u, 24u);
  let t = vec4<u32>(start + tx) + vec4<u32>(0u, 8u, 16u, 24u);
  var first = vec4<u32>();
  if (params.documents != 0u) {
    let token = vec4<u32>(firsts) + min(t, vec4<u32>(len - 1u));
    first = vec4<u32>(${four((b) => `stats[token.${LANES[b]}]`)});
  }
  let row_of = 2u * ((vec4<u32>(b * len) + min(t, vec4<u32>(len - 1u))) * heads + vec4<u32>(head));
  let lse = ${four((b) => `stats[row_of.${LANES[b]}]`)};
  ${each(4, (b) => {
    const e = LANES[b];
    return `
      let seen${b} = (vec4<u32>(first.${e}) <= j) & (j <= vec4<u32>(params.offset + t.${e})) & vec4<bool>(t.${e} < len);
      scores[${place(b)}] = select(vec4<f32>(), exp(s${b} * params.scale - vec4<f32>(lse.${e})), seen${b});`;
  })}
  ${products('g', ownKey('v'), otherQuery('dy'))}
  let query = min(vec4<u32>(start + tx) + vec4<u32>(0u, 8u, 16u, 24u), vec4<u32>(len - 1u));
  let delta_of = 2u * ((vec4<u32>(b * len) + query) * heads + vec4<u32>(head)) + vec4<u32>(1u);
  let delta = ${four((b) => `stats[delta_of.${LANES[b]}]`)};
  ${each(4, (b) => {
    return `slopes[${place(b)}] = scores[${place(b)}] * (g${b} - vec4<f32>(delta.${LANES[b]})) * params.scale;`;
  })}
  workgroupBarrier();
  for (var i = 0u; i < 32u; i++) {
    let row = q_base + min(start + i, len - 1u) * q_step;
    let p = scores[8u * i + ty];
    ${addRow(2, 'p', 'dy', 'row', 'v')}
    let g = slopes[8u * i + ty];
    ${addRow(2, 'g', 'q', 'row', 'k')}
  }`,
  `
  let own_j = vec4<u32>(top_row + ty) + vec4<u32>(0u, 8u, 16u, 24u);
  let at = select(vec4<u32>(NONE), (vec4<u32>(b * all) + own_j) * heads + vec4<u32>(head), own_j < vec4<u32>(all));
  ${store(2, 'dk', 'at', 'left + ', () => '', 'k')}
  ${store(2, 'dv', 'at', 'left + ', () => '', 'v')}`,
)}`;
