/** Tests the time that the demo says is left: what was measured counts, and what was not makes it a minimum. */
import { expect, it } from 'vitest';

import type { TrainerEvent } from '../src/index.js';
import { TimeLeft } from '../demo/time-left.js';

const rest = { epoch: 0, loss: 2, gradNorm: 1, learningRate: 0, tokens: 8 };
const step = (at: number, secs: number): TrainerEvent => ({
  type: 'step',
  step: at,
  secs,
  ...rest,
});
const evaluated: TrainerEvent = {
  type: 'eval',
  step: 2,
  loss: 2,
  perplexity: 7,
  tokens: 8,
  accuracy: 0.5,
};
const sample: TrainerEvent = { type: 'sample', step: 2, prompt: 'It ', text: 'is', end: 'length' };
const saved = (at: number, secs: number): TrainerEvent => ({
  type: 'checkpoint',
  step: at,
  generation: 1,
  bytes: 9,
  secs,
});

/** The time left of a run after events, each with the seconds that pass before it; `after` pass in the end. */
function leftAfter(
  total: number,
  intervals: { evalEvery: number; sampleEvery: number },
  events: [number, TrainerEvent][],
  after = 0,
): ReturnType<TimeLeft['left']> {
  let now = 0;
  const time = new TimeLeft(total, { ...intervals, saveEvery: 0 }, () => now);
  for (const [secs, event] of events) {
    now += 1000 * secs;
    time.follow(event);
  }
  now += 1000 * after;
  return time.left();
}

const none = { evalEvery: 0, sampleEvery: 0 };
const both = { evalEvery: 2, sampleEvery: 2 };

it('nothing_is_said_before_two_steps_because_the_first_one_compiles', () => {
  expect(leftAfter(10, none, [[60, step(1, 60)]])).toBeUndefined();
  const two: [number, TrainerEvent][] = [
    [60, step(1, 60)],
    [2, step(2, 2)],
  ];
  expect(leftAfter(10, none, two)).toEqual({ secs: 16, whole: false });
});

it('evaluations_samples_and_the_last_save_count_once_they_were_measured', () => {
  const events: [number, TrainerEvent][] = [
    [1, saved(0, 3)],
    [60, step(1, 60)],
    [2, step(2, 2)],
    [5, evaluated],
    [20, sample],
  ];
  // 2 steps of 2 s, an evaluation of 5 s, a sample of 20 s, a save of 3 s.
  expect(leftAfter(4, both, events)).toEqual({ secs: 4 + 5 + 20 + 3, whole: true });
  expect(leftAfter(4, both, events.slice(0, -1))).toEqual({ secs: 4 + 5 + 3, whole: false });
});

it('after_the_last_step_the_rest_remains_and_becomes_less_while_it_is_done', () => {
  const events: [number, TrainerEvent][] = [
    [1, saved(0, 3)],
    [60, step(1, 60)],
    [2, step(2, 2)],
    [5, evaluated],
    [20, sample],
    [2, step(3, 2)],
    [2, step(4, 2)],
  ];
  expect(leftAfter(4, both, events, 1)).toEqual({ secs: 5 + 20 + 3 - 1, whole: true });
  expect(leftAfter(4, both, [...events, [5, evaluated]], 15)?.secs).toBeCloseTo(20 + 3 - 15);
  // One that takes longer than the others is no time that is owed.
  expect(leftAfter(4, both, [...events, [5, evaluated]], 90)?.secs).toBeCloseTo(3);
});

it('saves_between_steps_come_as_often_as_so_far', () => {
  const events: [number, TrainerEvent][] = [
    [1, step(1, 1)],
    [1, step(2, 1)],
    [3, saved(2, 3)],
  ];
  expect(leftAfter(6, none, events)).toEqual({ secs: 4 + 3 * (1 + 4 / 2), whole: true });
});
