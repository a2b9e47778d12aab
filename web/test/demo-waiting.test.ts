/** Tests the line that the demo shows while a run evaluates or writes a sample, which may take minutes. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';

import type { TrainerEvent } from '../src/index.js';
import { intervalsOf, Waiting } from '../demo/waiting.js';

beforeEach(() => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => vi.useRealTimers());

const step = (at: number): TrainerEvent => ({
  type: 'step',
  step: at,
  epoch: 0,
  loss: 2,
  gradNorm: 1,
  learningRate: 0,
  tokens: 8,
  secs: 1,
});
const sample = { type: 'sample', step: 4, prompt: 'It ', text: 'is', end: 'length' } as const;
const evaluated = {
  type: 'eval',
  step: 4,
  loss: 2,
  perplexity: 7,
  tokens: 8,
  accuracy: 0.5,
  batches: 1,
} as const;
const warned = (code: string): TrainerEvent => ({ type: 'warning', step: 4, code, message: '' });

/** The texts that are shown after each event, a while later. */
function shownAfter(
  events: TrainerEvent[],
  intervals = { evalEvery: 0, sampleEvery: 4 },
  total = 0,
): string[] {
  let shown = '';
  const waiting = new Waiting((words, elapsed) => (shown = `${words} ${elapsed}`.trim()));
  Object.assign(waiting, { total, saved: true, intervals: { ...intervals, saveEvery: 0 } });
  return events.map((event) => {
    waiting.follow(event);
    vi.advanceTimersByTime(2600);
    return shown;
  });
}

it('shows_that_a_sample_is_written_and_for_how_long_and_that_a_step_is_slow', () => {
  expect(shownAfter([step(3), step(4), sample, step(5)])).toEqual([
    'Step 4 … 2 s',
    'Writing a sample after step 4 … 3 s',
    'Step 5 … 2 s',
    'Step 6 … 2 s',
  ]);
});

it('shows_an_evaluation_and_then_the_sample_of_the_same_step', () => {
  const both = { evalEvery: 2, sampleEvery: 4 };
  const [evaluating, writing, next] = [
    'Evaluating the model after step 4 … 3 s',
    'Writing a sample after step 4 … 3 s',
    'Step 5 … 2 s',
  ];
  expect(shownAfter([step(4), evaluated, sample], both)).toEqual([evaluating, writing, next]);
  expect(shownAfter([step(4), warned('run.evaluation'), warned('run.sample')], both)).toEqual([
    evaluating,
    writing,
    next,
  ]);
});

it('shows_nothing_for_work_that_is_over_at_once_and_nothing_after_the_run', () => {
  let shown = '';
  const waiting = new Waiting((words) => (shown = words));
  waiting.intervals = { evalEvery: 0, sampleEvery: 4, saveEvery: 0 };
  waiting.follow(step(4));
  vi.advanceTimersByTime(400);
  expect(shown).toBe('');
  waiting.follow({ type: 'state', state: 'done', step: 4 });
  vi.advanceTimersByTime(5000);
  expect(shown).toBe('');
});

const saved = { type: 'checkpoint', step: 4, generation: 1, bytes: 9, secs: 1 } as const;
const running = { type: 'state', state: 'running', step: 0 } as const;

it('keeps_showing_the_sample_while_a_checkpoint_is_saved', () => {
  expect(shownAfter([step(4), saved, warned('storage.quota')])).toEqual(
    [3, 5, 8].map((secs) => `Writing a sample after step 4 … ${secs} s`),
  );
});

it('shows_that_the_first_step_compiles_kernels_and_the_next_ones_do_not', () => {
  const recovering = { type: 'state', state: 'recovering', step: 1 } as const;
  const compiling = 'The first step: its kernels are compiled now …';
  expect(shownAfter([running, step(1), running, recovering, running])).toEqual([
    `${compiling} 3 s`,
    'Step 2 … 2 s',
    'Step 1 … 2 s',
    '',
    `${compiling} 3 s`,
  ]);
  let shown = '';
  const waiting = new Waiting((words) => (shown = words));
  waiting.follow(running);
  vi.advanceTimersByTime(600);
  expect(shown).toBe('The first step: the run is saved, then its kernels are compiled …');
  waiting.follow({ ...saved, step: 0 });
  vi.advanceTimersByTime(600);
  expect(shown).toBe(compiling);
});

it('shows_what_comes_after_the_last_step', () => {
  const all = 'All 4 steps are made.';
  expect(shownAfter([step(4), saved, sample], undefined, 4)).toEqual([
    `${all} Saving step 4 … 3 s`,
    `${all} Writing a sample after step 4 … 3 s`,
    `${all} Saving the end of the run … 3 s`,
  ]);
});

it('shows_that_the_run_stops_after_its_step', () => {
  let shown = '';
  const waiting = new Waiting((words) => (shown = words));
  waiting.follow(step(1));
  waiting.stop();
  vi.advanceTimersByTime(600);
  expect(shown).toBe('Step 2; the run stops after it …');
  waiting.follow(step(2));
  vi.advanceTimersByTime(600);
  expect(shown).toBe('Saving, then the run stops …');
});

it('finds_the_intervals_of_a_resumed_run_in_its_history', () => {
  const history = [
    step(1),
    { ...evaluated, step: 10 },
    { ...sample, step: 20 },
    { ...evaluated, step: 20 },
  ] as const;
  expect(intervalsOf(history as Parameters<typeof intervalsOf>[0])).toEqual({
    evalEvery: 10,
    sampleEvery: 20,
    saveEvery: 0,
  });
  expect(intervalsOf([])).toEqual({ evalEvery: 0, sampleEvery: 0, saveEvery: 0 });
});
