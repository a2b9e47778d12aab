// The unrolled attention kernels. Each export is the template of the shader with its name.
//
// Queries and keys are processed in groups of eight, held by two vec4: positions t … t + 3 are the lanes of `tl`, t + 4 … t + 7 those of `th`; ql, qh
// and kl, kh are the offsets of their rows. Scores are l0, h0 … l7, h7: `l3` has the scores of the fourth key with the first four queries, `h3` those
// with the other four (in the gradient of the keys, the two roles are exchanged).
import { withCap } from './attention_parts.mjs';
import { DOTS, LANES, bindings, each, fromParams, list, main, vectors, zeros } from './layout.mjs';

const PARAMETERS = [
  'batch',
  'heads',
  'kv_heads',
  'len',
  'offset',
  'width4',
  'scale: f32',
  'cap: f32',
  'documents',
  'first',
  'end',
];

/** Repeats a part for the lower four and for the upper four. */
const halves = (part) => ['l', 'h'].map(part).join('\n');
/** Element r of eight: `of('q', 5)` is `qh.y`. */
const of = (name, r) => `${name}${r < 4 ? 'l' : 'h'}.${LANES[r % 4]}`;

/** The lower or upper four of eight consecutive positions, starting at a variable, clamped below `length`. */
const positions = (from, half, length) => {
  const skip = half === 'l' ? 0 : 4;
  return `min(vec4<u32>(${list(4, (i) => (skip + i === 0 ? from : `${from} + ${skip + i}u`))}), vec4<u32>(${length} - 1u))`;
};

/** This thread's head and its eight positions of `length`, starting at `at`; threads past the last position return here. */
const ownEight = (at, length, heads) => `
  let i = grid_index(group, groups, lane, 32u);
  ${fromParams('heads', 'kv_heads', 'len', 'width4')}
  let all = params.offset + len;
  let blocks = (${length} + 7u) / 8u;
  if (i >= params.batch * blocks * ${heads}) {
    return;
  }
  let head = i % ${heads};
  let b = i / ${heads} / blocks;
  let ${at} = i / ${heads} % blocks * 8u;
  ${halves((s) => `let ${at}${s} = ${positions(at, s, length)};`)}`;

/** Start of the rows of this thread's keys, and the distance between them. */
const KEY_ROWS = `
  let base = (b * all * kv_heads + head / (heads / kv_heads)) * width4;
  let step = kv_heads * width4;`;

/** Loops over groups of eight keys; `from` counts from each query's first key. */
const overKeys = (body) => `
  for (var j = max(params.first, firstl.x / 8u * 8u); j < end; j += 8u) {
    // Keys counted from each query's first: those before it wrap around, past all that are seen.
    ${halves((s) => `let from${s} = vec4<u32>(j) - first${s};`)}
    ${halves((s) => `let k${s} = base + ${positions('j', s, 'all')} * step;`)}
    ${body}
  }`;

/** Loops over the vec4 of a head's width. */
const overWidth = (body) => `
  for (var c = 0u; c < width4; c++) {
    ${body}
  }`;

/** `a0 … a7` for the name `a`: element c of eight rows of `array`, which start at `rows`. */
const load = (name, array, rows) =>
  each(8, (r) => `let ${name}${r} = ${array}[${of(rows, r)} + c];`, 4);
/** Offset of the numbers of query r of four; computed where it is used, since long-lived variables take long to compile. */
const stats = (s) => `let s${s} = 2u * ((b * len + t${s}[r]) * heads + head);`;
/** Code for row r of the lower and of the upper four: a loop, since each buffer access in the text takes long to compile. */
const byRow = (body) => `
  for (var r = 0u; r < 4u; r++) {
    ${halves(body)}
  }`;
/** The soft cap of the scores of the lower and upper four, and its slope as a factor of `slopes`. */
const softCap = (scores, slopes = '') =>
  withCap(
    each(8, (r) => list(2, (s) => `${scores[s]}${r} = capped(${scores[s]}${r}, bound);`, ' ')),
    slopes &&
      each(8, (r) =>
        list(2, (s) => `${slopes[s]}${r} *= cap_slope(${scores[s]}${r}, bound);`, ' '),
      ),
  );
