// trainer.profile in a real browser: the time of every kernel of a step, by its name; a run that is unaffected by being timed; and pauses.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { stems } from '../../shaders/stems.mjs';
import { scenarios, setting } from './scenario.mjs';

const { inPage } = scenarios();

test('profile lists every launch of a step with its time and changes no bit', async () => {
  const { whole, profile, completed, timed } = await inPage(
    async ({ create, unbroken }, argument) => {
      const whole = await unbroken(argument, 4);
      const trainer = await create(argument);
      /** @type {number[]} */
      const timed = [];
      trainer.addEventListener('step', (/** @type {any} */ { detail }) => timed.push(detail.loss));
      await trainer.step(1);
      const profile = await trainer.profile(2);
      const completed = trainer.completedSteps;
      await trainer.step(1);
      await trainer.dispose();
      return { whole, profile, completed, timed };
    },
    setting(),
  );
  assert.deepEqual(timed, whole);
  assert.deepEqual([profile.steps, profile.timing, completed], [2, 'device', 3]);
  const ours = profile.kernels.filter(({ kernel }) => !kernel.startsWith('Burn: '));
  assert.deepEqual(
    ours.map(({ kernel }) => kernel).filter((kernel) => !stems.has(kernel)),
    [],
  );
  assert.equal(
    ours.reduce((sum, { launches }) => sum + launches, 0),
    profile.dispatches,
  );
  // The table of letters, 9 of each of 2 layers, the last norm; and two micro-batches per step.
  const launches = (name) => ours.find(({ kernel }) => kernel === name)?.launches;
  assert.deepEqual(
    [launches('adamw_wide'), launches('swiglu_forward_wide'), launches('loss_sum')],
    [20, 4, 2],
  );
  // Chromium rounds timestamps to 0.1 ms: a small kernel may show none, the step cannot.
  const ms = profile.kernels.reduce((sum, row) => sum + row.ms, 0);
  assert.ok(ms > 1 && Math.abs(ms - profile.ms) < 1e-6, `${ms} ms of ${profile.ms}`);
  assert.ok(profile.kernels[0].ms > 0 && profile.kernels.every((row) => row.ms >= 0));
  assert.ok(Math.abs(profile.kernels.reduce((sum, row) => sum + row.share, 0) - 1) < 1e-9);
  console.log(
    `profile: ${profile.ms.toFixed(1)} ms a step, ${profile.unmeasured} launches without a time, slowest ${JSON.stringify(profile.kernels.slice(0, 3))}`,
  );
});

test('a run whose reports are read eight at a time pauses, and stops, within three steps', async () => {
  const begun = await inPage(
    async ({ create, pause }, argument) => {
      const trainer = await create(argument);
      const begun = async () => (await trainer.info()).completedSteps;
      const drive = async () => {
        for await (const event of trainer.run()) void event;
      };
      const run = drive();
      /** Steps that begin after the call. @param {number} steps @param {() => Promise<unknown>} call */
      const after = async (steps, call) => {
        while ((await begun()) < steps) await pause(5);
        const before = await begun();
        await call();
        return (await begun()) - before;
      };
      const counts = [await after(20, () => trainer.pause())];
      await trainer.resume();
      counts.push(await after(40, () => trainer.stop()));
      await run;
      await trainer.dispose();
      return counts;
    },
    setting({ steps: 1000, gradientAccumulationSteps: 1, reportEvery: 8 }),
  );
  assert.ok(
    begun.every((steps) => steps >= 0 && steps <= 3),
    begun.join(),
  );
});
