// SmolLM2-135M, trained from its published Q4_1 file, written over that file and as a new file: run by llama.cpp.
import { join } from 'node:path';
import { root } from '../../../web/toolchain.mjs';
import { installNode, installPython, installSmollm, smollm as base } from './install.mjs';
import {
  POSITIONS,
  apart,
  compareHeaders,
  compareOwn,
  comparePositions,
  compareTexts,
  texts,
} from './judge.mjs';
import { forward, headers, readsGguf, runs } from './programs.mjs';
import { figure, ownAs, ranAs } from './report.mjs';

const TEXT = join(root, 'web', 'demo', 'assets', 'pride-and-prejudice.txt');
const STEPS = 50;
const PROMPT = 'The capital of France is';
/** Name → type, and true if the published file is the base. */
const WAYS = {
  'as-base': ['as-base', true],
  f16: ['f16', true],
  q8_0: ['q8_0', true],
  'q4_k_m, new file': ['q4_k_m', false],
};
/** Metadata keys that a patch may change. */
const CHANGED = ['general.file_type'];

/** Returns the checkpoint after the steps. SMOLLM_CHECKPOINT names an existing one. */
async function trained(tabtune, work) {
  if (process.env.SMOLLM_CHECKPOINT) return process.env.SMOLLM_CHECKPOINT;
  const out = join(work, 'checkpoint');
  const shape = [
    '--steps',
    String(STEPS),
    '--batch-size',
    '1',
    '--seq-len',
    '32',
    '--learning-rate',
    '1e-5',
  ];
  await tabtune.lines(
    'train',
    '--model',
    base,
    '--data',
    TEXT,
    ...shape,
    '--device',
    'cpu',
    '--out',
    out,
  );
  return out;
}

export async function smollm({ tabtune, work, fail }) {
  await installNode();
  await installPython();
  await installSmollm();
  const checkpoint = await trained(tabtune, work);
  const made = Object.entries(WAYS).map(([way, [type, patch]]) => ({
    way,
    type,
    patch,
    path: join(work, `smollm-${type}.gguf`),
  }));
  for (const { type, patch, path } of made) {
    await tabtune.lines(
      'export',
      '--checkpoint',
      checkpoint,
      '--to',
      path,
      '--format',
      'gguf',
      '--type',
      type,
      ...(patch ? ['--base', base] : []),
    );
  }
  const asked = texts();
  const expected = [];
  for (const text of asked) expected.push(await tabtune.ids(base, text));
  const ids = await tabtune.ids(base, PROMPT);
  const ours = await forward(
    work,
    made.map(({ path }) => ({ path, ids, count: POSITIONS })),
  );
  const wanted = (at) => ours[at].positions.map(({ top }) => top.map(([id]) => id));
  const job = ({ path }, at) => ({ path, ids: ours[at].ids, wanted: wanted(at) });
  const ran = await runs(
    work,
    made.map((file, at) => ({ ...job(file, at), texts: asked })),
  );
  const again = await runs(
    work,
    made.map((file, at) => ({ ...job(file, at), halves: true })),
  );
  const [published, ...read] = await readsGguf(
    work,
    [base, ...made.map(({ path }) => path)].map((path) => ({ path })),
  );
  const listed = await headers(
    work,
    made.map(({ path }) => path),
  );

  const rows = [];
  for (const [at, { way, type, patch, path }] of made.entries()) {
    // Roundings to 8 bits flip from layer to layer: a difference of the size that llama.cpp shows when only its cache is rounded is not a fault of
    // the file.
    const noise = apart(ran[at].positions, again[at].positions);
    const positions = comparePositions(
      type,
      ours[at].positions,
      ran[at].positions,
      type === 'f16' ? 0 : noise,
    );
    const own = compareOwn(
      ours[at].positions,
      await tabtune.continued(path, PROMPT, 4),
      ids.length,
    );
    const wrongTexts = compareTexts(asked, expected, ran[at].texts);
    const wrongHeader = compareHeaders(read[at], listed[at]);
    const text = (value) => JSON.stringify(value);
    const keys = patch ? Object.keys({ ...published.metadata, ...read[at].metadata }) : [];
    const changed = (key) =>
      !CHANGED.includes(key) && text(published.metadata[key]) !== text(read[at].metadata[key]);
    for (const key of keys.filter(changed)) fail(`smollm ${way}: key ${key} is not the base's`);
    const listOf = ({ tensors }) =>
      text(tensors.map(({ name, shape, dtype }) => [name, shape, type === 'as-base' ? dtype : '']));
    if (patch && listOf(published) !== listOf(read[at]))
      fail(`smollm ${way}: other tensors than the base`);
    for (const wrong of [...positions.wrong, ...own.wrong, ...wrongTexts, ...wrongHeader])
      fail(`smollm ${way}: ${wrong}`);
    const count = new Map();
    for (const { dtype } of read[at].tensors) count.set(dtype, (count.get(dtype) ?? 0) + 1);
    const types = [...count].map(([dtype, times]) => `${times} ${dtype}`).join(', ');
    const same = wrongHeader.length === 0 ? 'equal' : 'WRONG';
    rows.push([
      way,
      types,
      ...ranAs(positions, ours[at].positions),
      figure(noise),
      `${asked.length - wrongTexts.length} of ${asked.length}`,
      same,
      ownAs(own),
    ]);
  }
  return {
    title: `SmolLM2-135M-Instruct after ${STEPS} steps from its Q4_1 file`,
    words: `The published file with the trained tensors in its place in three types, and a new file in q4_k_m. A patch keeps every key of the base but the file's type. The columns are those of the
small models; *off from itself* is how far llama.cpp's log-probabilities move when only its cache of keys and values is rounded to F16: a flipped rounding of 8 bits flips others
in the layers above. Blocks are allowed that in addition to a hundredth of the largest logit.`,
    columns: [
      'way',
      'tensors',
      'llama.cpp off by',
      'of what is allowed',
      'best tokens',
      'off from itself',
      'texts',
      'headers',
      'tabtune off by',
    ],
    rows,
  };
}
