// One worker, one owner: calls that ask for the same worker or model at once, messages of the application, pauses at any moment; with the GPU process
// killed in between, and after a reload.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { siteAndBrowser } from './hooks.mjs';
import { RUN, SHAPE, TEXT, unbroken } from './scenario.mjs';

const at = siteAndBrowser();
const OPTIONS = {
  shape: SHAPE,
  text: TEXT,
  options: { ...RUN, steps: 12, autosave: false, logEvery: 1 },
};
/** Runs a scenario in a page. @param {any} page @param {string} scenario @param {object} argument */
const inside = (page, scenario, argument = OPTIONS) =>
  page.evaluate(`(async (argument) => {
    const tabtune = await import('/dist/index.js');
    const failure = (work) => work.then(() => 'nothing', (thrown) => [thrown.code, thrown.detail?.code]);
    return (${scenario})(tabtune, argument, failure);
  })(${JSON.stringify(argument)})`);

test('of two calls with one ready worker the second is refused, until the first gives it back', async () => {
  const { page, record } = await at.open('/');
  const told = await inside(
    page,
    `async (tabtune, { shape, text, options }, failure) => {
      const worker = new Worker('/dist/worker.js', { type: 'module' });
      const [first, second] = await Promise.allSettled([tabtune.newModel(shape, { text }, { worker }), tabtune.newModel(shape, { text: 'another text. ' + text }, { worker })]);
      const refused = [second.reason?.detail?.code, await failure(tabtune.inspectFiles(new Blob(['GGUF']), { worker })), await failure(tabtune.openSavedRuns({ worker }))];
      const trainer = await tabtune.Trainer.create({ model: first.value, data: { text }, ...options });
      const run = (async () => { for await (const event of trainer.run()) if (event.type === 'step' && event.step === 3) void trainer.dispose(); })();
      const ended = await failure(run);
      // At once, while the worker still ends its step.
      const next = await tabtune.newModel(shape, { text }, { worker });
      const again = await tabtune.Trainer.create({ model: next, data: { text }, ...options });
      const steps = (await again.step(2)).map(({ step }) => step);
      await again.dispose();
      worker.terminate();
      return { refused, ended, steps };
    }`,
  );
  assert.deepEqual(told, {
    refused: ['worker.taken', ['BUSY', 'worker.taken'], ['BUSY', 'worker.taken']],
    ended: ['ABORTED', 'call.aborted'],
    steps: [1, 2],
  });
  assert.deepEqual(record.errors, []);
});

test('a run keeps its owner and its losses despite foreign messages, pauses, a killed GPU and a reload', async () => {
  const { page } = await at.open('/');
  const truth = await inside(page, unbroken(12));
  await inside(
    page,
    `async (tabtune, { shape, text, options }, failure) => {
      const workers = [];
      const worker = () => (workers.push(new Worker('/dist/worker.js', { type: 'module' })), workers.at(-1));
      const model = await tabtune.newModel(shape, { text }, { worker });
      const [first, second] = await Promise.allSettled([1, 2].map((scale) => tabtune.Trainer.create({ model, data: { text }, ...options, learningRate: scale * options.learningRate })));
      const trainer = (globalThis.trainer = first.value);
      globalThis.refused = second.reason?.detail?.code;
      await trainer.step(2);
      await trainer.save();
      globalThis.losses = [];
      globalThis.run = (async () => {
        for await (const event of trainer.run()) {
          if (event.type !== 'step') continue;
          losses[event.step - 1] = event.loss;
          for (const message of ['hello', { type: 'fatal' }, { type: 'request', id: 1, tag: 'none' }, { tabtune: 'another', type: 'release' }]) workers.at(-1).postMessage(message);
          workers.at(-1).dispatchEvent(new MessageEvent('message', { data: { type: 'fatal' } }));
          // In one go, of which only the last counts.
          void trainer.pause(); void trainer.resume(); void trainer.pause(); void trainer.resume();
          if (event.step === 6) globalThis.half = true;
          // Until the GPU is killed.
          while (event.step === 6 && !globalThis.killed) await new Promise((done) => setTimeout(done, 5));
        }
      })();
      while (!globalThis.half) await new Promise((done) => setTimeout(done, 5));
    }`,
  );
  at.browser.killGpu();
  const { losses, refused, state, runId, run } = await page.evaluate(`(async () => {
    globalThis.killed = true;
    await run;
    return { losses, refused, state: trainer.state, runId: trainer.runId, run: (await trainer.inspect()).run };
  })()`);
  assert.deepEqual(losses.slice(2), truth.slice(2));
  assert.deepEqual([refused, state, run], ['model.taken', 'done', runId]);
  await page.reload();
  const later = await inside(
    page,
    `async (tabtune, { run }) => {
      const trainer = await tabtune.Trainer.resume({ run });
      const from = trainer.completedSteps;
      const losses = (await trainer.step(2)).map(({ loss }) => loss);
      await trainer.dispose();
      return { from, losses };
    }`,
    { run: runId },
  );
  assert.deepEqual(later, { from: 2, losses: truth.slice(2, 4) });
});
