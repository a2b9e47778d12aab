// The numbers of the demo's next run: suggested for what is trained, with reasons, until somebody types others.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { root } from '../../web/toolchain.mjs';
import { demoTests, fill, says, textOf, untilState } from './demo-run.mjs';

const MODEL = join(root, 'tests/golden/lora/tiny.gguf');

const { test } = demoTests();

/** @param {import('@playwright/test').Page} page @param {string} id @param {string} value */
const has = (page, id, value) => expect(page.locator(id)).toHaveValue(value);

test('numbers follow the model with a reason, and typed ones stay with the model and data that they were typed for', async ({
  demo,
}) => {
  const { page } = await demo();
  await says(page, '#numbers-said', 'Quick numbers');
  const quick = await page.inputValue('#s-steps');
  await page.setInputFiles('#model-files', MODEL);
  await says(page, '#s-rate-why', 'For weights that have learned before');
  await has(page, '#s-rate', '0.00025');
  await has(page, '#s-precision', 'bf16');
  await has(page, '#s-batch', '4');
  // In software a run of this model is short.
  await has(page, '#s-steps', '20');
  await says(page, '#s-steps-why', /^Few, .* one pass over your data is \d+ steps/);
  await page.fill('#s-rate', '0.001');
  await says(page, '#s-rate-why', 'Yours. Suggested: 0.00025');
  await page.check('input[name="trained"][value="adapter"]');
  await says(page, '#s-rate-why', 'Suggested: 0.002');
  await has(page, '#s-rate', '0.001');
  await has(page, '#s-precision', 'f32');
  await page.getByRole('button', { name: 'Back to suggested: 0.002' }).click();
  await has(page, '#s-rate', '0.002');
  await says(page, '#s-rate-why', 'For new factors on weights that rest');
  await page.fill('#s-steps', '7');
  await says(page, '#s-steps-why', 'Yours. Suggested: 20.');
  await expect(page.locator('#memory-total')).toContainText('about');
  await page.fill('#s-batch', '2');
  await says(page, '#s-batch-why', 'Suggested: 4.');
  await says(page, '#s-steps-why', 'Suggested: 20.');
  await page.check('input[name="model"][value="scratch"]');
  await has(page, '#s-steps', quick);
  await has(page, '#s-rate', '0.002');
  await says(page, '#s-steps-why', /^$/);
  await page.check('input[name="model"][value="files"]');
  await has(page, '#s-steps', '7');
  assert.equal(await page.isHidden('#setup-fault'), true, await textOf(page, '#setup-fault'));
});

test('every setting of a run has a field, which says what is wrong with its value, and the run has it', async ({
  demo,
}) => {
  const { page } = await demo();
  await page.click('#advanced-title');
  const field = page.locator('#a-maxGradNorm');
  await expect(field).toHaveAttribute('placeholder', '1');
  await says(page, '#a-maxGradNorm-about', 'Maximum global 2-norm');
  await field.fill('-1');
  await says(page, '#a-maxGradNorm-fault', /-1/);
  await expect(field).toHaveAttribute('aria-invalid', 'true');
  await field.fill('0.5');
  await expect(field).toHaveAttribute('aria-invalid', 'false');
  await page.selectOption('#s-optimizer', 'apollo');
  await page.fill('#a-optimizer-apollo-rank', '3');
  await says(page, '#advanced-title', '2 changed');
  await fill(page, { steps: 1, batch: 1, length: 8, sample: 0 });
  await page.click('#start');
  await untilState(page, 'done');
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.evaluate(() => document.querySelector('#log-json').click()),
  ]);
  const { settings } = JSON.parse(readFileSync(await file.path(), 'utf8'));
  assert.deepEqual([settings.max_grad_norm, settings.optimizer.rank], [0.5, 3]);
  await page.reload();
  await says(page, '#advanced-title', '2 changed');
});

test('the duration of a run is measured when asked for, and a long run can be made lighter', async ({
  demo,
}) => {
  const { page } = await demo();
  const runs = await page.locator('#checkpoints > li').count();
  await fill(page, { steps: 40, batch: 1, length: 8, sample: 0 });
  await says(page, '#time', 'is known after its first steps');
  await page.click('#how-long');
  await says(
    page,
    '#time',
    /^\s*About \d+ (second|minute)s? on this computer\.\s+40 steps of .* as measured/,
  );
  assert.equal(await page.getAttribute('#main', 'data-state'), 'setup');
  assert.equal(await page.getAttribute('#main', 'data-step'), '0');
  assert.equal(await page.locator('#checkpoints > li').count(), runs, 'nothing of it is kept');
  await page.fill('#s-steps', '90000000');
  await says(page, '#time', 'hours');
  await page.click('#lighter');
  await says(page, '#time', 'minutes');
  assert.ok(Number(await page.inputValue('#s-steps')) < 90000000);
  // Other settings have another speed, which a run shows as well.
  await fill(page, { steps: 4, length: 16 });
  await says(page, '#time', 'is known after its first steps');
  await page.click('#start');
  await untilState(page, 'done');
  await page.click('#again');
  await says(page, '#time', '4 steps of');
});
