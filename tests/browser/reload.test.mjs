// A run outlives its page: after a reload an adapter continues bit for bit, without being given a file again.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { inside, scenarios } from './scenario.mjs';

const { at } = scenarios({ folders: { '/golden/': 'tests/golden/models' } });

const STEPS = 12;
const OPTIONS = {
  ...{ steps: STEPS, batchSize: 2, seqLen: 8, learningRate: 1e-2, seed: 7, logEvery: 1 },
  // Only the pause saves, so that the last save is the one that is awaited.
  saveEverySecs: 0,
  adapter: { r: 2, targetModules: 'all-linear', dropout: 0.1 },
};

/**
 * Trains in the page from files of this kind until at least `count` steps are made and saved; returns the losses up to the last of these.
 * @param {import('./scenario.mjs').Helpers} s
 * @param {{ files: string[], kind: string, options: typeof OPTIONS, count: number }} asked
 */
async function train({ tabtune }, { files, kind, options, count }) {
  const urls = files.map((name) => new URL(`/golden/${name}`, location.href));
  const named = async (url) =>
    new File([await (await fetch(url)).blob()], url.pathname.split('/').at(-1));
  const model = await tabtune.openModel(
    kind === 'address' ? urls : await Promise.all(urls.map(named)),
  );
  const tokens = Uint32Array.from({ length: 400 }, (_, at) => (at * at) % 11);
  const trainer = await tabtune.Trainer.create({ model, data: { tokens }, ...options });
  const losses = [];
  trainer.addEventListener('step', ({ detail }) => losses.push(detail.loss));
  const saved = new Promise((resolve) =>
    trainer.addEventListener('checkpoint', ({ detail }) => detail.step >= count && resolve(0)),
  );
  // Leaving the loop pauses the run after the steps that are in flight, and saves them.
  for await (const { type, step } of trainer.run()) if (type === 'step' && step === count) break;
  await saved;
  return { run: trainer.runId, losses };
}

/** Resumes the run with nothing but its name. @param {import('./scenario.mjs').Helpers} s @param {string} run */
async function resume({ tabtune }, run) {
  const runs = await tabtune.openSavedRuns();
  const [saved] = (await runs.runs()).filter((each) => each.run === run);
  runs.dispose();
  const trainer = await tabtune.Trainer.resume({ run });
  const losses = [];
  for await (const event of trainer.run()) if (event.type === 'step') losses.push(event.loss);
  const { ended } = trainer.snapshot;
  await trainer.dispose();
  return { losses, ended, step: saved?.newest?.step, needsBase: saved?.needsBase };
}

/** @type {[name: string, files: string[], kind: string][]} */
const BASES = [
  ['the files of a folder', ['llama3/config.json', 'llama3/model.safetensors'], 'file'],
  ['an address', ['llama3.gguf'], 'address'],
];
for (const [name, files, kind] of BASES) {
  test(`an adapter on ${name} continues after a reload without being given its base`, async () => {
    const asked = { files, kind, options: OPTIONS };
    const { page, record } = await at.open('/');
    const whole = await inside(page, train, { ...asked, count: STEPS });
    const first = await inside(page, train, { ...asked, count: 3 });
    await page.reload();
    const second = await inside(page, resume, first.run);
    await page.close();
    // A request for the beginning of a file is called off where the server sends all of it.
    const errors = record.errors.filter(
      (error) => !/net::ERR_ABORTED|NS_BASE_STREAM_CLOSED/.test(error),
    );
    assert.deepEqual(errors, []);
    assert.equal(whole.losses.length, STEPS);
    assert.equal(second.step, first.losses.length);
    assert.ok(second.losses.length > 0, `${second.step} steps before the reload`);
    assert.deepEqual([...first.losses, ...second.losses], whole.losses);
    assert.deepEqual(second.ended, { reason: 'done', step: STEPS });
    assert.equal(second.needsBase, false);
  });
}
