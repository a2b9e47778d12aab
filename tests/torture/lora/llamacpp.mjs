// Adapters exported for llama.cpp, next to their base and merged into it.
import { join } from 'node:path';
import {
  installNode,
  installPython,
  installSmollm,
  smollm as published,
} from '../consumers/install.mjs';
import { POSITIONS, allowed, comparePositions } from '../consumers/judge.mjs';
import { adapted, forward, runs } from '../consumers/programs.mjs';
import { figure, ranAs } from '../consumers/report.mjs';
import { NAMES, makeModels } from '../make-models.mjs';
import { adapters, exported, train } from './trained.mjs';

const MODELS = NAMES.filter((name) => name !== 'wide' && name !== 'qwen3-tied');
const BASES = ['f32', 'f16', 'q8_0'];
const PROMPT = 'The stars of the northern sky turn about the pole; in 2024';
const LARGEST_OFF = 1e-3;
/** Ten times the allowed error with a base of F16. */
const LEAST_MOVED = 0.02;

const WORDS = `For each base, which tabtune wrote: how far llama.cpp's
log-probabilities of the five best tokens are off with \`--format gguf-adapter\`, that as a share of what is usual (F32 1e-4, where it is the bound; F16 2e-3; Q8_0 ${allowed('q8_0', 1)} of the
largest logit), how often the best token is the same, over the prompt and ${POSITIONS} best tokens after it, which it must be where it is ahead by more than twice what is usual, and how far
its probabilities are off (allowed 1e-3); the same of the model merged into an F16 GGUF. With a Q8_0 base it is listed and not judged. Expected is float64: the base that gguf-py reads plus scale · B A of the PEFT folder. Then how many roundings the values of the merged file and folder
are from that sum (allowed 1), and how much the adapter moves the best token's log-probability. Every export was made twice, with equal bytes.`;
const COLUMNS = [
  'model',
  'base',
  'adapter',
  'off by',
  'of what is usual',
  'best tokens',
  'probabilities',
  'merged off by',
  'of what is usual',
  'best tokens',
  'probabilities',
  'roundings',
  'moved',
];

/** Returns the largest difference of a probability of a next token. */
function probabilities(ours, theirs) {
  return Math.max(
    ...ours.flatMap(({ top }, at) =>
      top.map(([, log], rank) => Math.abs(Math.exp(theirs[at].of[rank]) - Math.exp(log))),
    ),
  );
}

export async function llamacpp({ tabtune, work, fail }) {
  await installNode();
  await installPython();
  makeModels(join(work, 'models'));
  const cases = [];
  for (const model of MODELS) {
    const folder = join(work, 'models', model);
    const ids = await tabtune.ids(
      folder,
      `${model === 'llama-3' ? '<|begin_of_text|>' : ''}${PROMPT}`,
    );
    for (const type of BASES) {
      const base = join(work, `${model}-${type}.gguf`);
      await tabtune.convert(folder, base, '--format', 'gguf', '--type', type);
      for (const [which, settings] of Object.entries(adapters(model))) {
        const at = join(work, `${model}-${type}-${which}`);
        await train(tabtune, work, base, settings, at);
        cases.push({ model, type, which, base, ids, ...(await forms(tabtune, fail, at, base)) });
      }
    }
  }
  return {
    title: 'adapters in llama.cpp, next to their base and merged into it',
    words: `Trained for 30 steps with r 4 on every matrix: one alpha; rsLoRA; ranks and alphas of their own. ${WORDS}`,
    columns: COLUMNS,
    rows: await compared(work, fail, cases),
  };
}

/** Does the same for a published model, on the machine's device. */
export async function smollm({ tabtune, work, fail }) {
  await installNode();
  await installPython();
  await installSmollm();
  const base = join(work, 'smollm2-f16.gguf');
  await tabtune.convert(published, base, '--format', 'gguf', '--type', 'f16');
  const at = join(work, 'run');
  const settings = {
    r: 8,
    alpha: 16,
    target_modules: 'all-linear',
    rslora: true,
    alpha_pattern: { down_proj: 4 },
  };
  await train(
    tabtune,
    work,
    base,
    settings,
    at,
    '--steps',
    '3',
    '--batch-size',
    '1',
    '--learning-rate',
    '0.003',
  );
  const ids = await tabtune.ids(base, PROMPT);
  const one = {
    model: 'SmolLM2-135M',
    type: 'f16',
    which: 'rsLoRA, patterned',
    base,
    ids,
    ...(await forms(tabtune, fail, at, base)),
  };
  return {
    title: 'SmolLM2-135M-Instruct, all 30 layers',
    words: `Trained for three steps of 32 tokens with r 8 on every matrix. ${WORDS}`,
    columns: COLUMNS,
    rows: await compared(work, fail, [one]),
  };
}

