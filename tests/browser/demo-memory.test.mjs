// A run of the demo that needs more memory than there is: it does not start before something is chosen, and one that ran out continues with less.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { built } from '../../web/core-kind.mjs';
import { root } from '../../web/toolchain.mjs';
import { demoTests, fill, forget, says, textOf, untilState, untilStep } from './demo-run.mjs';
import { siteAndBrowser } from './hooks.mjs';

const ASSETS = join(root, built.demo, 'assets');
const worker = readdirSync(ASSETS).find((name) => /^worker-.*\.js$/.test(name)) ?? '';

/** Runs in the worker before its own script: its GPU is out of memory when the page says so. */
function outOfMemory() {
  const { requestDevice } = GPUAdapter.prototype;
  GPUAdapter.prototype.requestDevice = async function (descriptor) {
    const device = await requestDevice.call(this, descriptor);
    new BroadcastChannel('memory').addEventListener('message', () => {
      const error = new GPUOutOfMemoryError('a test has asked for this');
      device.dispatchEvent(
        new GPUUncapturedErrorEvent('uncapturederror', { error, cancelable: true }),
      );
    });
    return device;
  };
}
const text = `(${outOfMemory})();\n${readFileSync(join(ASSETS, worker), 'utf8')}`;
const { test } = demoTests(
  siteAndBrowser({}, { scripts: { [`/demo/assets/${worker}`]: { text } } }),
);

/** Runs in the page: the browser reports 32 MiB. */
const small = () =>
  Object.defineProperty(Navigator.prototype, 'deviceMemory', { get: () => 1 / 32 });

test('a run that is not planned to fit starts only after something was chosen', async ({
  demo,
}) => {
  const { page } = await demo('/demo/', small);
  await fill(page, { batch: 64, length: 256, steps: 1, sample: 0 });
  await says(page, '#fit', /planned to need .* MB, and this browser has about 17 MB/);
  await page.click('#start');
  await says(page, '#status', 'not planned to fit');
  assert.equal(await page.getAttribute('#main', 'data-state'), 'setup');
  // A press says what it needs, changes the form, and plans again.
  const parts = page.getByRole('button', { name: /^The same batch in \d+ parts of \d+: about/ });
  const [, count, batch] = /in (\d+) parts of (\d+)/.exec(String(await parts.textContent())) ?? [];
  assert.equal(Number(count) * Number(batch), 64);
  await parts.click();
  await expect(page.locator('#s-batch')).toHaveValue(String(batch));
  await says(page, '#advanced-title', '1 changed');
  await expect(page.locator('#fit')).toBeHidden();
  await page.fill('#s-batch', '64');
  await page.click('#fit-anyway');
  await untilState(page, 'running');
});

test('a run that is out of memory continues with what it is offered', async ({ demo }) => {
  // The ways that an earlier test chose hold for later runs, too.
  const { page } = await demo('/demo/', forget);
  await fill(page, { batch: 2, length: 8, steps: 100000, sample: 0 });
  await page.click('#start');
  await untilStep(page, 2);
  await page.evaluate(() => new BroadcastChannel('memory').postMessage(1));
  const warning = page.locator('[data-code="run.memory"]');
  await expect(warning).toContainText('The settings were not changed');
  await untilState(page, 'paused');
  await warning.getByRole('button', { name: 'the same batch in 2 parts of 1' }).click();
  const before = Number(await page.getAttribute('#main', 'data-step'));
  await untilState(page, 'running');
  await untilStep(page, before + 1);
  await page.click('#stop');
  await untilState(page, 'stopped');
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.evaluate(() => document.querySelector('#log-json').click()),
  ]);
  const { settings } = JSON.parse(readFileSync(await file.path(), 'utf8'));
  assert.deepEqual([settings.batch_size, settings.gradient_accumulation_steps], [1, 2]);
  // The next run is not started as this one was before something is chosen.
  await page.click('#again');
  await says(page, '#fit', 'did not get the memory');
  assert.match(await textOf(page, '#fit'), /Adafactor, which remembers less: about/);
});
