// One worker, one owner: calls that ask for the same worker or model at once, messages of the application, pauses at any moment; with the GPU process
// killed in between, and after a reload.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { siteAndBrowser } from './hooks.mjs';
import { inside, setting } from './scenario.mjs';

const at = siteAndBrowser();
const SETTING = setting({ steps: 12, autosave: false, logEvery: 1 });

test('of two calls with one ready worker the second is refused, until the first gives it back', async () => {
  const { page, record } = await at.open('/');
  const found = await inside(
    page,
    async ({ tabtune, failure }, { shape, text, options }) => {
      const worker = new Worker('/dist/worker.js', { type: 'module' });
      const fresh = (/** @type {string} */ text) => tabtune.newModel(shape, { text }, { worker });
      const first = fresh(text);
      const second = await failure(fresh(`another text. ${text}`));
      const model = await first;
      const refused = [
        second,
        await failure(tabtune.inspectFiles(new Blob(['GGUF']), { worker })),
        await failure(tabtune.openSavedRuns({ worker })),
      ];
      const given = { data: { text }, ...options };
      const trainer = await tabtune.Trainer.create({ model, ...given });
      const ended = await failure(async () => {
        for await (const event of trainer.run())
          if (event.type === 'step' && event.step === 3) void trainer.dispose();
      });
      // At once, while the worker still ends its step.
      const again = await tabtune.Trainer.create({ model: await fresh(text), ...given });
      const steps = (await again.step(2)).map(({ step }) => step);
      await again.dispose();
      worker.terminate();
      return { refused, ended, steps };
    },
    SETTING,
  );
  const words = found.refused.map(({ code, word }) => `${code} ${word}`);
  assert.deepEqual(words, Array(3).fill('BUSY worker.taken'));
  assert.deepEqual([found.ended.code, found.ended.word], ['ABORTED', 'call.aborted']);
  assert.deepEqual(found.steps, [1, 2]);
  assert.deepEqual(record.errors, []);
});

test('a run keeps its owner and its losses despite foreign messages, pauses, a killed GPU and a reload', async () => {
  const { page } = await at.open('/');
  const truth = await inside(page, ({ unbroken }, argument) => unbroken(argument, 12), SETTING);
  await inside(
    page,
    async ({ tabtune, held, failure, pause }, { shape, text, options }) => {
      /** @type {Worker[]} */
      const workers = [];
      const worker = () => {
        workers.push(new Worker('/dist/worker.js', { type: 'module' }));
        return workers[workers.length - 1];
      };
      const model = await tabtune.newModel(shape, { text }, { worker });
      const given = { model, data: { text }, ...options };
      const first = tabtune.Trainer.create(given);
      held.refused = (await failure(tabtune.Trainer.create({ ...given, learningRate: 2 }))).word;
      const trainer = (held.trainer = await first);
      await trainer.step(2);
      await trainer.save();
      /** @type {number[]} */
      const losses = (held.losses = []);
      const drive = async () => {
        for await (const event of trainer.run()) {
          if (event.type !== 'step') continue;
          losses[event.step - 1] = event.loss;
          const last = workers[workers.length - 1];
          for (const message of [
            'hello',
            { type: 'fatal' },
            { type: 'request', id: 1, tag: 'none' },
            { tabtune: 'another', type: 'release' },
          ])
            last.postMessage(message);
          last.dispatchEvent(new MessageEvent('message', { data: { type: 'fatal' } }));
          // In one go, in which only the last counts.
          void trainer.pause();
          void trainer.resume();
          void trainer.pause();
          void trainer.resume();
          if (event.step !== 6) continue;
          held.half = true;
          while (!held.killed) await pause(5);
        }
      };
      held.run = drive();
      while (!held.half) await pause(5);
    },
    SETTING,
  );
  at.browser.killGpu();
  const { losses, refused, state, runId, run } = await inside(page, async ({ held }) => {
    held.killed = true;
    await held.run;
    const { losses, refused, trainer } = held;
    const { state, runId } = trainer;
    return { losses, refused, state, runId, run: (await trainer.info()).run };
  });
  assert.deepEqual(losses.slice(2), truth.slice(2));
  assert.deepEqual([refused, state, run], ['model.taken', 'done', runId]);
  await page.reload();
  const later = await inside(
    page,
    async ({ tabtune, losses }, run) => {
      const trainer = await tabtune.Trainer.resume({ run });
      const from = trainer.completedSteps;
      const found = await losses(trainer, 2);
      await trainer.dispose();
      return { from, losses: found };
    },
    runId,
  );
  assert.deepEqual(later, { from: 2, losses: truth.slice(2, 4) });
});