/** Returns the paths of an adapter checkpoint's exports. */
async function forms(tabtune, fail, at, base) {
  const form = (ending, ...options) => exported(tabtune, fail, at, at + ending, ...options);
  return {
    peft: await form('-peft', '--format', 'peft'),
    lora: await form('-lora.gguf', '--format', 'gguf-adapter', '--base', base),
    merged: await form('-merged.gguf', '--format', 'gguf', '--type', 'f16', '--base', base),
    whole: await form('-folder', '--format', 'safetensors', '--base', base),
  };
}

/** Returns a row for each case. */
async function compared(work, fail, cases) {
  const wantedOf = (exact) => exact.positions.map(({ top }) => top.map(([id]) => id));
  const apart = await adapted(
    work,
    cases.map(({ base, peft, ids }) => ({ path: base, adapter: peft, ids, count: POSITIONS })),
  );
  const together = await forward(
    work,
    cases.map(({ merged, ids }) => ({ path: merged, ids, count: POSITIONS })),
  );
  const values = await adapted(
    work,
    cases.flatMap(({ base, peft, merged, whole }) =>
      [merged, whole].map((path) => ({ path: base, adapter: peft, merged: path })),
    ),
  );
  const job = (path, exact, lora) => ({ path, lora, ids: exact.ids, wanted: wantedOf(exact) });
  const ran = await runs(
    work,
    cases.flatMap(({ base, lora, merged }, at) => [
      job(base, apart[at], lora),
      job(merged, together[at]),
    ]),
  );
  const plain = await forward(
    work,
    cases.map(({ base, ids }) => ({ path: base, ids, count: 0 })),
  );
  return cases.map(({ model, type, which }, at) => {
    const [beside, inside] = [ran[2 * at].positions, ran[2 * at + 1].positions];
    const [ours, merged] = [apart[at].positions, together[at].positions];
    const [one, two] = [
      comparePositions(type, ours, beside),
      comparePositions(type === 'q8_0' ? type : 'f16', merged, inside),
    ];
    const [off, mergedOff] = [probabilities(ours, beside), probabilities(merged, inside)];
    const name = `${model} ${type} ${which}`;
    if (type !== 'q8_0') {
      // llama.cpp rounds activations to the precision of its F16 weights, which a trained model may magnify: in this case best tokens and
      // probabilities count.
      const bests = (wrong) => wrong.filter((words) => words.includes('best token'));
      for (const words of [...(type === 'f32' ? one.wrong : bests(one.wrong)), ...bests(two.wrong)])
        fail(`${name}: ${words}`);
      if (!(off <= LARGEST_OFF && mergedOff <= LARGEST_OFF))
        fail(`${name}: probabilities off by ${off}, merged ${mergedOff}`);
    }
    const rounded = [values[2 * at], values[2 * at + 1]];
    for (const { worst, at: tensor } of rounded)
      if (!(worst <= 1)) fail(`${name}: ${tensor} is ${worst} roundings from the sum`);
    // An adapter that changes nothing would prove nothing.
    const before = plain[at].positions;
    const moved = Math.max(
      ...before.map(({ top }, position) => Math.abs(top[0][1] - ours[position].top[0][1])),
    );
    if (!(moved >= LEAST_MOVED))
      fail(`${name}: the adapter changes log-probabilities by ${moved} alone`);
    const worst = Math.max(...rounded.map(({ worst }) => worst)).toFixed(2);
    return [
      model,
      type,
      which,
      ...ranAs(one, ours),
      figure(off),
      ...ranAs(two, merged),
      figure(mergedOff),
      worst,
      figure(moved),
    ];
  });
}
