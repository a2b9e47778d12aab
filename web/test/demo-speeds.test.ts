/** Tests how the demo says how long a run takes. */
import { beforeEach, describe, expect, it, vi } from 'vitest';

import {
  keepNoted,
  keepSpeed,
  lightened,
  noteStep,
  roughly,
  secondsOf,
  speedKey,
  speedOf,
} from '../demo/speeds.js';

beforeEach(() => vi.stubGlobal('localStorage', { setItem: vi.fn(), getItem: () => null }));

describe('speed', () => {
  it('is that of the same settings, however long the run is', () => {
    const key = speedKey('a', { batchSize: 4, steps: 10, learningRate: 0.1 });
    expect(speedKey('a', { batchSize: 4, steps: 20, seed: 3 })).toBe(key);
    expect(speedKey('a', { batchSize: 8, steps: 10 })).not.toBe(key);
    expect(speedKey('b', { batchSize: 4 })).not.toBe(key);
  });

  it('is the mean of the steps of a run without the first, and keeps what else was measured', () => {
    keepSpeed('run', { step: 9, batch: 2 });
    for (const [step, secs] of [50, 1, 3].entries()) noteStep('run', step + 1, secs);
    expect(speedOf('run')?.step).toBe(9);
    keepNoted();
    expect(speedOf('run')).toEqual({ step: 2, batch: 2 });
    noteStep('other', 1, 50);
    keepNoted();
    expect(speedOf('other')).toBeUndefined();
  });
});

it('adds the evaluations to the steps', () => {
  const plan = { steps: 100, evaluations: 3, batches: 4 };
  expect(secondsOf({ step: 2, batch: 0.5 }, plan)).toBe(206);
  expect(secondsOf({ step: 2 }, plan)).toBe(200);
});

it.each([
  [0.2, 'about 10 seconds'],
  [61, 'about 70 seconds'],
  [95, 'about 2 minutes'],
  [540, 'about 9 minutes'],
  [9000, 'about 2.5 hours'],
])('%s seconds are %s', (secs, words) => {
  expect(roughly(secs)).toBe(words);
});

it('makes a long run lighter by steps, or else by what a step computes', () => {
  const run = { steps: 1000, seqLen: 128, batchSize: 4 };
  expect(lightened({ step: 2 }, run)).toEqual({ 's-steps': 405 });
  expect(lightened({ step: 100 }, run)).toEqual({ 's-length': 64 });
  expect(lightened({ step: 100 }, { ...run, seqLen: 32 })).toEqual({ 's-batch': 2 });
  expect(lightened({ step: 2000 }, { steps: 9, seqLen: 16, batchSize: 1 })).toEqual({
    's-steps': 1,
  });
});
