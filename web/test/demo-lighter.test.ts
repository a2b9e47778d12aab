/** Tests the ways to need less memory that the demo offers. */
import { expect, it } from 'vitest';

import { waysOf } from '../demo/lighter.js';
import { resumeWays } from '../demo/panels/memory-remedies.js';
import type { TrainOptions } from '../src/index.js';

const RUN: TrainOptions = { batchSize: 12, seqLen: 64, optimizer: { type: 'adamw' } };
const ADAPTER: TrainOptions = { ...RUN, adapter: { r: 4 } };
const textsOf = (...given: Parameters<typeof waysOf>): string[] =>
  waysOf(...given).map(([first]) => first?.text ?? '');

it('offers all ways for the weights of a model, each with the options that it has', () => {
  const kinds = waysOf(RUN, 'all', ADAPTER);
  expect(kinds.map(([first]) => first?.options)).toEqual([
    { ...RUN, batchSize: 6, gradientAccumulationSteps: 2 },
    { ...RUN, gradientCheckpointing: true },
    { ...RUN, precision: 'bf16' },
    ADAPTER,
    { ...RUN, optimizer: { type: 'adafactor' } },
    { ...RUN, seqLen: 32 },
  ]);
});

it('keeps the batch of a step, and stops at what cannot be divided', () => {
  const [parts = []] = waysOf(RUN, 'fresh', ADAPTER);
  expect(parts.map(({ options }) => options.batchSize)).toEqual([6, 3]);
  for (const { options } of parts)
    expect((options.batchSize ?? 0) * (options.gradientAccumulationSteps ?? 0)).toBe(12);
});

it('offers nothing that a run has, or that does nothing for it', () => {
  expect(textsOf({ ...ADAPTER, batchSize: 1 }, 'adapter', ADAPTER)).toEqual([
    'Sequences of 32 tokens',
  ]);
  const lean: TrainOptions = {
    batchSize: 2,
    seqLen: 16,
    gradientRelease: true,
    gradientCheckpointing: true,
    precision: 'bf16',
    optimizer: { type: 'adafactor' },
  };
  expect(textsOf(lean, 'fresh', ADAPTER)).toEqual([]);
});

it('continues a run with the same batch', () => {
  expect(resumeWays({ batchSize: 2 }).map(({ settings }) => settings)).toEqual([
    { batchSize: 1, gradientAccumulationSteps: 2 },
    { gradientCheckpointing: true },
  ]);
  expect(resumeWays({ batchSize: 3, gradientCheckpointing: true })).toEqual([]);
});
