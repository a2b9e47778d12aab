// Scenarios: functions that run in an empty page of the built package, in a real browser that is shared by one test file.
import assert from 'node:assert/strict';
import { built } from '../../web/core-kind.mjs';
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

/** Creates a model and a trainer from scratch, in the page. */
export const create = `async (tabtune, { shape, text, options }) => {
  const model = await tabtune.newModel(shape, { text });
  return tabtune.Trainer.create({ model, data: { text }, ...options });
}`;

/** Trains `count` steps without a break, in the page, and returns their losses. @param {number} count */
export const unbroken = (count) => `async (tabtune, argument) => {
  const trainer = await (${create})(tabtune, argument);
  const losses = (await trainer.step(${count})).map(({ loss }) => loss);
  await trainer.dispose();
  return losses;
}`;

/**
 * Starts and ends the browser and the site around the tests of a file. `folders` and `options` are those of the site, `flags` those of the browser.
 * @param {import('./site.mjs').Options & { folders?: Record<string, string>, flags?: string[] }} given
 */
export function scenarios({ folders, flags, ...options } = {}) {
  const at = siteAndBrowser(
    folders && { '/dist/': built.package, '/demo/': built.demo, ...folders },
    { flags, ...options },
  );

  /**
   * Runs `scenario(tabtune, argument)` in a fresh page; it must end without an error on the console. `prepare(devtools, origin)` may change the
   * page's surroundings first.
   */
  async function inPage(scenario, argument, prepare) {
    const { page, record } = await at.open('/');
    await prepare?.(await page.context().newCDPSession(page), at.site.url);
    const call = `(async (argument) => (${scenario})(await import('/dist/index.js'), argument))`;
    // Functions are passed as text, since the page's policy allows no eval; the protocol's own evaluation is exempt.
    const result = await page.evaluate(`${call}(${JSON.stringify(argument ?? null)})`);
    await page.close();
    assert.deepEqual(record.errors, []);
    assert.deepEqual([...record.origins], [at.site.url]);
    return result;
  }

  return { inPage, restart: () => at.browser.restart(), page: (path) => at.open(path) };
}
