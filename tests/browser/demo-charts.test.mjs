// The charts of the demo, what it says it is doing, and what can be changed about a run that has begun.
import assert from 'node:assert/strict';
import { expect } from '@playwright/test';
import { demoTests, fill, says, shown, stop, textOf, untilState, untilStep } from './demo-run.mjs';

const { test } = demoTests();

/** Returns what the samples say about themselves, newest first. @param {import('@playwright/test').Page} page */
const samplesOf = (page) => page.locator('#samples .when').allTextContents();

test('charts draw what is chosen, say the values of a step, and keep the previous run’s losses', async ({
  demo,
}) => {
  const { page } = await demo();
  await fill(page, { steps: 12, batch: 1, length: 16, sample: 0 });
  await page.click('#start');
  await untilState(page, 'done');
  // By keyboard.
  await page.focus('#plot-loss');
  await page.keyboard.press('Home');
  await says(page, '#chart-said', /^Step 1: each step \d\.\d{3}, smoothed \d\.\d{3}\.$/);
  await page.keyboard.press('ArrowRight');
  await says(page, '#chart-said', /^Step 2: each step /);
  await expect(page.locator('#plot-loss')).toHaveAttribute('aria-valuenow', '2');
  const said = await textOf(page, '#chart-said');
  assert.equal(await page.getAttribute('#plot-loss', 'aria-valuetext'), said);
  await page.keyboard.press('End');
  await says(page, '#chart-said', /^Step 12: .*validation \d\.\d{3}/);
  // Under the pointer.
  await page.hover('#plot-loss', { position: { x: 90, y: 60 } });
  await says(page, '#chart-said', /^Step [1-4]: /);
  for (const [value, words] of [
    ['perplexity', /each step \d/],
    ['rate', /planned .*used /],
    ['speed', /each step \d/],
    ['norm', /each step \d/],
  ]) {
    await page.selectOption('#chart-of', String(value));
    await page.focus('#theme');
    await page.focus('#plot-loss');
    await says(page, '#chart-said', words);
  }
  await page.uncheck('#chart-lines input >> nth=0');
  await page.check('#chart-log');
  await page.reload();
  await page.waitForSelector('#start:enabled', { timeout: 180_000 });
  await expect(page.locator('#chart-title')).toHaveText('Gradient norm');
  assert.equal(await page.isChecked('#chart-log'), true);
  assert.equal(await page.isChecked('#chart-lines input >> nth=0'), false);
  await page.selectOption('#chart-of', 'loss');
  await page.check('#chart-lines input >> nth=0');
  await page.click('#start');
  await untilStep(page, 2);
  await says(page, '#chart-lines', 'previous run: small Llama on Pride and Prejudice');
  await page.focus('#plot-loss');
  await says(page, '#chart-said', /previous run: small Llama on Pride and Prejudice \d/);
  await stop(page);
});

test('a last sample is named and skipped, another is written each time, and the run becomes longer', async ({
  demo,
}) => {
  const { page } = await demo();
  await fill(page, { steps: 4, batch: 1, length: 16, sample: 4 });
  await page.click('#start');
  await says(page, '#work', /^The first step: .*kernels are compiled/);
  await page.click('#skip', { timeout: 180_000 });
  await untilState(page, 'done');
  assert.equal((await shown(page)).samples, 0);
  assert.equal(await page.isHidden('#work'), true);
  for (const seed of ['', '', '7', '7']) {
    await page.fill('#sample-seed', seed);
    const before = (await samplesOf(page)).length;
    await page.click('#write');
    await expect(page.locator('#samples li')).toHaveCount(before + 1);
    await page.waitForFunction(
      () => document.querySelector('#samples p').textContent.length > 40,
      undefined,
      { timeout: 120_000 },
    );
    await page.click('#write');
    await expect(page.locator('#write')).toHaveText('Write now');
  }
  const [again, fixed, second, first] = await samplesOf(page);
  assert.deepEqual([again, fixed], ['Step 4 · seed 7', 'Step 4 · seed 7']);
  assert.match(first, /^Step 4 · seed \d+$/);
  assert.notEqual(first, second);
  const texts = (await page.locator('#samples p').allTextContents()).map((each) =>
    each.slice(0, 40),
  );
  assert.equal(texts[0], texts[1]);
  assert.notEqual(texts[2], texts[3]);

  assert.equal(await page.inputValue('#more-steps'), '2');
  await page.click('#longer button');
  await untilStep(page, 6);
  await untilState(page, 'done');
  await says(page, '#f-step', 'of 6');
  assert.equal(await page.inputValue('#more-steps'), '3');
});

test('a planned decay begins at once when asked', async ({ demo }) => {
  const { page } = await demo();
  await fill(page, { steps: 400, batch: 1, length: 8, sample: 0 });
  await page.selectOption('#s-schedule', 'wsd');
  await page.click('#start');
  await untilStep(page, 22);
  await page.click('#decay');
  const rateOf = async () => Number(await textOf(page, '#rows tr:first-child td:nth-child(4)'));
  await expect.poll(rateOf, { timeout: 180_000 }).toBeLessThan(0.0019);
  assert.equal(await page.isHidden('#decay'), true);
  await stop(page);
});