const clear = (array, rows) => byRow((s) => `${array}[${rows}${s}[r] + c] = vec4<f32>();`);

/** Loads row r of the other eight into `name`, and adds its products with the rows `own` to the scores `low` and `high`. */
const score = (r, name, array, rows, own, low, high) =>
  [
    `let ${name}${r} = ${array}[${of(rows, r)} + c];`,
    `${low}${r} += dots(${name}${r}, ${own}0, ${own}1, ${own}2, ${own}3);`,
    `${high}${r} += dots(${name}${r}, ${own}4, ${own}5, ${own}6, ${own}7);`,
  ].join(' ');

/** Adds the rows `name` of the other eight, each times its score with r, to the previous value of row r of eight. */
const addRows = (r, array, rows, before, low, high, name) => `
  ${array}[${of(rows, r)} + c] = ${before}${r} + (
    ${list(8, (o) => `${r < 4 ? low : high}${o}.${LANES[r % 4]} * ${name}${o}`, ' + ')}
  );`;

export const attention_forward_block = `
// Causal attention, grouped queries, online softmax: y = softmax(scale q kᵀ) v over the keys first ..= offset + t;
// first, cap: attention_forward. q, y [B, T, heads, H], k, v [B, offset + T, kv_heads, H],
// stats [B, T, heads, 2] = log Σ exp, 0; H = 4 width4.
// One thread: 8 queries of one head against 8 keys at a time, so that each element loaded serves 8 products; y holds
// the sums. A long row is cut: this launch adds the keys first .. end, stats keep the maximum and the sum between
// launches. Past an edge the last row is computed again: the same numbers are stored in the same place.
// Twin: ops/attention/kernels.rs
${bindings(PARAMETERS, ...vectors('q', 'k', 'v'), 'starts: u32', ...vectors('y'), 'stats: f32')}

const LOWEST: f32 = -3.4028234e38;
${DOTS}
${main(
  32,
  `
  ${ownEight('t', 'len', 'heads')}
  let keys = params.offset + th.w + 1u;
  let end = min(keys, params.end);
  if (params.first >= end) {
    return;
  }
  ${halves((s) => `let q${s} = ((b * len + t${s}) * heads + head) * width4;`)}
  ${KEY_ROWS}
  ${halves((s) => `var first${s} = vec4<u32>();`)}
  if (params.documents != 0u) {
    ${byRow((s) => `first${s}[r] = min(starts[b * len + t${s}[r]], params.offset + t${s}[r]);`)}
    if (head == 0u) {
      let tail = 2u * params.batch * len * heads + b * len;
      ${byRow((s) => `stats[tail + t${s}[r]] = f32(first${s}[r]);`)}
    }
  }
  ${halves((s) => `let seen${s} = params.offset + t${s} - first${s};`)}
  ${halves((s) => `var top${s} = vec4<f32>(LOWEST);`)}
  ${halves((s) => `var sum${s} = vec4<f32>();`)}
  if (params.first == 0u) {
    ${overWidth(clear('y', 'q'))}
  } else {
    ${byRow((s) => `${stats(s)} top${s}[r] = stats[s${s}]; sum${s}[r] = stats[s${s} + 1u];`)}
  }
  ${overKeys(`
    ${zeros(8, 'lh')}
    ${overWidth(`
      ${load('a', 'q', 'q')}
      ${each(8, (r) => score(r, 'b', 'k', 'k', 'a', 'l', 'h'))}`)}
    ${softCap('lh')}
    ${each(8, (r) => halves((s) => `${s}${r} = select(vec4<f32>(LOWEST), ${s}${r} * params.scale, from${s} + ${r}u <= seen${s});`))}
    ${halves((s) => {
      const top = `max(max(max(${s}0, ${s}1), max(${s}2, ${s}3)), max(max(${s}4, ${s}5), max(${s}6, ${s}7)))`;
      return `let next${s} = max(top${s}, ${top});
        let old${s} = exp(top${s} - next${s});`;
    })}
    ${each(8, (r) => halves((s) => `${s}${r} = select(vec4<f32>(), exp(${s}${r} - next${s}), from${s} + ${r}u <= seen${s});`))}
    ${halves((s) => {
      const sum = `(((${s}0 + ${s}1) + (${s}2 + ${s}3)) + ((${s}4 + ${s}5) + (${s}6 + ${s}7)))`;
      return `sum${s} = sum${s} * old${s} + ${sum};
        top${s} = next${s};`;
    })}
    ${overWidth(`
      ${load('b', 'v', 'k')}
      ${each(8, (r) => `let y${r} = y[${of('q', r)} + c] * ${of('old', r)};`, 2)}
      ${each(8, (r) => addRows(r, 'y', 'q', 'y', 'l', 'h', 'b'))}`)}`)}
  if (keys <= params.end) {
    // A row past the edge is the last one, which is divided once.
    ${overWidth(byRow((s) => `y[q${s}[r] + c] /= select(1.0, sum${s}[r], ${s === 'l' ? 't' : 't + 4u'} + r < len);`))}
    ${halves((s) => `top${s} += log(sum${s}); sum${s} = vec4<f32>();`)}
  }
  ${byRow((s) => `${stats(s)} stats[s${s}] = top${s}[r]; stats[s${s} + 1u] = sum${s}[r];`)}`,
)}`;

