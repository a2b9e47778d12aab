// The demo's choices: an adapter on a dropped file, with the bytes of both kinds of training and a resume that asks for the base by name; and a
// choice that changes while a start fails, which leaves nothing behind.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { root } from '../../web/toolchain.mjs';
import { demoTests, fill, forget, says, textOf, untilState } from './demo-run.mjs';

const MODEL = join(root, 'tests/golden/lora/tiny.gguf');
const OTHER = join(root, 'tests/golden/models/llama3.gguf');

const { test } = demoTests();

/** Runs in the page: removes the base files that are stored with runs, as a browser without them would have it. */
async function withoutBase() {
  const database = await new Promise((done, failed) => {
    const opening = indexedDB.open('tabtune');
    opening.onsuccess = () => done(opening.result);
    opening.onerror = failed;
  });
  const transaction = database.transaction('chunks', 'readwrite');
  const keys = transaction.objectStore('chunks').getAllKeys();
  keys.onsuccess = () => {
    for (const key of keys.result)
      if (key[1] === 0 && key[2] >= 2 ** 32) transaction.objectStore('chunks').delete(key);
  };
  await new Promise((done) => (transaction.oncomplete = done));
  database.close();
}

/** Waits until the memory of the chosen files is known. @param {import('@playwright/test').Page} page */
const planned = (page) => says(page, '#t-all', /./);

test('demo trains an adapter, keeps a small base with the run, and asks for one that is not there', async ({
  demo,
}) => {
  const { page } = await demo();
  assert.equal(await page.isHidden('#trained'), true, 'a new model has no base');
  await page.setInputFiles('#model-files', MODEL);
  await planned(page);
  assert.equal(
    await page.isChecked('input[name="trained"][value="all"]'),
    true,
    'a small model is trained as a whole',
  );
  const all = await textOf(page, '#memory-total');
  await page.check('input[name="trained"][value="adapter"]');
  await fill(page, { steps: 6, batch: 1, length: 8, sample: 0, rank: 2, alpha: 4 });
  await says(page, '#memory-parts', 'adapter');
  await expect(page.locator('#memory-total')).not.toHaveText(all);
  await expect(page.locator('#s-rate')).toHaveValue('0.002');
  const [adapter, weights] = await Promise.all(
    ['#t-adapter', '#t-all'].map((id) => textOf(page, id)),
  );
  assert.equal(adapter, await textOf(page, '#memory-total'));
  assert.notEqual(adapter, weights);
  await page.click('#start');
  await untilState(page, 'done');
  assert.match(
    await textOf(page, '#run-base'),
    /^Adapter of rank 2: .* 14 matrices, on tiny\.gguf \(76 kB, header [0-9a-f]{12}\), .* on the GPU\.$/,
  );

  const goOn = async () => {
    await page.reload();
    await page.waitForSelector('#goon:not([hidden])', { timeout: 60_000 });
    await page.click('#goon');
  };
  await goOn();
  await untilState(page, 'done');
  await page.evaluate(withoutBase);
  await goOn();
  await page.waitForSelector('#ask[open] #ask-files', { state: 'attached', timeout: 120_000 });
  assert.match(
    await textOf(page, '#ask-words'),
    /on a model that is not in its checkpoint: tiny\.gguf/,
  );
  await page.setInputFiles('#ask-files', OTHER);
  await says(page, '#ask-words', 'not the bytes');
  await page.setInputFiles('#ask-files', {
    name: 'moved.gguf',
    mimeType: 'application/octet-stream',
    buffer: readFileSync(MODEL),
  });
  await untilState(page, 'done');
  assert.match(await textOf(page, '#run-base'), /on tiny\.gguf/);
});

