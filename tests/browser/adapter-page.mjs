// Pages in which tests train adapters, and the settings of their runs.
import { Arena, TINY } from '../torture/arena.mjs';
import { inModule } from './chromium.mjs';

/** Rows of whole blocks of 32. */
export const SHAPE = {
  hiddenSize: 32,
  numHiddenLayers: 2,
  numAttentionHeads: 2,
  numKeyValueHeads: 1,
  intermediateSize: 64,
  maxPositionEmbeddings: 16,
  initializerRange: 0.2,
};

const ADAPTER = { r: 3, alpha: 6, targetModules: 'all-linear', modulesToSave: ['model.norm'] };
const OPTIONS = { ...TINY.options, steps: 6, learningRate: 1e-2 };
export const SETTING = {
  shape: SHAPE,
  text: TINY.text,
  type: 'q4_0',
  options: { ...OPTIONS, adapter: ADAPTER },
};

/** Settings with more state for a resume to restore in addition to the factors: rounding, masks, sums of micro-batches. */
export const HARD = {
  ...SETTING,
  options: {
    ...OPTIONS,
    precision: 'bf16',
    gradientAccumulationSteps: 2,
    adapter: { ...ADAPTER, dropout: 0.3 },
  },
};

/** @typedef {typeof import('../torture/in-browser/adapters.mjs')} Helpers */

/**
 * Starts and ends a browser around the tests of a file, as `Arena.ofTests`. `inPage` runs `work({ s, ...a }, setting)` in a
 * new page, where `s` is the subject and `a` has the helpers that tests of adapters share.
 * @param {import('../torture/arena.mjs').ArenaOptions} [options]
 */
export function adapterPages(options) {
  const arena = Arena.ofTests(options);
  /** @template A, R @param {(helpers: Helpers, setting: A) => R} work @param {A} [setting] */
  const inPage = (work, setting) =>
    arena.with(({ page }) => inModule(page, '/torture/adapters.mjs', work, setting));
  return { arena, inPage };
}
