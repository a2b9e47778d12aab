// A browser that allows not a byte more: what is stored can be deleted, tokens go to memory, and a run continues with a warning.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { create, RUN, scenarios, SHAPE, TEXT } from './scenario.mjs';

const { inPage, restart } = scenarios();
const OPTIONS = { shape: SHAPE, text: TEXT, options: RUN };
/** Leaves the site this room in bytes. Chromium remembers for half a minute what there was, so it is restarted first. */
async function inFullPage(scenario, argument, quotaSize = 1) {
  await restart();
  return inPage(scenario, argument, (devtools, origin) =>
    devtools.send('Storage.overrideQuotaForOrigin', { origin: `${origin}/`, quotaSize }),
  );
}

test('checkpoints and runs can be deleted without room for a byte', async () => {
  const runId = await inPage(
    `async (tabtune, argument) => {
      const trainer = await (${create})(tabtune, argument);
      const { runId } = trainer;
      for (let at = 0; at < 3; at++) {
        await trainer.step(1);
        await trainer.save();
      }
      await trainer.dispose();
      return runId;
    }`,
    OPTIONS,
  );
  const found = await inFullPage(
    `async (tabtune, run) => {
      const left = {};
      const runs = await tabtune.openSavedRuns();
      left.before = (await runs.list(run)).map(({ generation }) => generation);
      left.refused = await runs.fork(run).catch((thrown) => thrown.code);
      const [newest, , oldest] = left.before;
      await runs.remove(run, newest);
      left.newest = (await runs.list(run)).length;
      const trainer = await tabtune.Trainer.resume({ run });
      left.step = trainer.completedSteps;
      await trainer.checkpoints.remove(oldest);
      left.oldest = (await runs.list(run)).length;
      await trainer.dispose();
      await runs.remove(run);
      left.run = (await runs.list()).length;
      runs.dispose();
      return left;
    }`,
    runId,
  );
  assert.equal(found.before.length >= 3, true);
  const left = found.before.length;
  assert.deepEqual(found, {
    before: found.before,
    refused: 'QUOTA_EXCEEDED',
    newest: left - 1,
    step: 2,
    oldest: left - 2,
    run: 0,
  });
});

/** With TABTUNE_FULL=1, since its text takes ten seconds; storage-room.test.ts shows the same with a small one. */
test('a run without room for a file of tokens keeps the rest of them in memory', async () => {
  test.skip(process.env.TABTUNE_FULL === undefined, 'runs with TABTUNE_FULL=1');
  // More than 8 MiB of text, whose tokens take four times as much.
  const scenario = `async (tabtune, { shape, text, options }) => {
    const model = await tabtune.newModel(shape, { text });
    const data = { text: text.slice(0, 117).repeat(73_000) };
    const trainer = await tabtune.Trainer.create({ model, data, ...options, keepData: false, autosave: false });
    const losses = (await trainer.step(2)).map(({ loss }) => loss);
    await trainer.dispose();
    return losses;
  }`;
  const roomy = await inPage(scenario, OPTIONS);
  assert.deepEqual(await inFullPage(scenario, OPTIONS, 4_000_000), roomy);
});
