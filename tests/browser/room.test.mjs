// A browser that allows not a byte more: what is stored can be deleted, tokens go to memory, and a run continues with a warning.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { scenarios, setting } from './scenario.mjs';

const { inPage, restart } = scenarios();
/**
 * Leaves the site this room in bytes. Chromium remembers for half a minute what there was, so it is restarted first.
 * @template A, R
 * @param {(s: import('./scenario.mjs').Helpers, argument: A) => R} work @param {A} argument
 */
async function inFullPage(work, argument, quotaSize = 1) {
  await restart();
  return inPage(work, argument, (devtools, origin) =>
    devtools.send('Storage.overrideQuotaForOrigin', { origin: `${origin}/`, quotaSize }),
  );
}

test('checkpoints and runs can be deleted without room for a byte', async () => {
  const run = await inPage(async ({ create }, argument) => {
    const trainer = await create(argument);
    for (let at = 0; at < 3; at++) {
      await trainer.step(1);
      await trainer.save();
    }
    await trainer.dispose();
    return trainer.runId;
  }, setting());
  const found = await inFullPage(async ({ tabtune, failure }, run) => {
    const runs = await tabtune.openSavedRuns();
    const left = async () => (await runs.list({ run })).length;
    const before = (await runs.list({ run })).map(({ generation }) => generation);
    const refused = (await failure(runs.fork(run))).code;
    await runs.remove(run, { generation: before[0] });
    const newest = await left();
    const trainer = await tabtune.Trainer.resume({ run });
    const step = trainer.completedSteps;
    await trainer.checkpoints.remove({ generation: before[2] });
    const oldest = await left();
    await trainer.dispose();
    await runs.remove(run);
    const all = (await runs.list()).length;
    await runs.dispose();
    return { before, refused, newest, step, oldest, run: all };
  }, run);
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
  /** @param {import('./scenario.mjs').Helpers} s @param {import('./scenario.mjs').Setting} argument */
  const scenario = async ({ tabtune, losses }, { shape, text, options }) => {
    const model = await tabtune.newModel(shape, { text });
    // More than 8 MiB of text, whose tokens take four times as much.
    const data = { text: text.slice(0, 117).repeat(73_000) };
    const trainer = await tabtune.Trainer.create({ model, data, ...options });
    const found = await losses(trainer, 2);
    await trainer.dispose();
    return found;
  };
  const argument = setting({ keepData: false, autosave: false });
  const roomy = await inPage(scenario, argument);
  assert.deepEqual(await inFullPage(scenario, argument, 4_000_000), roomy);
});