test('the heading names the chosen files, even refused ones, and while a run is open those of the run', async ({
  demo,
}) => {
  const { page } = await demo('/demo/', forget);
  const text = (name, words) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(words) });
  const titleIs = (/** @type {string} */ title) =>
    expect(page.locator('#run-title')).toHaveText(title);
  const story = await textOf(page, '#run-story');
  await page.setInputFiles('#data-file', text('refused.jsonl', '{"neither": 1}\n'));
  await titleIs('A small new Llama reads refused.jsonl');
  await page.setInputFiles('#data-file', text('mine.txt', 'It is a truth. '.repeat(100)));
  await titleIs('A small new Llama reads mine.txt');
  await expect(page.locator('#run-story')).not.toHaveText(story);
  await page.check('input[name="data"][value="austen"]');
  await titleIs('A small new Llama reads Austen');
  await expect(page.locator('#run-story')).toHaveText(story);
  await fill(page, { steps: 1, batch: 1, length: 8, sample: 0 });
  await page.click('#start');
  await untilState(page, 'done');
  await page.setInputFiles('#model-files', MODEL);
  await planned(page);
  assert.equal(await textOf(page, '#run-title'), 'A small new Llama reads Austen');
  await page.click('#again');
  await titleIs('tiny.gguf reads Austen');
});

/** Runs in the page: counts workers that were not ended. The browser does not say how much memory it has, so that any run is tried. */
function counting() {
  Object.defineProperty(Navigator.prototype, 'deviceMemory', { get: () => undefined });
  const live = new Set();
  window.Worker = class extends Worker {
    constructor(url, options) {
      super(url, options);
      live.add(this);
    }
    /** @override */
    terminate() {
      live.delete(this);
      super.terminate();
    }
  };
  window.workers = () => live.size;
}

/** Runs in the page: starts a run, and waits until the start has ended. */
function start() {
  const main = document.querySelector('#main');
  return new Promise((ended) => {
    let starting = false;
    new MutationObserver((_, observer) => {
      if (main.dataset.state === 'starting') starting = true;
      else if (starting) ended(observer.disconnect());
    }).observe(main, { attributes: true });
    document.querySelector('#start').click();
  });
}

test('a choice that changes while a start fails leaves no worker behind', async ({ demo }) => {
  const { page } = await demo('/demo/', counting);
  // The worker of the saved runs, and that of the model.
  const wanted = await page.evaluate(() => window.workers());
  // More than any device supports, which is known once one is open.
  await page.fill('#s-batch', '1000000');
  let length = 65;
  // The page reacts to a choice after a delay, which here ends before, during and after the failure.
  for (let ahead = 140; ahead < 280; ahead += 7) {
    await page.fill('#s-length', String((length += 1)));
    await page.waitForTimeout(ahead);
    await page.evaluate(start);
    await says(page, '#setup-fault', 'device.limit');
  }
  await expect.poll(() => page.evaluate(() => window.workers())).toBe(wanted);
});

test('neither a cancelled start nor a completed one shows that its model was handed to a trainer', async ({
  demo,
}) => {
  const { page } = await demo();
  await page.evaluate(() => {
    const faults = (window.faults = new Set());
    new MutationObserver(() => {
      for (const fault of document.querySelectorAll('.fault:not([hidden]), #status')) {
        const words = String(fault.textContent);
        if (/handed to a trainer/.test(words)) faults.add(words);
      }
    }).observe(document.body, {
      subtree: true,
      childList: true,
      attributes: true,
      characterData: true,
    });
  });
  // A look at so much text takes a while, during which the model is handed over.
  const text =
    'It is a truth universally acknowledged, that a single man must be in want of a wife. '.repeat(
      40_000,
    );
  for (const delay of process.env.TABTUNE_FULL === undefined ? [600] : [300, 600, 900]) {
    await page.setInputFiles('#data-file', {
      name: `${delay}.txt`,
      mimeType: 'text/plain',
      buffer: Buffer.from(text),
    });
    await page.waitForTimeout(delay);
    await page.evaluate(() => document.querySelector('#start').click());
    await page.waitForTimeout(delay);
    // A start that was not possible yet, or is over, has nothing to call off.
    if (await page.isVisible('#stop')) await page.click('#stop');
    await page.locator('#start:visible, #again:visible').first().waitFor({ timeout: 60_000 });
    // A start that was faster than its cancel became a run.
    if (await page.isVisible('#again')) await page.click('#again');
    await page.waitForSelector('#start:enabled', { timeout: 60_000 });
  }
  assert.deepEqual(await page.evaluate(() => [...window.faults]), []);
});
