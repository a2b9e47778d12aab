// node tests/bench/adapter.mjs [STEPS]: steps of an adapter of rank 16 in Chromium, on each type of packed base and, alternating with it, on the same
// weights in f32. It measures the build that TABTUNE_DIST names, dist by default. `tabtune-dev bench adapter` is the native equivalent.
import { inModule } from '../browser/chromium.mjs';
import { Arena } from '../torture/arena.mjs';

const TYPES = ['f16', 'q8_0', 'q4_0', 'q4_1', 'q5_0', 'q5_1', 'q4_k', 'q6_k'];
const steps = Number(process.argv[2] ?? 5);
/** Rows of whole blocks of 256. */
const shape = {
  hiddenSize: 256,
  numHiddenLayers: 3,
  numAttentionHeads: 8,
  numKeyValueHeads: 4,
  intermediateSize: 768,
  maxPositionEmbeddings: 256,
};
const text =
  'It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife. Why not? '.repeat(
    40,
  );
const options = {
  steps: 1000,
  batchSize: 1,
  seqLen: 256,
  learningRate: 2e-4,
  autosave: false,
  adapter: { r: 16, alpha: 32, targetModules: 'all-linear' },
};

/** Runs in the page: returns milliseconds of each step by storage, and the losses. @param {typeof import('../torture/in-browser/adapters.mjs')} a */
async function measured({ s, ...a }, { setting, steps }) {
  const file = await a.base(setting);
  const runs = [];
  for (const baseStorage of ['stored', 'f32']) {
    const model = await s.tabtune.openModel(file, { worker: s.workers() });
    const trainer = await s.tabtune.Trainer.create({
      model,
      data: { text: setting.text },
      ...setting.options,
      baseStorage,
    });
    runs.push({ trainer, ms: /** @type {number[]} */ ([]), losses: /** @type {number[]} */ ([]) });
  }
  for (let taken = 0; taken < steps + 2; taken++) {
    for (const { trainer, ms, losses } of runs) {
      const started = performance.now();
      losses.push((await trainer.step())[0].loss);
      // The first two compile pipelines and fill pools.
      if (taken > 1) ms.push(performance.now() - started);
    }
  }
  for (const { trainer } of runs) await trainer.dispose();
  return runs.map(({ ms, losses }) => ({ ms, losses }));
}

const middle = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
const arena = await Arena.start();
try {
  console.log('| storage | step, ms | next to f32, ms | ratio | losses |\n|---|---|---|---|---|');
  for (const type of TYPES) {
    const ask = { setting: { shape, text, type, options }, steps };
    const [stored, wide] = await arena.with(({ page }) =>
      inModule(page, '/torture/adapters.mjs', measured, ask),
    );
    const [packed, f32] = [middle(stored.ms), middle(wide.ms)];
    const same = JSON.stringify(stored.losses) === JSON.stringify(wide.losses) ? 'equal' : 'OTHER';
    console.log(
      `| ${type} | ${packed.toFixed(0)} | ${f32.toFixed(0)} | ${(packed / f32).toFixed(2)} | ${same} |`,
    );
  }
} finally {
  await arena.end();
}
