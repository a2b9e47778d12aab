// The demo's step "Try": a model without a chat template continues a text, one with a template answers in a conversation.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { root } from '../../web/toolchain.mjs';
import { demoTests, fill, says, textOf, untilState } from './demo-run.mjs';

/** @typedef {import('@playwright/test').Page} Page */

const { test } = demoTests();
const TALKS = join(root, 'tests/golden/models/qwen2.gguf');

/** Trains for a few steps, and opens the step. @param {Page} page @param {number} steps */
async function tuned(page, steps = 2) {
  await fill(page, { steps, batch: 1, length: 8, sample: 0 });
  await page.click('#start');
  await untilState(page, 'done');
  await page.click('.path a[href="#view-try"]');
  await page.waitForSelector('#talk-form');
}

/** Sends a text by the keyboard, and waits for the end of the answer. @param {Page} page @param {string} text @param {number} turns */
async function send(page, text, turns) {
  await page.fill('#talk-text', text);
  await page.press('#talk-text', 'Enter');
  await expect(page.locator('.turns li')).toHaveCount(turns);
  await expect(page.locator('#talk-send')).toBeEnabled({ timeout: 120_000 });
  return textOf(page, `.turns li:nth-child(${turns})`);
}

test('a new model continues a text, with another seed each time, until it is stopped', async ({
  demo,
}) => {
  const { page } = await demo();
  assert.match(await textOf(page, '#view-try'), /The model of a run answers here/);
  await tuned(page);
  assert.equal(await page.isHidden('#try-empty'), true);
  await says(page, '.talk', 'no chat template');
  await page.fill('[name="length"]', '12');
  assert.match(await send(page, 'It is a truth ', 1), /It is a truth .*Seed 1 · 12 tokens · cut/s);
  assert.match(await send(page, 'It is a truth ', 2), /Seed 2/);
  await page.fill('[name="length"]', '0');
  await page.fill('#talk-text', 'It');
  await page.press('#talk-text', 'Enter');
  await says(page, '#talk-fault', 'maxTokens');
  await expect(page.locator('#talk-text')).toHaveValue('It');
  await page.fill('[name="length"]', '100000');
  await page.press('#talk-text', 'Enter');
  await says(page, '.turns li:nth-child(3)', 'being written');
  await page.click('#talk-stop');
  await says(page, '.turns li:nth-child(3)', 'not finished');
  assert.equal(await textOf(page, '#talk-fault').then((text) => text.trim()), '');
  // A character that the text does not have.
  await page.fill('[name="length"]', '1');
  assert.match(await send(page, 'It ☃', 4), /data\.unknown/);
});

test('a model answers in a conversation through its template, also while its run waits', async ({
  demo,
}) => {
  const { page } = await demo();
  await page.setInputFiles('#model-files', TALKS);
  await says(page, '#t-all', /./);
  await fill(page, { steps: 100_000, batch: 1, length: 8, sample: 0 });
  await page.click('#start');
  await untilState(page, 'running');
  await page.click('.path a[href="#view-try"]');
  await says(page, '#try-panel', 'The run waits while the model answers');
  await page.fill('[name="length"]', '4');
  assert.match(await send(page, 'What is it?', 1), /^\s*You\s*What is it\?\s*Model.*Seed 1/s);
  await untilState(page, 'running');
  await page.click('#try-panel >> text=Pause the run');
  await untilState(page, 'paused');
  await page.click('.talk summary');
  await page.fill('#talk-system', 'Be brief.');
  assert.match(await send(page, 'And now?', 2), /Seed 2/);
  await page.click('#talk-new');
  await expect(page.locator('.turns')).toHaveCount(0);
  await page.click('#stop');
  await untilState(page, 'stopped');
});
