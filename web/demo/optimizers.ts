/** The update rules that the page offers, with a rate for each. */
import { OPTIMIZER_TYPES } from 'tabtune';
import type { OptimizerOptions, TrainOptions } from 'tabtune';

import { byId } from './dom.js';

/** Part of a model that is trained: all weights of a new model or of files, or the low-rank factors of an adapter. */
export type Trained = 'fresh' | 'all' | 'adapter';

/**
 * The update rules that the page offers; `rate` is the best of the tested rates: with the small model over 200 steps, or for APOLLO and one block at
 * a time in the search of tests/bench/README.md.
 */
const OPTIMIZERS: Record<
  string,
  { label: string; rate: number; options: OptimizerOptions; blocks?: number }
> = {
  adamw: { label: 'AdamW', rate: 0.002, options: { type: 'adamw' } },
  'adamw-blocks': {
    label: 'AdamW, one block at a time',
    rate: 0.002,
    options: { type: 'adamw' },
    blocks: 1,
  },
  adafactor: { label: 'Adafactor', rate: 0.004, options: { type: 'adafactor' } },
  apollo: { label: 'APOLLO', rate: 0.004, options: { type: 'apollo' } },
  'apollo-mini': { label: 'APOLLO-Mini', rate: 0.004, options: { type: 'apollo', mini: true } },
  sgd: { label: 'SGD', rate: 0.5, options: { type: 'sgd' } },
};
// A rule for which no rate was tested yet is offered with the default rate of a run.
for (const type of OPTIMIZER_TYPES)
  OPTIMIZERS[type] ??= { label: type, rate: 0.001, options: { type } };
/** Number of steps until the next block trains. */
const BLOCK_STEPS = 20;
/** Factors of the rate: a trained model should change only a little; the factors of an adapter begin at zero and move further. */
const SHARES: Readonly<Record<Trained, number>> = { fresh: 1, all: 1 / 20, adapter: 1 / 10 };

/** Returns the name of an update rule by its `type`, which is itself the name of one that the page does not offer. */
export const ruleName = (type: string): string => OPTIMIZERS[type]?.label ?? type;

/** Fills the list of update rules. */
export function offerOptimizers(): void {
  const options = Object.entries(OPTIMIZERS).map(([word, { label }]) => new Option(label, word));
  byId('s-optimizer', HTMLSelectElement).replaceChildren(...options);
}

const chosenRule = (): string => byId('s-optimizer', HTMLSelectElement).value;

/** Leaves out the rules that do not train this part of a model: an adapter is not trained one block at a time. */
export function restrictRules(trained: Trained): void {
  const select = byId('s-optimizer', HTMLSelectElement);
  for (const option of select.options)
    option.disabled = trained === 'adapter' && OPTIMIZERS[option.value]?.blocks !== undefined;
  if (select.selectedOptions[0]?.disabled) select.value = 'adamw';
}

/** Returns the rate that suits the chosen rule and the kind of training. */
export const testedRate = (trained: Trained): number =>
  Number(((OPTIMIZERS[chosenRule()]?.rate ?? 0) * SHARES[trained]).toPrecision(3));

/**
 * Returns the update rule. If only a few blocks are trained at a time, a new model trains its table, norm and head in every step, because they have
 * learned nothing yet.
 */
export function optimizerOf(trained: Trained): Pick<TrainOptions, 'optimizer' | 'blockCoordinate'> {
  const word = chosenRule();
  const offered = OPTIMIZERS[word];
  if (!offered) throw new Error(`the page offers no optimizer ${word}`);
  const { options, blocks } = offered;
  const fresh = trained === 'fresh';
  return {
    optimizer: { ...options, ...(trained === 'adapter' && { weightDecay: 0 }) },
    ...(blocks !== undefined && {
      blockCoordinate: {
        blocks,
        interval: BLOCK_STEPS,
        embedding: fresh,
        norm: fresh,
        head: fresh,
      },
    }),
  };
}
