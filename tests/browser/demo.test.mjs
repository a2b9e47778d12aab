// The demo as it is served: one click trains its embedded default, with no network and no error on the console.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { expect } from '@playwright/test';
import {
  demoTests,
  fill,
  loggedSteps,
  says,
  shown,
  stepOf,
  stop,
  textOf,
  untilState,
  untilStep,
} from './demo-run.mjs';
import { serve } from './site.mjs';

const { at, test } = demoTests();

test('demo trains at once with ?run, offline, and stops when asked', async ({ demo }) => {
  const { page, record } = await demo('/demo/?run');
  const early = await untilStep(page, 1);
  const later = await untilStep(page, 9);
  assert.ok(later.loss < early.loss, `loss falls: ${early.loss} to ${later.loss}`);
  await stop(page);
  assert.deepEqual([...record.origins], [at.site.url]);
});

test('demo measures its kernels while it trains, and continues training', async ({ demo }) => {
  const { page } = await demo('/demo/?run');
  await untilStep(page, 1);
  await page.evaluate(() =>
    document.querySelector('#measure').closest('details')?.setAttribute('open', ''),
  );
  await page.click('#measure');
  await page.waitForSelector('#kernels tr', { timeout: 180_000 });
  const rows = await page.$$eval('#kernels tr', (all) =>
    all.map((row) => [...row.children].map((cell) => cell.textContent)),
  );
  const shown = await stepOf(page);
  assert.match(await textOf(page, '#kernels-facts'), /launches and [\d.]+ ms per step, mean of 3/);
  const [, launches, ms, share] = rows.find(([kernel]) => kernel === 'adamw_wide') ?? [];
  // One launch for each parameter tensor of the built-in model's two blocks.
  assert.ok(Number(launches) === 20 && Number(ms) >= 0 && share.endsWith('%'), `${rows}`);
  assert.ok(Number(rows[0][2]) > 0, `${rows}`);
  await untilStep(page, shown + 2);
  assert.match(await textOf(page, '#status'), /^(Continuing after|Checkpoint of) step \d+/);
  await stop(page);
  assert.equal(await page.isDisabled('#measure'), true);
});

test('demo measures this GPU before any run, and gives the figures as JSON', async ({ demo }) => {
  const { page } = await demo();
  await page.waitForSelector('#measure-gpu:not([disabled])', { state: 'attached' });
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.evaluate(() =>
    document.querySelector('#measure-gpu').closest('details')?.setAttribute('open', ''),
  );
  await page.click('#measure-gpu');
  await page.waitForSelector('#gpu-rows tr', { timeout: 180_000 });
  const rows = await page.$$eval('#gpu-rows tr', (all) =>
    all.map((row) => [...row.children].map((cell) => cell.textContent)),
  );
  await page.click('#gpu-copy');
  await says(page, '#gpu-said', 'Copied.');
  const report = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
  assert.equal(rows.length, report.kernels.length);
  for (const [
    index,
    { name, shape, kernels, ms, gbPerSec, fraction, of, gflopPerSec },
  ] of report.kernels.entries()) {
    assert.ok(rows[index][0].startsWith(name) && rows[index][0].includes(shape), `${rows[index]}`);
    assert.ok(
      kernels.length > 0 && ms > 0 && gbPerSec > 0 && fraction > 0,
      JSON.stringify(report.kernels[index]),
    );
    if (of === 'peak')
      assert.ok(Math.abs(gflopPerSec / report.peakGflopPerSec - fraction) < 1e-9, name);
  }
  const [fma, copy, linear] = report.kernels.map(({ kernels }) => kernels[0]);
  assert.deepEqual([fma, copy, linear], ['fma', 'u32_copy', 'linear_block']);
  assert.ok(
    report.software && report.timing === 'device' && report.adapter !== '',
    JSON.stringify(report),
  );
  assert.match(
    await textOf(page, '#gpu-facts'),
    /at most \S+ GFLOP\/s in f32 and \S+ GB\/s, by the GPU’s timestamps/,
  );
  console.log(
    `measured in the demo: ${report.kernels.map(({ name, shape, ms, fraction }) => `${name} ${shape} ${ms.toFixed(2)} ms ${fraction.toFixed(2)}`).join('; ')}`,
  );
});

test('demo suggests a rate for each rule until one is typed', async ({ demo }) => {
  const { page } = await demo();
  const rateIs = (/** @type {number} */ rate) =>
    expect(page.locator('#s-rate')).toHaveValue(String(rate));
  await rateIs(0.002);
  await page.selectOption('#s-optimizer', 'sgd');
  await rateIs(0.5);
  await page.fill('#s-rate', '0.25');
  await page.selectOption('#s-optimizer', 'adafactor');
  // The plan follows the choice: by then, a rate would have been suggested.
  const before = await textOf(page, '#memory-total');
  await page.selectOption('#s-optimizer', 'adamw');
  await expect(page.locator('#memory-total')).not.toHaveText(before);
  await rateIs(0.25);
});