export const attention_backward_query_block = `
// dq = scale Σ_j ds_j k_j with p_j = exp(scale q k_j − lse), ds_j = p_j (dy v_j − delta), delta = dy y.
// Shapes and cap, whose slope ds_j has too, as in attention_forward; stats [B, T, heads, 2]: lse is read, delta written
// for the kernel of keys and values. One thread: 8 queries of one head against 8 keys at a time, dq holds the sums;
// this launch adds the keys first .. end. Past an edge the last row is computed again: the same numbers are stored in
// the same place. Twin: ops/attention/kernels.rs
${bindings(PARAMETERS, ...vectors('q', 'k', 'v', 'y', 'dy'), 'stats: f32', ...vectors('dq'))}
${DOTS}
${main(
  32,
  `
  ${ownEight('t', 'len', 'heads')}
  let end = min(params.offset + th.w + 1u, params.end);
  if (params.first >= end) {
    return;
  }
  ${halves((s) => `let q${s} = ((b * len + t${s}) * heads + head) * width4;`)}
  ${KEY_ROWS}
  ${halves((s) => `var first${s} = vec4<u32>();`)}
  if (params.documents != 0u) {
    let tail = (2u * params.batch * heads + b) * len;
    ${byRow((s) => `first${s}[r] = u32(stats[tail + t${s}[r]]);`)}
  }
  ${halves((s) => `let seen${s} = params.offset + t${s} - first${s};`)}
  ${halves((s) => `var lse${s} = vec4<f32>(); var delta${s} = vec4<f32>();`)}
  ${byRow((s) => `${stats(s)} lse${s}[r] = stats[s${s}];`)}
  ${overWidth(byRow((s) => `delta${s}[r] += dot(dy[q${s}[r] + c], y[q${s}[r] + c]);`))}
  if (params.first == 0u) {
    ${overWidth(clear('dq', 'q'))}
    ${byRow((s) => `${stats(s)} stats[s${s} + 1u] = delta${s}[r];`)}
  }
  ${overKeys(`
    ${zeros(8, 'lhmn')}
    ${overWidth(`
      ${load('a', 'q', 'q')}
      ${load('g', 'dy', 'q')}
      ${each(
        8,
        (r) => `${score(r, 'b', 'k', 'k', 'a', 'l', 'h')}
        ${score(r, 'v', 'v', 'k', 'g', 'm', 'n')}`,
      )}`)}
    ${each(8, (r) => `m${r} -= deltal; n${r} -= deltah;`, 2)}
    ${softCap('lh', 'mn')}
    ${each(8, (r) =>
      halves((s) => {
        const p = `select(vec4<f32>(), exp(${s}${r} * params.scale - lse${s}), from${s} + ${r}u <= seen${s})`;
        return `${s}${r} = ${p} * ${s === 'l' ? 'm' : 'n'}${r} * params.scale;`;
      }),
    )}
    ${overWidth(`
      ${load('b', 'k', 'k')}
      ${load('y', 'dq', 'q')}
      ${each(8, (r) => addRows(r, 'dq', 'q', 'y', 'l', 'h', 'b'))}`)}`)}`,
)}`;

