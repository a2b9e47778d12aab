/** Times at which a run is saved without being asked: by steps, by time and size, at a pause, at a stop. */
import { describe, expect, it, vi } from 'vitest';

import type { Trainer } from '../src/index.js';
import { SaveClock } from '../src/worker/autosave.js';
import { fake } from '../src/testing/fake-calls.js';
import { collect, trainerOf } from './runs.js';

type Driver = ConstructorParameters<typeof SaveClock>[0];
const MIB = 1 << 20;

describe('the clock', () => {
  let now = 0;
  const clockOf = (driver: Partial<Driver>, savedStep?: number): SaveClock => {
    now = 0;
    return new SaveClock({ autosave: true, saveEvery: 0, ...driver }, savedStep, () => now);
  };
  it('saves_at_the_chosen_steps_and_times', () => {
    const clock = clockOf({ saveEvery: 5, saveEverySecs: 120 }, 0);
    now = 119_999;
    expect([clock.due(3), clock.due(5)]).toEqual([false, true]);
    now = 120_000;
    expect([clock.due(3), clock.due(0)]).toEqual([true, false]);
    clock.savedStep = 3;
    clock.tried(20_000);
    now += 120_000;
    // Ten times the last save's duration must pass first.
    expect(clock.due(4)).toBe(false);
    now += 80_000;
    expect(clock.due(4)).toBe(true);
    expect(clockOf({ autosave: false }).due((now = 1e9))).toBe(false);
    expect(clockOf({ saveEverySecs: 0 }, 0).due((now = 1e9))).toBe(false);
  });
  it.each([
    [1 * MIB, 10],
    [40 * MIB, 10],
    [80 * MIB, 20],
    [4096 * MIB, 120],
    [undefined, 120],
  ])('saves_a_generation_of_%s_bytes_every_%i_s_if_nothing_is_chosen', (bytes, secs) => {
    const clock = clockOf({}, 0);
    if (bytes !== undefined) clock.bytes = bytes;
    now = secs * 1000 - 1;
    expect(clock.due(1)).toBe(false);
    now += 1;
    expect(clock.due(1)).toBe(true);
    // The caller's choice is not changed.
    const chosen = clockOf({ saveEverySecs: 60 }, 0);
    chosen.bytes = 1;
    now = 59_999;
    expect(chosen.due(1)).toBe(false);
  });
  it('saves_a_small_generation_that_takes_long_at_most_a_tenth_of_the_time', () => {
    const clock = clockOf({}, 0);
    clock.bytes = MIB;
    clock.tried(2000);
    now = 19_999;
    expect([clock.due(1), clock.dueHidden(1)]).toEqual([false, false]);
    now = 20_000;
    expect([clock.due(1), clock.dueHidden(1)]).toEqual([true, true]);
  });
  it('saves_at_once_when_steps_end_if_that_is_quick', () => {
    const clock = clockOf({}, 3);
    expect([clock.dueHidden(3), clock.dueHidden(4)]).toEqual([false, true]);
    clock.tried(10);
    expect(clock.dueHidden(4)).toBe(false);
    now += 100;
    expect(clock.dueHidden(4)).toBe(true);
    clock.tried(20_000);
    now += 29_999;
    expect(clock.dueHidden(4)).toBe(false);
    now += 1;
    expect(clock.dueHidden(4)).toBe(true);
    // A run that was never saved need not have begun.
    expect(clockOf({}).dueHidden(0)).toBe(false);
    expect(clockOf({ autosave: false }, 0).dueHidden((now = 1e9))).toBe(false);
  });
});

describe('steps that are not saved', () => {
  const saved = async (trainer: Trainer): Promise<number[]> =>
    (await trainer.checkpoints.list()).map(({ step }) => step);

  it('are_saved_when_a_part_of_the_run_ends_if_that_is_due_and_not_again_by_a_stop', async () => {
    const due = vi.spyOn(SaveClock.prototype, 'dueHidden').mockReturnValue(false);
    await using trainer = await trainerOf({ steps: 100 });
    await collect(trainer.run({ maxSteps: 3 }));
    await vi.waitFor(() => expect(due).toHaveBeenCalledWith(3));
    expect(await saved(trainer)).toEqual([0]);
    due.mockReturnValue(true);
    await collect(trainer.run({ maxSteps: 2 }));
    await vi.waitFor(async () => expect(await saved(trainer)).toEqual([5, 0]));
    await trainer.stop();
    expect(await saved(trainer)).toEqual([5, 0]);
    due.mockRestore();
  });
  it('are_saved_by_a_pause_and_by_leaving_the_loop', async () => {
    fake.stepMillis = 5;
    await using trainer = await trainerOf({ steps: 1000 });
    const run = collect(trainer.run());
    await vi.waitFor(() => expect(trainer.completedSteps).toBeGreaterThan(2));
    await trainer.pause();
    const paused = trainer.completedSteps;
    await vi.waitFor(async () => expect(await saved(trainer)).toContain(paused));
    await trainer.stop();
    await run;
    for await (const { type, step } of trainer.run())
      if (type === 'step' && step > paused + 2) break;
    const left = trainer.completedSteps;
    await vi.waitFor(async () => expect(await saved(trainer)).toContain(left));
  });
  it('are_left_unsaved_without_autosave_and_by_single_steps', async () => {
    await using off = await trainerOf({ autosave: false });
    await collect(off.run({ maxSteps: 3 }));
    await using single = await trainerOf();
    await single.step(3);
    for (const trainer of [off, single]) await trainer.info();
    expect([await saved(off), await saved(single)]).toEqual([[], [0]]);
    await single.stop();
    expect(await saved(single)).toEqual([3, 0]);
  });
  it('include_a_change_by_hand_after_the_last_save', async () => {
    await using trainer = await trainerOf();
    await trainer.step(2);
    const { generation } = await trainer.save();
    expect((await trainer.save()).generation).toBe(generation);
    await trainer.setLearningRate(5e-4);
    expect((await trainer.save()).generation).toBe(generation + 1);
    await trainer.checkpoints.load();
    expect((await trainer.step())[0]?.learningRate).toBe(5e-4);
  });
});
