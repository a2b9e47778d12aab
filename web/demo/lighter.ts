/** Ways to need less GPU memory, those with the fewest side effects first. */
import type { Json, TrainOptions } from 'tabtune';

import type { NumberId } from './numbers.js';
import type { Trained } from './optimizers.js';

/** A way to need less memory: what it changes in the form, and the options that a run then has. */
export interface Way {
  text: string;
  numbers?: Partial<Record<NumberId, number | string>>;
  advanced?: Readonly<Record<string, Json>>;
  /** Update rule of the form. */
  rule?: string;
  trained?: 'adapter';
  options: TrainOptions;
}
/** Number of times that something is halved. */
const HALVINGS = 16;
const SHORTEST = 16;

/** Returns the ways of each kind, of which the first that suffices is offered. `adapter` are the options of the same run with an adapter. */
export function waysOf(options: TrainOptions, trained: Trained, adapter: TrainOptions): Way[][] {
  const { batchSize = 4, seqLen = 128, gradientAccumulationSteps = 1, precision } = options;
  const halves = Array.from({ length: HALVINGS }, (_, index) => 2 ** (index + 1));
  const type = options.optimizer?.type ?? 'adamw';
  const kinds: Way[][] = [];
  if (options.gradientRelease !== true)
    kinds.push(
      halves
        .filter((parts) => batchSize % parts === 0)
        .map((parts) => {
          const [batch, count] = [batchSize / parts, gradientAccumulationSteps * parts];
          return {
            text: `The same batch in ${count} parts of ${batch}`,
            numbers: { 's-batch': batch },
            advanced: { gradientAccumulationSteps: count },
            options: { ...options, batchSize: batch, gradientAccumulationSteps: count },
          };
        }),
    );
  // It is the default of both.
  if (options.gradientCheckpointing !== true && trained !== 'adapter' && !options.blockCoordinate)
    kinds.push([
      {
        text: 'Compute activations twice instead of keeping them, which is slower',
        advanced: { gradientCheckpointing: true },
        options: { ...options, gradientCheckpointing: true },
      },
    ]);
  if (precision !== 'bf16' && trained !== 'adapter')
    kinds.push([
      {
        text: 'Weights of 2 bytes (bf16)',
        numbers: { 's-precision': 'bf16' },
        options: { ...options, precision: 'bf16' },
      },
    ]);
  if (trained === 'all')
    kinds.push([
      { text: 'An adapter in place of all weights', trained: 'adapter', options: adapter },
    ]);
  if (type !== 'adafactor' && trained !== 'adapter') {
    const { blockCoordinate: _, ...others } = options;
    kinds.push([
      {
        text: 'The update rule Adafactor, which remembers less',
        rule: 'adafactor',
        options: { ...others, optimizer: { type: 'adafactor' } },
      },
    ]);
  }
  kinds.push(
    halves
      .map((parts) => Math.floor(seqLen / parts))
      .filter((length) => length >= SHORTEST)
      .map((length) => ({
        text: `Sequences of ${length} tokens`,
        numbers: { 's-length': length },
        options: { ...options, seqLen: length },
      })),
  );
  return kinds.filter((ways) => ways.length > 0);
}
