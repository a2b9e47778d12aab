/** The end of a trainer, with a last save and without. */
import { describe, expect, it } from 'vitest';

import { openSavedRuns } from '../src/index.js';
import { started, fakeWorker } from '../src/testing/channel.js';
import { fake, wait } from '../src/testing/fake-calls.js';
import { collect, origin, trainerOf } from './runs.js';

const savedSteps = async (run: string): Promise<number[]> => {
  using runs = await openSavedRuns({ worker: fakeWorker });
  return (await runs.list({ run })).map(({ step }) => step);
};
const alive = (): number => started.filter(({ terminated }) => !terminated).length;

describe('a trainer that is disposed', () => {
  it('loses_its_unsaved_steps_without_save', async () => {
    const trainer = await trainerOf();
    await trainer.step(3);
    await trainer.dispose();
    expect(await savedSteps(trainer.runId)).toEqual([0]);
  });
  it('saves_unsaved_steps_also_without_autosave', async () => {
    for (const autosave of [true, false]) {
      const trainer = await trainerOf({ autosave });
      await trainer.step(3);
      await trainer.dispose({ save: true });
      expect(await savedSteps(trainer.runId)).toEqual(autosave ? [3, 0] : [3]);
      // The second end has nothing to save.
      await trainer.dispose({ save: true });
    }
  });
  it('saves_nothing_twice_and_nothing_of_a_run_that_never_began', async () => {
    const trainer = await trainerOf();
    await trainer.step(3);
    await trainer.save();
    await trainer.dispose({ save: true });
    expect(await savedSteps(trainer.runId)).toEqual([3, 0]);
    const idle = await trainerOf();
    await idle.dispose({ save: true });
    expect(await savedSteps(idle.runId)).toEqual([]);
  });
  it.each(['run', 'step'] as const)('pauses_a_%s_and_saves_its_last_step_once', async (call) => {
    fake.stepMillis = 2;
    const trainer = await trainerOf({ steps: 100_000, autosave: false });
    const going = call === 'run' ? collect(trainer.run()) : trainer.step(100_000);
    const settled = going.then(
      () => 'ended',
      (error: unknown) => Reflect.get(Object(error), 'code') as unknown,
    );
    await wait(30);
    await trainer.dispose({ save: true });
    // The steps that were made are all of `step`; the iterator of `run` was to go on.
    expect(await settled).toBe(call === 'run' ? 'ABORTED' : 'ended');
    expect(trainer.completedSteps).toBeGreaterThan(0);
    expect(await savedSteps(trainer.runId)).toEqual([trainer.completedSteps]);
  });
  it('frees_everything_if_the_save_fails', async () => {
    const before = alive();
    const trainer = await trainerOf();
    await trainer.step(3);
    origin.now.quota = 10;
    await expect(trainer.dispose({ save: true })).rejects.toMatchObject({ code: 'QUOTA_EXCEEDED' });
    expect(alive()).toBe(before);
    await expect(trainer.step()).rejects.toMatchObject({ code: 'ABORTED' });
    origin.now.quota = undefined;
    // The lock is free.
    using runs = await openSavedRuns({ worker: fakeWorker });
    await runs.remove(trainer.runId);
    expect(await runs.list({ run: trainer.runId })).toEqual([]);
  });
  it('knows_its_options', async () => {
    await using trainer = await trainerOf();
    for (const [options, path] of [
      [{ save: 1 }, 'save'],
      [{ saved: true }, 'saved'],
    ] as const)
      await expect(trainer.dispose(options as object)).rejects.toMatchObject({
        code: 'BAD_OPTION',
        detail: { path },
      });
    expect(await trainer.step()).toHaveLength(1);
  });
});
