// An adapter on a real model in Chromium: its learning in a few steps, its memory, and its waiting times.
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Arena } from '../arena.mjs';
import { installPython, installSmollm, smollm } from '../consumers/install.mjs';
import { asset } from './assets.mjs';

const ADAPTER = { r: 8, alpha: 16, targetModules: 'all-linear' };
const OPTIONS = {
  steps: 20,
  batchSize: 1,
  seqLen: 64,
  learningRate: 2e-4,
  seed: 5,
  validationFraction: 0.02,
  adapter: ADAPTER,
};
const WINDOWS = 10;
/** Minimum decrease of the held-out loss in nats. */
const LEARNT = 0.05;
/** Bytes per trained value: the value itself, its gradient, two moments. */
const EACH = 16;
/** Shares by which bytes in use may exceed the plan, and the base on the GPU its file. */
const [ABOVE, BASE] = [0.1, 0.02];
const MIB = 2 ** 20;
export const WASM = 96 * MIB;
export const mb = (bytes) => (bytes / 1e6).toFixed(1);

/** Runs `work` of `in-browser/lora.mjs` in a page that has the model at this path. */
export function inTab(arena, path, work, setting) {
  return arena.with(async (subject) => {
    await subject.do(async () => (await import('/torture/lora.mjs')).field());
    await subject.page.setInputFiles('#model', path);
    return subject.do(
      async (_, { work, setting }) => (await import('/torture/lora.mjs'))[work](setting),
      { work, setting },
    );
  });
}

async function row(arena, name, path, fail) {
  const setting = {
    text: readFileSync(asset('text', 'pride_and_prejudice.txt'), 'utf8'),
    options: OPTIONS,
    windows: WINDOWS,
  };
  const { open, create, step: early } = await inTab(arena, path, 'first', setting);
  const found = await inTab(arena, path, 'whole', setting);
  const { planned, before, after, step, inUse, wasm, base, trained, now, most } = found;
  const size = statSync(path).size;
  const bound = (1 + ABOVE) * (size + EACH * trained + planned.parts.activations);
  const wrong = {
    [`${mb(inUse)} MB in use, allowed ${mb(bound)}`]: inUse > bound,
    [`${base} bytes of the base on the GPU, ${size} in its file`]: Math.abs(base / size - 1) > BASE,
    [`wasm memory grew by ${(wasm / MIB).toFixed(1)} MiB`]: wasm > WASM,
    [`the held-out loss went from ${before} to ${after}`]: !(before - after >= LEARNT),
  };
  for (const [words, is] of Object.entries(wrong)) if (is) fail(`${name}: ${words}`);
  const seconds = (open + create + early).toFixed(1);
  const cells = [
    name,
    mb(size),
    mb(base),
    mb(inUse),
    mb(bound),
    mb(planned.needBytes),
    mb(most),
    mb(now),
    (wasm / MIB).toFixed(1),
    before.toFixed(4),
    after.toFixed(4),
    seconds,
    step.toFixed(1),
  ];
  // The next case takes minutes.
  console.log(cells.join(' | '));
  return cells;
}

/** Tests SmolLM2-135M with its published Q4_1 file as base, and with our own Q8_0 conversion of it. */
export async function browser({ tabtune, work, fail }) {
  await installPython();
  await installSmollm();
  const q8 = join(work, 'smollm-q8_0.gguf');
  await tabtune.convert(smollm, q8, '--format', 'gguf', '--type', 'q8_0', '--requantise');
  const arena = await Arena.start();
  try {
    const rows = [await row(arena, 'Q4_1', smollm, fail), await row(arena, 'Q8_0', q8, fail)];
    const { browser, adapter } = await arena.machine();
    return {
      title: 'SmolLM2-135M in a tab',
      words: `SmolLM2-135M-Instruct in Chromium ${browser} on ${adapter}, all 30 layers, LoRA r ${ADAPTER.r} on every matrix, T = ${OPTIONS.seqLen}, B = 1, rate ${OPTIONS.learningRate}, ${OPTIONS.steps} steps on Pride and Prejudice;
the Q8_0 form is what \`tabtune convert\` made of the Q4_1 file. MB on the GPU: of the base; in use at most in a step, where file, ${EACH} bytes a trained value and planned activations are
allowed, and a tenth more; planned of all; of all buffers, at most in the run and at its end. MiB by which wasm memory grew (allowed ${WASM / MIB}). Loss of ${WINDOWS} held-out windows before and
after, in nats (falls by at least ${LEARNT}). Seconds until the first step is done, opening included, and of each later step.`,
      columns: [
        'base',
        'file',
        'base on the GPU',
        'in use',
        'allowed',
        'planned',
        'buffers at most',
        'at the end',
        'wasm',
        'loss before',
        'loss after',
        'first step',
        'step',
      ],
      rows,
    };
  } finally {
    await arena.end();
  }
}
