// Runs that continue from the files of an exported state, compared with unbroken runs.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { scenarios, setting } from './scenario.mjs';

const { inPage } = scenarios();
/** @type {import('./scenario.mjs').Options} */
const CONSTANT = { lrScheduler: { type: 'constant' }, warmupSteps: 0, validationFraction: 0 };
/** @type {import('tabtune').ExportOptions[]} */
const FORMS = [
  { format: 'safetensors', optimizer: true, manifest: true },
  { format: 'json', optimizer: true, manifest: true, encoding: 'base64' },
];

/** @type {('adamw' | 'adafactor' | 'apollo' | 'sgd')[]} */
const OPTIMIZERS = ['adamw', 'adafactor', 'apollo', 'sgd'];

for (const optimizer of OPTIMIZERS)
  test(`a run with ${optimizer} continues from its exports with the bits of an unbroken one`, async () => {
    const options = { ...CONSTANT, steps: 6, optimizer: { type: optimizer } };
    const found = await inPage(
      async (s, { setting, forms }) => {
        const { shape, text, options } = setting;
        const unbroken = await s.unbroken(setting, 6);
        const trainer = await s.create(setting);
        await trainer.step(3);
        const folder = s.filesOf(await trainer.exportFiles());
        const states = [];
        for (const form of forms) states.push(s.filesOf(await trainer.exportFiles(form)));
        await trainer.dispose();
        const runs = [];
        for (const state of states) {
          const model = await s.tabtune.openModel(folder);
          const given = { ...options, model, data: { text }, state };
          const { optimizer: _, lrScheduler: __, learningRate: ___, ...rest } = given;
          const run = await s.tabtune.Trainer.create(rest);
          runs.push({ first: run.completedSteps, losses: await s.losses(run, 3) });
          await run.dispose();
        }
        const model = await s.tabtune.openModel(folder);
        const other = { ...options, model, data: { text }, state: states[0], learningRate: 0.5 };
        const refused = await s.failure(s.tabtune.Trainer.create(other));
        await model.dispose();
        return { shape, unbroken, runs, refused };
      },
      { setting: setting(options), forms: FORMS },
    );
    for (const { first, losses } of found.runs) {
      assert.equal(first, 3);
      assert.deepEqual(losses, found.unbroken.slice(3));
    }
    assert.deepEqual(
      [found.refused.code, found.refused.word],
      ['CHECKPOINT_MISMATCH', 'optim.resume-mismatch'],
    );
  });
