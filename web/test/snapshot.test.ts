/** The snapshot of a trainer, as a framework reads it, and its typed events. */
import { describe, expect, it, vi } from 'vitest';

import type { TrainerSnapshot } from '../src/index.js';
import { fake, wait } from '../src/testing/fake-calls.js';
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

describe('the_snapshot_says_how_a_run_ended', () => {
  const ENDLESS = { steps: 100_000, autosave: false };
  it('by_itself_and_forgets_it_when_the_next_one_begins', async () => {
    await using trainer = await trainerOf({ steps: 4 });
    expect(trainer.snapshot).not.toHaveProperty('ended');
    const seen: unknown[] = [];
    trainer.subscribe(() => seen.push(trainer.snapshot.ended));
    await collect(trainer.run({ maxSteps: 3 }));
    expect(trainer.snapshot.ended).toEqual({ reason: 'maxSteps', step: 3 });
    expect(seen.at(-1)).toBe(trainer.snapshot.ended);
    const during: unknown[] = [];
    for await (const _ of trainer.run()) during.push(trainer.snapshot.ended?.reason);
    expect(during[0]).toBeUndefined();
    expect(trainer.snapshot.ended).toEqual({ reason: 'done', step: 4 });
  });
  it('by_a_call', async () => {
    fake.stepMillis = 1;
    const trainer = await trainerOf(ENDLESS);
    const reasons: unknown[] = [];
    const ended = async (end: () => unknown): Promise<void> => {
      const run = collect(trainer.run()).catch(() => undefined);
      await wait(20);
      await end();
      await run;
      reasons.push(trainer.snapshot.ended?.reason);
    };
    await ended(() => trainer.stop());
    await ended(async () => {
      await trainer.pause();
      expect(trainer.snapshot.ended).toBeUndefined();
      await trainer.stop();
    });
    for await (const { type } of trainer.run()) if (type === 'step') break;
    reasons.push(trainer.snapshot.ended?.reason);
    await expect(collect(trainer.run({ signal: AbortSignal.timeout(20) }))).rejects.toThrow();
    const { reason, error } = trainer.snapshot.ended ?? {};
    reasons.push(reason, error?.code);
    await ended(() => trainer.dispose());
    expect(reasons).toEqual(['stopped', 'stopped', 'left', 'aborted', 'ABORTED', 'disposed']);
  });
  it('by_a_failure_also_of_a_step_or_while_nothing_runs', async () => {
    fake.loss = () => NaN;
    await using trainer = await trainerOf(ENDLESS);
    const thrown: unknown = await collect(trainer.run()).catch((error: unknown) => error);
    expect(trainer.snapshot).toMatchObject({
      state: 'failed',
      ended: { reason: 'failed', step: 0, error: { code: 'NON_FINITE' } },
    });
    expect(trainer.snapshot.ended?.error).toBe(thrown);
    await using single = await trainerOf(ENDLESS);
    await expect(single.step()).rejects.toMatchObject({ code: 'NON_FINITE' });
    expect(single.snapshot.ended).toMatchObject({ reason: 'failed' });
    fake.loss = undefined;
    await using idle = await trainerOf(ENDLESS);
    fake.onCall = ({ call, worker }) => {
      if (call === 'evaluate') worker.device?.complain('GPUValidationError', 'buffer too large');
    };
    await idle.evaluate().catch(() => undefined);
    await vi.waitFor(() =>
      expect(idle.snapshot).toMatchObject({
        state: 'failed',
        ended: { reason: 'failed', error: { code: 'SHADER_FAILED' } },
      }),
    );
  });
});
