// Scenarios: functions that run in an empty page of the built package, in a real browser that is shared by one test file.
import assert from 'node:assert/strict';
import { inModule } from './chromium.mjs';
import { siteAndBrowser } from './hooks.mjs';

export const SHAPE = {
  hiddenSize: 32,
  numHiddenLayers: 2,
  numAttentionHeads: 4,
  numKeyValueHeads: 2,
  maxPositionEmbeddings: 32,
};
export const RUN = {
  steps: 6,
  batchSize: 2,
  seqLen: 16,
  gradientAccumulationSteps: 2,
  learningRate: 1e-2,
  warmupSteps: 2,
  seed: 7,
  validationFraction: 0.1,
};
export const TEXT =
  'It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife. '.repeat(
    20,
  );

/** @typedef {Omit<import('tabtune').CreateOptions, 'model' | 'data'>} Options */
/** A run from scratch. @typedef {{ shape: import('tabtune').ModelShape, text: string, options: Options }} Setting */

/**
 * Returns the setting of a run, with these options and this shape in addition to the usual ones.
 * @param {Options} [options] @param {Partial<import('tabtune').ModelShape>} [shape] @returns {Setting}
 */
export const setting = (options, shape) => ({
  shape: { ...SHAPE, ...shape },
  text: TEXT,
  options: { ...RUN, ...options },
});

/** @typedef {typeof import('./scenario-page.mjs')} Helpers */

/**
 * Runs `work(s, argument)` in a page of the package, where `s` is scenario-page.mjs.
 * @template A, R
 * @param {import('playwright-core').Page} page @param {(s: Helpers, argument: A) => R} work @param {A} [argument]
 */
export const inside = (page, work, argument) =>
  inModule(page, '/browser/scenario-page.mjs', work, argument);

/**
 * Starts and ends the browser and the site around the tests of a file. `folders` and `options` are those of the site, `flags` those of the browser.
 * @param {import('./site.mjs').Options & { folders?: Record<string, string>, flags?: string[] }} given
 */
export function scenarios({ folders, ...given } = {}) {
  const at = siteAndBrowser(folders, given);

  /**
   * Runs `work` as `inside` does, in a new page; it must end without an error on the console. `prepare(devtools, origin)`
   * may change the page's surroundings first.
   * @template A, R
   * @param {(s: Helpers, argument: A) => R} work @param {A} [argument]
   * @param {(devtools: import('playwright-core').CDPSession, origin: string) => unknown} [prepare]
   */
  async function inPage(work, argument, prepare) {
    const { page, record } = await at.open('/');
    await prepare?.(await page.context().newCDPSession(page), at.site.url);
    const result = await inside(page, work, argument);
    await page.close();
    assert.deepEqual(record.errors, []);
    assert.deepEqual([...record.origins], [at.site.url]);
    return result;
  }

  return { at, inPage, restart: () => at.browser.restart() };
}
