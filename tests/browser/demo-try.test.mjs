// The demo's step "Try": a model without a chat template continues a text, one with a template answers in a conversation; the base answers in a second
// column; and what was learned is shown by token, on held-out text and by rows.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { root } from '../../web/toolchain.mjs';
import { demoTests, fill, says, textOf, untilState } from './demo-run.mjs';

/** @typedef {import('@playwright/test').Page} Page */

const { test } = demoTests();
const ADAPTED = join(root, 'tests/golden/lora/tiny.gguf');

/** Runs in the page: chooses a small model with a chat template, and chats for it. */
async function chooseChats() {
  const { talking, ROWS } = await import('/browser/asking-page.mjs');
  const choose = (/** @type {string} */ id, /** @type {File[]} */ files) => {
    const all = new DataTransfer();
    for (const file of files) all.items.add(file);
    const input = document.querySelector(`#${id}`);
    input.files = all.files;
    input.dispatchEvent(new Event('change'));
  };
  choose('data-file', [new File([ROWS], 'rows.jsonl')]);
  choose('model-files', await talking());
}

/** Trains for a few steps, and opens the step. @param {Page} page @param {number} steps @param {number} length */
async function tuned(page, steps = 2, length = 8) {
  await fill(page, { steps, batch: 1, length, sample: 0 });
  await page.click('#start');
  await untilState(page, 'done');
  await page.click('.path a[href="#view-try"]');
  await page.waitForSelector('#talk-form');
}

/** Sends a text by the keyboard, and waits for the end of the answer. @param {Page} page @param {string} text @param {number} turns */
async function send(page, text, turns) {
  await expect(page.locator('#talk-send')).toBeEnabled({ timeout: 120_000 });
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
  await says(page, '.talk >> nth=0', 'no chat template');
  await page.fill('#talk-length', '12');
  assert.match(await send(page, 'It is a truth ', 1), /It is a truth .*Seed 1 · 12 tokens · cut/s);
  assert.match(await send(page, 'It is a truth ', 2), /Seed 2/);
  await page.fill('#talk-temperature', '-1');
  await page.fill('#talk-text', 'It');
  await page.press('#talk-text', 'Enter');
  await says(page, '#talk-fault', /temperature/i);
  await expect(page.locator('#talk-text')).toHaveValue('It');
  await page.fill('#talk-temperature', '1');
  await page.fill('#talk-length', '100000');
  await page.press('#talk-text', 'Enter');
  await says(page, '.turns li:nth-child(3)', 'being written');
  // An answer that was stopped before its first token is taken back.
  const written = page.locator('.turns li:nth-child(3) .written');
  await expect(written).toHaveText(/^\s*Model\s*It.{4}/s, { timeout: 60_000 });
  await page.click('#talk-stop');
  await says(page, '.turns li:nth-child(3)', 'not finished');
  assert.equal(await textOf(page, '#talk-fault').then((text) => text.trim()), '');
  // A character that the text does not have.
  await expect(page.locator('#talk-send')).toBeEnabled({ timeout: 120_000 });
  await page.fill('#talk-text', 'It ☃');
  await page.press('#talk-text', 'Enter');
  await says(page, '#talk-fault', '☃');
  await expect(page.locator('.turns li')).toHaveCount(3);
});

test('a model answers in a conversation through its template, also while its run waits', async ({
  demo,
}) => {
  const { page } = await demo();
  await page.evaluate(chooseChats);
  await says(page, '#t-all', /./);
  await fill(page, { steps: 100_000, batch: 1, length: 8, sample: 0 });
  await page.click('#start');
  await untilState(page, 'running');
  await page.click('.path a[href="#view-try"]');
  await says(page, '#try-panel', 'The run waits while the model answers');
  await page.fill('#talk-length', '4');
  assert.match(await send(page, 'what is it', 1), /^\s*You\s*what is it\s*Model.*Seed 1/s);
  await untilState(page, 'running');
  await page.click('#try-panel >> text=Pause the run');
  await untilState(page, 'paused');
  await page.click('.talk summary');
  await page.fill('#talk-system', 'ok');
  assert.match(await send(page, 'why not', 2), /Seed 2/);
  await page.click('#talk-new');
  await expect(page.locator('.turns')).toHaveCount(0);
  await page.click('#stop');
  await untilState(page, 'stopped');
});