test('a reload restores curve, samples and form, and the run continues, also after a lost GPU, without repeating steps', async ({
  demo,
}) => {
  const { page, record } = await demo();
  await fill(page, { seed: 7, sample: 4, batch: 1, length: 16 });
  await page.click('#start');
  const written = page.waitForFunction(
    () => /^Writing a sample after step 4 …/.test(document.querySelector('#work').textContent),
    undefined,
    { timeout: 180_000 },
  );
  await untilStep(page, 5);
  await written;
  assert.doesNotMatch(await textOf(page, '#work'), /after step 4 /);
  await stop(page);
  const before = await shown(page);
  assert.ok(before.samples >= 1 && before.summary.startsWith('From '), JSON.stringify(before));
  await page.reload();
  await page.waitForSelector('#goon:not([hidden])', { timeout: 60_000 });
  assert.deepEqual(await shown(page), before);
  assert.deepEqual(
    [await page.inputValue('#s-seed'), await page.inputValue('#s-sample')],
    ['7', '4'],
  );
  assert.match(await textOf(page, '#goon'), /^Resume small Llama on Pride and Prejudice/);
  await page.click('#goon');
  await untilState(page, 'running');
  await untilStep(page, before.step + 1);
  assert.deepEqual(record.errors, []);
  at.browser.killGpu();
  await page.waitForSelector('#warning-list [data-code="run.recovered"]', { timeout: 60_000 });
  await untilStep(page, (await stepOf(page)) + 1);
  await stop(page);
  const { step } = await shown(page);
  const logged = await loggedSteps(page);
  assert.deepEqual(
    logged,
    Array.from({ length: step }, (_, index) => index + 1),
  );
});

/** Trains a little, unless a run is saved already. @param {import('@playwright/test').Page} page */
async function withSavedRun(page) {
  if (await page.isVisible('#goon')) return;
  await fill(page, { sample: 0, batch: 1, length: 16 });
  await page.click('#start');
  await untilStep(page, 2);
  await stop(page);
  await page.reload();
  await page.waitForSelector('#goon:not([hidden])', { timeout: 60_000 });
}

test('resuming another run asks before the current one is ended', async ({ demo }) => {
  const { page } = await demo();
  await withSavedRun(page);
  const runs = await page.locator('#checkpoints > li').count();
  await page.locator('#checkpoints > li > details > summary').first().click();
  await page
    .locator('#checkpoints > li')
    .first()
    .getByRole('button', { name: /^Fork / })
    .first()
    .click();
  await expect(page.locator('#checkpoints > li')).toHaveCount(runs + 1);
  await page.click('#goon');
  await untilState(page, 'running');
  const begun = await stepOf(page);
  await untilStep(page, begun + 1);
  const title = await textOf(page, '#run-title');
  assert.equal(
    await page.locator('#checkpoints > li').filter({ hasText: 'open in this page' }).count(),
    1,
  );
  const other = page
    .locator('#checkpoints > li')
    .filter({ hasNotText: 'open in this page' })
    .getByRole('button', { name: /^Resume/ })
    .first();
  const go = async () => {
    await other.click();
    await page.waitForSelector('#ask[open]', { timeout: 10_000 });
  };
  await go();
  assert.match(await textOf(page, '#ask-words'), /A run is in progress, and it would end here/);
  await page.keyboard.press('Escape');
  await untilStep(page, begun + 2);
  assert.equal(await textOf(page, '#run-title'), title);
  await go();
  await page.getByRole('button', { name: /then end it$|^End it$/ }).click();
  await expect(page.locator('#run-title')).not.toHaveText(title);
  await untilState(page, 'running');
  await stop(page);
});

test('demo without WebGPU explains that, and stored runs can be downloaded and deleted', async ({
  demo,
}) => {
  const { page } = await demo();
  await withSavedRun(page);
  await page.addInitScript(() =>
    Object.defineProperty(Navigator.prototype, 'gpu', { get: () => undefined }),
  );
  await page.goto(`${at.site.url}/demo/`);
  await page.waitForSelector('#notice:not([hidden])', { timeout: 30_000 });
  assert.match(await textOf(page, '#notice'), /WebGPU/);
  assert.equal(await page.isDisabled('#start'), true);
  const runs = page.locator('#checkpoints > li');
  await page.locator('#kept-help').waitFor({ timeout: 30_000 });
  const count = await runs.count();
  assert.equal(await page.getByRole('button', { name: /^Resume/ }).count(), 0);
  assert.match(await textOf(page, '#kept-help'), /Without a GPU/);
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    runs
      .first()
      .getByRole('button', { name: /^Download / })
      .first()
      .click(),
  ]);
  assert.match(file.suggestedFilename(), /\.tabtune$/);
  assert.equal(
    readFileSync(await file.path())
      .subarray(0, 8)
      .toString(),
    'TABTUNE1',
  );
  await runs
    .first()
    .locator('> .acts')
    .getByRole('button', { name: /^Delete / })
    .click();
  await page.locator('#ask').getByRole('button', { name: 'Delete' }).click();
  await expect(runs).toHaveCount(count - 1);
});

test('the policy binds the worker too: it cannot ask another address, and the About box says so', async () => {
  // Another origin that would answer anyone.
  const elsewhere = await serve({}, { 'access-control-allow-origin': '*' });
  try {
    const { page } = await at.open('/demo/');
    await page.waitForSelector('#start:enabled', { timeout: 180_000 });
    await page.click('#about-open');
    const enforced =
      /^The browser enforces this: .* both talk to this address and to the Hugging Face Hub only/;
    await says(page, '#policy', enforced);
    const asked = (url) =>
      fetch(url).then(
        ({ status }) => status,
        ({ name }) => name,
      );
    const [worker] = page.workers();
    assert.equal(await worker.evaluate(asked, `${at.site.url}/demo/`), 200);
    assert.equal(await worker.evaluate(asked, `${elsewhere.url}/`), 'TypeError');
    assert.equal(await page.evaluate(asked, `${elsewhere.url}/`), 'TypeError');
    await page.close();
  } finally {
    await elsewhere.close();
  }
});
