// The settings files of recipes/ as a page gives them, each with fewer and shorter steps on a small model.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { root } from '../../web/toolchain.mjs';
import { SHAPE, TEXT, scenarios } from './scenario.mjs';

const { inPage } = scenarios();
const folder = join(root, 'recipes');
const recipes = Object.fromEntries(
  readdirSync(folder).map((name) => [name, JSON.parse(readFileSync(join(folder, name), 'utf8'))]),
);
/** Annealing after three of four steps. */
const INFINITE = { cooldownSteps: 1, annealingStartStep: 3, annealingSteps: 1 };
const SHORT = { seqLen: 16, batchSize: 2, gradientAccumulationSteps: 1, warmupSteps: 1 };

test('recipes train a new model, the model of a file, and an adapter on a packed base', async () => {
  const found = await inPage(
    async ({ tabtune }, { recipes, shape, text, short, infinite }) => {
      /** @type {Blob | undefined} */
      let packed;
      /** @type {Record<string, { config: any, rates: number[], losses: number[] }>} */
      const runs = {};
      for (const [name, settings] of Object.entries(recipes)) {
        const model = packed
          ? await tabtune.openModel([new File([packed], 'model.gguf')])
          : await tabtune.newModel(shape, { text });
        const length = settings.steps ? { steps: 4 } : { epochs: 0.05 };
        const lrScheduler = { type: settings.schedule.type, ...infinite };
        const schedule = lrScheduler.type === 'infinite' ? { lrScheduler } : {};
        const options = { ...short, ...length, ...schedule, settings };
        const trainer = await tabtune.Trainer.create({ model, data: { text }, ...options });
        const steps = [];
        for await (const event of trainer.run()) if (event.type === 'step') steps.push(event);
        const { config } = await trainer.info();
        packed ??= await trainer.export({ format: 'gguf', type: 'q8_0' });
        await trainer.dispose();
        const rates = steps.map(({ learningRate }) => learningRate);
        runs[name] = { config, rates, losses: steps.map(({ loss }) => loss) };
      }
      return runs;
    },
    { recipes, shape: SHAPE, text: TEXT, short: SHORT, infinite: INFINITE },
  );
  assert.equal(Object.keys(found).length, 4);
  for (const { losses } of Object.values(found))
    assert.ok(losses.length >= 3 && losses.every(Number.isFinite), losses.join());
  const of = (/** @type {string} */ name) => found[name] ?? assert.fail(name);
  const whole = of('whole-bf16-adafactor.json').config;
  assert.deepEqual([whole.precision, whole.optimizer.type], ['bf16', 'adafactor']);
  assert.equal(of('lora-packed-base.json').config.adapter.r, 16);
  assert.equal(of('from-scratch.json').config.optimizer.beta2, 0.99);
  assert.deepEqual(of('infinite-annealing.json').rates, [0, 1e-3, 5e-4, 5e-4]);
});