export const attention_backward_key_value_block = `
// dv_j = Σ_t p dy_t, dk_j = scale Σ_t ds q_t over the queries t ≥ j − offset of all heads that share the key; p, ds as
// in attention_backward_query_block. q, dy [B, T, heads, H], k, v, dk, dv [B, offset + T, kv_heads, H],
// stats [B, T, heads, 2] = lse, delta.
// One thread: 8 keys of one head against 8 queries at a time, dk and dv hold the sums; this launch adds the queries
// first .. end. Past an edge the last row is computed again: the same numbers are stored in the same place.
// Twin: ops/attention/kernels.rs
${bindings(PARAMETERS, ...vectors('q', 'k', 'v', 'dy'), 'stats: f32', ...vectors('dk', 'dv'))}
${DOTS}
${main(
  32,
  `
  ${ownEight('j', 'all', 'kv_heads')}
  ${halves((s) => `let k${s} = ((b * all + j${s}) * kv_heads + head) * width4;`)}
  if (params.first == 0u) {
    ${overWidth(`
      ${clear('dk', 'k')}
      ${clear('dv', 'k')}`)}
  }
  // The first query that sees one of the keys, in steps of 8.
  let start = max(params.first, (max(j, params.offset) - params.offset) / 8u * 8u);
  let end = min(len, params.end);
  let shared_by = heads / kv_heads;
  for (var g = 0u; g < shared_by; g++) {
    let at = b * len * heads + head * shared_by + g;
    for (var t = start; t < end; t += 8u) {
      ${halves((s) => `let s${s} = at + ${positions('t', s, 'len')} * heads;`)}
      ${halves((s) => `let q${s} = s${s} * width4;`)}
      ${halves((s) => `var first${s} = vec4<u32>();`)}
      if (params.documents != 0u) {
        let tail = 2u * params.batch * len * heads;
        ${halves((s) => `let a${s} = tail + s${s} / heads;`)}
        ${byRow((s) => `first${s}[r] = u32(stats[a${s}[r]]);`)}
        if (firstl.x > jh.w) {
          break;
        }
      }
      ${zeros(8, 'lhmn')}
      ${overWidth(`
        ${load('a', 'k', 'k')}
        ${load('g', 'v', 'k')}
        ${each(
          8,
          (r) => `${score(r, 'b', 'q', 'q', 'a', 'l', 'h')}
          ${score(r, 'd', 'dy', 'q', 'g', 'm', 'n')}`,
        )}`)}
      ${each(8, (r) => `let f${r} = stats[2u * ${of('s', r)} + 1u]; m${r} -= f${r}; n${r} -= f${r};`)}
      ${softCap('lh', 'mn')}
      ${each(8, (r) => {
        const p = (s) =>
          `select(vec4<f32>(), exp(${s}${r} * params.scale - e${r}), j${s} - ${of('first', r)} < u${r})`;
        return `
          let e${r} = stats[2u * ${of('s', r)}];
          let u${r} = vec4<u32>(select(0u, params.offset + t + ${r + 1}u - ${of('first', r)}, t + ${r}u < len));
          l${r} = ${p('l')};
          m${r} = l${r} * m${r} * params.scale;
          h${r} = ${p('h')};
          n${r} = h${r} * n${r} * params.scale;`;
      })}
      ${overWidth(`
        ${each(8, (r) => `let a${r} = q[${of('q', r)} + c]; let b${r} = dy[${of('q', r)} + c];`, 2)}
        ${each(8, (r) => `let y${r} = dk[${of('k', r)} + c]; let z${r} = dv[${of('k', r)} + c];`, 2)}
        ${each(
          8,
          (r) => `${addRows(r, 'dk', 'k', 'y', 'm', 'n', 'a')}
          ${addRows(r, 'dv', 'k', 'z', 'l', 'h', 'b')}`,
        )}`)}
    }
  }`,
)}`;
