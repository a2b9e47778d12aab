// Building blocks of the attention kernels (attention_tile.mjs, attention_key_tile.mjs; withCap also attention.mjs).
import { LANES, after, each, fromParams, list, main } from './layout.mjs';

export const PARAMETERS = [
  'batch',
  'heads',
  'kv_heads',
  'len',
  'offset',
  'width4',
  'scale: f32',
  'cap: f32',
  'documents',
];
export const ROWS = 'abcd';

/** A vec4 whose lanes `part` provides, one for each of a thread's own rows, or of the other rows. */
export const four = (part, type = 'f32') => `vec4<${type}>(${list(4, part)})`;

/**
 * Code for scores with a soft cap: `bound` is that of the products before their factor. Without a cap it costs a test of a parameter, and the other
 * results keep their bits.
 */
export const withCap = (...lines) => `
  if (params.cap > 0.0) {
    let bound = params.cap / params.scale;
    ${lines.join('\n')}
  }`;

/** The soft cap of the scores of a thread. */
export const CAPPED = each(4, (b) => `s${b} = capped(s${b}, bound);`, 2);

/** Workgroup memory: `tiles` arrays of 32 × 32 scores. Rows of four vectors are five apart, so that neighbours read different banks. */
export const shared = (...tiles) => `
  // The place of a row that is not there.
  const NONE = 0xffffffffu;
  var<workgroup> own: array<vec4<f32>, 160>;
  var<workgroup> other: array<vec4<f32>, 160>;
  ${tiles.map((name) => `// Own rows ty + 8 lane of the other row at ty + 8 place.\nvar<workgroup> ${name}: array<vec4<f32>, 256>;`).join('\n')}
  // Loops with barriers need bounds that are provably uniform: where the tiles begin, their number, the chunks of a row.
  var<workgroup> walk: vec3<u32>;`;

/** Rows are summed by the eight threads that share them. */
export const PARTIAL = 'var<workgroup> partial: array<vec4<f32>, 64>;';

/** The entry point; `place` computes the rows of the workgroup, `span` the beginning and end of the others, in the first thread. */
export const walking = (count, place, span, prologue, body, epilogue) =>
  main(
    64,
    `
  ${fromParams('heads', 'len', 'width4')}
  let all = params.offset + len;
  let tile = group_index(group, groups);
  let tx = lane % 8u;
  let ty = lane / 8u;
  ${place}
  if (lane == 0u) {
    walk = vec3<u32>();
    if (tile < ${count}) {
      ${span}
      walk = vec3<u32>(begin, (end - begin + 31u) / 32u, (width4 + 3u) / 4u);
    }
  }
  let bounds = workgroupUniformLoad(&walk);
  ${prologue}
  for (var round = 0u; round < bounds.y; round++) {
    let start = bounds.x + 32u * round;
    ${body}
  }
  if (bounds.y == 0u) {
    return;
  }
  ${epilogue}`,
  );

/** Products of the own rows of one array with the other rows of another, in `name`0 … 3, 16 columns at a time. */
export const products = (name, mine, theirs) => `
  ${each(4, (b) => `var ${name}${b} = vec4<f32>();`, 4)}
  for (var chunk = 0u; chunk < bounds.z; chunk++) {
    let column = 4u * chunk + lane % 4u;
    var m0 = vec4<f32>(); var m1 = vec4<f32>(); var t0 = vec4<f32>(); var t1 = vec4<f32>();
    if (column < width4) {
      ${each(2, (e) => `m${e} = ${mine(after('lane / 4u', 16 * e))};`)}
      ${each(2, (e) => `t${e} = ${theirs(after('lane / 4u', 16 * e))};`)}
    }
    let into = lane / 4u * 5u + lane % 4u;
    own[into] = m0; own[into + 80u] = m1; other[into] = t0; other[into + 80u] = t1;
    workgroupBarrier();
    for (var i = 0u; i < 4u; i++) {
      ${each(4, (a) => `let p${a} = own[${after('ty * 5u + i', 40 * a)}];`, 2)}
      ${LANES.map((e) => `let p${e} = ${four((a) => `p${a}.${e}`)};`).join('\n')}
      ${each(
        4,
        (b) => `
        let q${b} = other[${after('tx * 5u + i', 40 * b)}];
        ${name}${b} = ${LANES.reduce((sum, e) => `fma(p${e}, vec4<f32>(q${b}.${e}), ${sum})`, `${name}${b}`)};`,
      )}
    }
    workgroupBarrier();
  }`;

/** Element `column` of a row of an array: the rows of `sequence` begin at `base`, and are `step` apart. */
export const element = (array, base, step, row, length) =>
  `${array}[${base} + min(${row}, ${length} - 1u) * ${step} + column]`;

/** Columns of a thread, clamped to the row; values read past its end are never written. */
export const columns = (count, skip = '') =>
  each(count, (c) => `let e${c} = min(${after(`${skip}tx`, 8 * c)}, width4 - 1u);`, 2);

export const sums = (count, prefix = '') =>
  each(4, (a) => each(count, (c) => `var ${prefix}${ROWS[a]}${c} = vec4<f32>();`, 2));

/** Adds one row of `array`, starting at `at`, to each own row, multiplied by its lane of `p`. */
export const addRow = (count, p, array, at, prefix = '') => `
  ${each(count, (c) => `let ${array}${c} = ${array}[${at} + e${c}];`, 2)}
  ${each(4, (a) => each(count, (c) => `${prefix}${ROWS[a]}${c} = fma(vec4<f32>(${p}.${LANES[a]}), ${array}${c}, ${prefix}${ROWS[a]}${c});`, 2))}`;

/** Writes the sums to the rows of an array; `last` is the final operation on each. */
export const store = (count, array, at, skip, last, prefix = '') =>
  each(4, (a) =>
    each(
      count,
      (c) => `
  if (${at}.${LANES[a]} != NONE && ${after(`${skip}tx`, 8 * c)} < width4) {
    ${array}[${at}.${LANES[a]} * width4 + ${after(`${skip}tx`, 8 * c)}] = ${prefix}${ROWS[a]}${c}${last(LANES[a])};
  }`,
    ),
  );

/** Adds (or takes the maximum of) the values of the eight threads of a row in `partial`. */
export const reduced = (into, merge) =>
  each(8, (o) => `${into} = ${merge(into, `partial[${after('8u * ty', o)}]`)};`, 2);
export const plus = (a, b) => `${a} + ${b}`;

/** Index of the scores of the own rows with the other row of this number. */
export const place = (b) => after('8u * tx + ty', 64 * b);

/** The own queries that see the other key of this place. */
export const seen = (b) => `
  let key${b} = vec4<u32>(${after('start + tx', 8 * b)});
  let seen${b} = (key${b} >= first) & (key${b} <= last);`;
