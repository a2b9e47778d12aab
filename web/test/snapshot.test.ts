/** The snapshot of a trainer, as a framework reads it, and its typed events. */
import { expect, it } from 'vitest';

import type { TrainerSnapshot } from '../src/index.js';
import { collect, trainerOf } from './runs.js';

it('the_snapshot_is_the_same_object_until_something_changes', async () => {
  await using trainer = await trainerOf({ steps: 4, evalEvery: 2 });
  const { subscribe } = trainer;
  const seen: TrainerSnapshot[] = [];
  const leave = subscribe(() => seen.push(trainer.snapshot));
  const before = trainer.snapshot;
  expect(trainer.snapshot).toBe(before);
  expect(before).toEqual({ state: 'ready', step: 0, totalSteps: 4 });
  await collect(trainer.run({ maxSteps: 3 }));
  const after = trainer.snapshot;
  expect(trainer.snapshot).toBe(after);
  expect(after).toMatchObject({
    state: 'paused',
    step: 3,
    lastStep: { type: 'step', step: 3 },
    lastEvaluation: { type: 'eval', step: 2 },
  });
  expect(seen.at(-1)).toBe(after);
  expect(before.step).toBe(0);
  leave();
  const { length } = seen;
  await trainer.step();
  expect(trainer.snapshot.step).toBe(4);
  expect(seen.length).toBe(length);
});

it('listeners_get_the_report_of_their_type', async () => {
  await using trainer = await trainerOf({ steps: 2 });
  const losses: number[] = [];
  const listener = {
    handleEvent: (event: { detail: { loss: number } }) => losses.push(event.detail.loss),
  };
  trainer.addEventListener('step', listener);
  trainer.addEventListener('step', ({ detail }) => losses.push(detail.loss), { once: true });
  await trainer.step(1);
  trainer.removeEventListener('step', listener);
  await trainer.step(1);
  expect(losses).toEqual([losses[0], losses[0]]);
});

it('a_subscriber_that_throws_stops_nothing', async () => {
  await using trainer = await trainerOf({ steps: 2 });
  const reported: unknown[] = [];
  const before = globalThis.reportError;
  globalThis.reportError = (thrown) => void reported.push(thrown);
  try {
    trainer.subscribe(() => {
      throw new Error('mine');
    });
    await collect(trainer.run());
  } finally {
    globalThis.reportError = before;
  }
  expect(trainer.snapshot.state).toBe('done');
  expect(reported.length).toBeGreaterThan(0);
});
