// The tiled attention kernel for GPUs that goes by keys, with tiles of 32 keys and 32 queries, as in attention_tile.mjs.
import {
  CAPPED,
  addRow,
  columns,
  element,
  four,
  PARAMETERS,
  place,
  products,
  shared,
  store,
  sums,
  walking,
  withCap,
} from './attention_parts.mjs';
import { LANES, bindings, each, vectors } from './layout.mjs';

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
// into the registers of a thread, so that the scores of a wider head are computed again. Twin: ops/attention/kernels.rs
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
  ${withCap(CAPPED)}
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
  ${withCap(each(4, (b) => `slopes[${place(b)}] = cap_slope(s${b}, bound);`))}
  ${products('g', ownKey('v'), otherQuery('dy'))}
  let query = min(vec4<u32>(start + tx) + vec4<u32>(0u, 8u, 16u, 24u), vec4<u32>(len - 1u));
  let delta_of = 2u * ((vec4<u32>(b * len) + query) * heads + vec4<u32>(head)) + vec4<u32>(1u);
  let delta = ${four((b) => `stats[delta_of.${LANES[b]}]`)};
  ${each(4, (b) => `g${b} = (g${b} - vec4<f32>(delta.${LANES[b]}));`)}
  // Each thread reads back what it wrote itself.
  if (params.cap > 0.0) {
    ${each(4, (b) => `g${b} *= slopes[${place(b)}];`, 2)}
  }
  ${each(4, (b) => `slopes[${place(b)}] = scores[${place(b)}] * g${b} * params.scale;`)}
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