test('the base answers in a column of its own: without the adapter, or opened again by a click', async ({
  demo,
}) => {
  const { page } = await demo();
  await page.setInputFiles('#model-files', ADAPTED);
  await says(page, '#t-all', /./);
  await page.check('input[name="trained"][value="adapter"]');
  await tuned(page);
  await page.fill('#talk-length', '3');
  await page.check('#talk-pair');
  assert.match(await send(page, 'It is', 1), /Base\s*It is.*3 tokens.*Tuned\s*It is.*3 tokens/s);

  await page.click('#again');
  await expect(page.locator('#talk-form')).toHaveCount(0);
  await page.evaluate(chooseChats);
  await says(page, '#run-title', 'rows.jsonl');
  await page.check('input[name="trained"][value="all"]');
  await tuned(page);
  assert.equal(await page.isVisible('#talk-pair'), false);
  await says(page, '#base-facts', /take [\d.]+ [kM]B of GPU memory/);
  await page.click('#base-open');
  await page.check('#talk-pair');
  await page.fill('#talk-length', '3');
  assert.match(await send(page, 'is it', 1), /You\s*is it.*Base.*token.*Tuned.*token/s);
});

test('what was learned is shown by token, on held-out text and by rows, and saved as a text', async ({
  demo,
}) => {
  const { page } = await demo();
  await page.setInputFiles('#model-files', ADAPTED);
  await says(page, '#t-all', /./);
  await page.check('input[name="trained"][value="adapter"]');
  const rows = Array.from({ length: 40 }, (_, row) =>
    JSON.stringify({ prompt: `Say ${row}:`, completion: ' the same words' }),
  );
  await page.setInputFiles('#data-file', {
    name: 'rows.jsonl',
    mimeType: 'application/jsonl',
    buffer: Buffer.from(rows.join('\n')),
  });
  await says(page, '#lesson-facts', /40|38/);
  await page.fill('#s-rate', '0.01');
  await tuned(page, 20, 32);
  const shows = async (/** @type {string} */ id) => {
    await page.click(`#${id}`);
    await expect(page.locator('#learn-save')).toBeEnabled({ timeout: 120_000 });
  };
  assert.equal(await page.isDisabled('#learn-save'), true);
  await page.click('#learn-take');
  await expect(page.locator('#learn-text')).toHaveValue(/the same words/);
  await shows('learn-loss');
  const mean = await textOf(page, '#learn-mean');
  const [before = NaN, after = NaN] = (mean.match(/\d+\.\d+/g) ?? []).map(Number);
  assert.ok(after < before, `${before} before, ${after} after`);
  const tokens = page.locator('.tokens-of').last().locator('[role="option"]');
  await tokens.first().focus();
  await page.keyboard.press('End');
  await says(page, '#learn-read', /: before \d+\.\d+, after \d+\.\d+$/);
  assert.equal(await page.locator('#learn tbody tr').count(), await tokens.count());
  await shows('learn-held');
  await says(page, '[aria-label="Held-out loss"]', /First in the run.*Now, after step 20/s);
  await shows('learn-rows');
  await expect(page.locator('#learn .turns > li')).toHaveCount(5);
  await says(page, '#learn .turns', /Say \d+:.*Expected\s*the same words.*Base.*Tuned/s);
  const [file] = await Promise.all([page.waitForEvent('download'), page.click('#learn-save')]);
  const text = readFileSync(await file.path(), 'utf8');
  for (const words of [/before and after/, /Mean loss/, /HELD-OUT/, /Expected:\s+the same words/])
    assert.match(text, words);
});
