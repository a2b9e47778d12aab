// The demo as it is served: one click trains its embedded default, with no network and no error on the console.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Browser } from './chromium.mjs';
import { serve } from './site.mjs';

let site;
let browser;

before(async () => {
  site = await serve();
  browser = await Browser.launch();
});

after(async () => {
  await browser?.close();
  await site?.close();
});

/** Waits until the page has done this many steps, and gives what it then shows. */
async function untilStep(page, step) {
  await page.waitForFunction((wanted) => Number(document.querySelector('#main').dataset.step) >= wanted, step, { timeout: 180_000 });
  return { loss: Number(await page.textContent('#f-loss')), state: await page.getAttribute('#main', 'data-state') };
}

test('demo trains at once with ?run, offline, and stops when asked', async () => {
  const { page, record } = await browser.open(`${site.url}/demo/?run`);
  const early = await untilStep(page, 1);
  const later = await untilStep(page, 9);
  assert.ok(later.loss < early.loss, `loss falls: ${early.loss} to ${later.loss}`);
  await page.click('#stop');
  await page.waitForFunction(() => document.querySelector('#main').dataset.state !== 'running', undefined, { timeout: 60_000 });
  assert.deepEqual(record.errors, []);
  assert.deepEqual([...record.origins], [site.url]);
  await page.close();
});

test('demo measures its kernels while it trains, and goes on', async () => {
  const { page, record } = await browser.open(`${site.url}/demo/?run`);
  await untilStep(page, 1);
  await page.evaluate(() => (document.querySelector('#measure').closest('details').open = true));
  await page.click('#measure');
  await page.waitForSelector('#kernels tr', { timeout: 180_000 });
  const rows = await page.$$eval('#kernels tr', (all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
  const shown = Number(await page.getAttribute('#main', 'data-step'));
  assert.match(await page.textContent('#kernels-facts'), /launches and [\d.]+ ms a step, mean of 3/);
  const [, launches, ms, share] = rows.find(([kernel]) => kernel === 'adamw_wide');
  // One launch a parameter tensor of the built-in model's two blocks.
  assert.ok(Number(launches) === 20 && Number(ms) >= 0 && share.endsWith('%'), `${rows}`);
  assert.ok(Number(rows[0][2]) > 0, `${rows}`);
  await untilStep(page, shown + 2);
  assert.match(await page.textContent('#status'), /^Going on after step \d+/);
  await page.click('#stop');
  await page.waitForFunction(() => document.querySelector('#main').dataset.state === 'stopped', undefined, { timeout: 60_000 });
  assert.equal(await page.isDisabled('#measure'), true);
  assert.deepEqual(record.errors, []);
  await page.close();
});

test('demo suggests a rate for each rule until one is typed', async () => {
  const { page, record } = await browser.open(`${site.url}/demo/`);
  await page.waitForSelector('#start:enabled', { timeout: 180_000 });
  const rateIs = (rate) => page.waitForFunction((wanted) => document.querySelector('#s-rate').valueAsNumber === wanted, rate, { timeout: 10_000 });
  await rateIs(0.002);
  await page.selectOption('#s-optimizer', 'sgd');
  await rateIs(0.5);
  await page.fill('#s-rate', '0.25');
  await page.selectOption('#s-optimizer', 'adafactor');
  // The plan follows the choice: when it has, a rate would have been suggested.
  const before = await page.textContent('#memory-total');
  await page.selectOption('#s-optimizer', 'adamw');
  await page.waitForFunction((old) => document.querySelector('#memory-total').textContent !== old, before, { timeout: 10_000 });
  await rateIs(0.25);
  assert.deepEqual(record.errors, []);
  await page.close();
});

test('demo without WebGPU says so in words', async () => {
  const { page } = await browser.open(`${site.url}/`);
  await page.addInitScript(() => Object.defineProperty(Navigator.prototype, 'gpu', { get: () => undefined }));
  await page.goto(`${site.url}/demo/`);
  await page.waitForSelector('#notice:not([hidden])', { timeout: 30_000 });
  assert.match(await page.textContent('#notice'), /WebGPU/);
  assert.equal(await page.isDisabled('#start'), true);
  await page.close();
});

test('the policy binds the worker too: it cannot ask another address, and the About box says so', async () => {
  // Another origin that would answer anyone.
  const elsewhere = await serve({}, { 'access-control-allow-origin': '*' });
  try {
    const { page } = await browser.open(`${site.url}/demo/`);
    await page.waitForSelector('#start:enabled', { timeout: 180_000 });
    await page.click('#about-open');
    await page.waitForFunction(() => document.querySelector('#policy').textContent !== '', undefined, { timeout: 10_000 });
    assert.match(await page.textContent('#policy'), /^The browser sees to it: .* both talk to this address only/);
    const asked = (url) => fetch(url).then(({ status }) => status, ({ name }) => name);
    const [worker] = page.workers();
    assert.equal(await worker.evaluate(asked, `${site.url}/demo/`), 200);
    assert.equal(await worker.evaluate(asked, `${elsewhere.url}/`), 'TypeError');
    assert.equal(await page.evaluate(asked, `${elsewhere.url}/`), 'TypeError');
    await page.close();
  } finally {
    await elsewhere.close();
  }
});
