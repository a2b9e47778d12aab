// The demo's choices: an adapter on a dropped file, with the bytes of both kinds of training and a resume that asks for the base by name; and a
// choice that changes while a start fails, which leaves nothing behind.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { root } from '../../web/toolchain.mjs';
import { untilState, textOf } from './demo-run.mjs';
import { siteAndBrowser } from './hooks.mjs';

const MODEL = join(root, 'tests/golden/lora/tiny.gguf');
const OTHER = join(root, 'tests/golden/models/llama3.gguf');
const NUMBERS = {
  '#s-steps': '6',
  '#s-batch': '1',
  '#s-length': '8',
  '#s-sample': '0',
  '#s-rank': '2',
  '#s-alpha': '4',
};

const at = siteAndBrowser();

const stateIs = (page, state) => untilState(page, state, 120_000);

test('demo trains an adapter, and asks for its base by name when the run is resumed', async () => {
  const { page, record } = await at.open('/demo/');
  await page.waitForSelector('#start:enabled', { timeout: 180_000 });
  assert.equal(await page.isHidden('#trained'), true, 'a new model has no base');
  await page.setInputFiles('#model-files', MODEL);
  await page.waitForFunction(() => document.querySelector('#t-all').textContent !== '', undefined, {
    timeout: 60_000,
  });
  assert.equal(
    await page.isChecked('input[name="trained"][value="all"]'),
    true,
    'a small model is trained as a whole',
  );
  const all = await textOf(page, '#memory-total');
  await page.check('input[name="trained"][value="adapter"]');
  for (const [id, value] of Object.entries(NUMBERS)) await page.fill(id, value);
  await page.waitForFunction(
    (before) =>
      document.querySelector('#memory-total').textContent !== before &&
      /adapter/.test(document.querySelector('#memory-parts').textContent),
    all,
    { timeout: 30_000 },
  );
  await page.waitForFunction(
    () => document.querySelector('#s-rate').valueAsNumber === 0.0002,
    undefined,
    { timeout: 10_000 },
  );
  const [adapter, weights] = await Promise.all(
    ['#t-adapter', '#t-all'].map((id) => textOf(page, id)),
  );
  assert.equal(adapter, await textOf(page, '#memory-total'));
  assert.notEqual(adapter, weights);
  await page.click('#start');
  await stateIs(page, 'done');
  assert.match(
    await textOf(page, '#run-base'),
    /^Adapter of rank 2: .* 14 matrices, on tiny\.gguf \(76 kB, header [0-9a-f]{12}\), .* on the GPU\.$/,
  );

  await page.reload();
  await page.waitForSelector('#goon:not([hidden])', { timeout: 60_000 });
  await page.click('#goon');
  await page.waitForSelector('#ask[open] #ask-files', { state: 'attached', timeout: 120_000 });
  assert.match(
    await textOf(page, '#ask-words'),
    /on a model that is not in its checkpoint: tiny\.gguf/,
  );
  await page.setInputFiles('#ask-files', OTHER);
  await page.waitForFunction(
    () => /not the bytes/.test(document.querySelector('#ask-words').textContent),
    undefined,
    { timeout: 60_000 },
  );
  await page.setInputFiles('#ask-files', {
    name: 'moved.gguf',
    mimeType: 'application/octet-stream',
    buffer: readFileSync(MODEL),
  });
  await stateIs(page, 'done');
  assert.match(await textOf(page, '#run-base'), /on tiny\.gguf/);
  assert.deepEqual(record.errors, []);
  await page.close();
});

test('the heading names the chosen files, even refused ones, and while a run is open those of the run', async () => {
  const { page, record } = await at.open('/demo/', { script: () => localStorage.clear() });
  await page.waitForSelector('#start:enabled', { timeout: 180_000 });
  const text = (name, words) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(words) });
  const titleIs = (wanted) =>
    page
      .waitForFunction(
        (title) => document.querySelector('#run-title').textContent === title,
        wanted,
        { timeout: 30_000 },
      )
      .catch(async () => assert.equal(await textOf(page, '#run-title'), wanted));
  const story = await textOf(page, '#run-story');
  await page.setInputFiles('#data-file', text('refused.jsonl', '{"neither": 1}\n'));
  await titleIs('A small new Llama reads refused.jsonl');
  await page.setInputFiles('#data-file', text('mine.txt', 'It is a truth. '.repeat(100)));
  await titleIs('A small new Llama reads mine.txt');
  await page.waitForFunction(
    (old) => document.querySelector('#run-story').textContent !== old,
    story,
    { timeout: 30_000 },
  );
  await page.check('input[name="data"][value="austen"]');
  await titleIs('A small new Llama reads Austen');
  await page.waitForFunction(
    (old) => document.querySelector('#run-story').textContent === old,
    story,
    { timeout: 30_000 },
  );
  for (const [id, value] of Object.entries({ steps: 1, batch: 1, length: 8, sample: 0 }))
    await page.fill(`#s-${id}`, String(value));
  await page.click('#start');
  await stateIs(page, 'done');
  await page.setInputFiles('#model-files', MODEL);
  await page.waitForFunction(() => document.querySelector('#t-all').textContent !== '', undefined, {
    timeout: 60_000,
  });
  assert.equal(await textOf(page, '#run-title'), 'A small new Llama reads Austen');
  await page.click('#again');
  await titleIs('tiny.gguf reads Austen');
  assert.deepEqual(record.errors, []);
  await page.close();
});

/** Runs in the page: counts workers that were not ended. */
function counting() {
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

test('a choice that changes while a start fails leaves no worker behind', async () => {
  const { page } = await at.open('/demo/', { script: counting });
  await page.waitForSelector('#start:enabled', { timeout: 60_000 });
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
    assert.match(await textOf(page, '#status'), /device\.limit/);
  }
  await page.waitForFunction((count) => window.workers() === count, wanted, { timeout: 20_000 });
  await page.close();
});

test('neither a cancelled start nor a completed one shows that its model was handed to a trainer', async () => {
  const { page } = await at.open('/demo/');
  await page.waitForSelector('#start:enabled', { timeout: 60_000 });
  await page.evaluate(() => {
    const told = (window.told = new Set());
    new MutationObserver(() => {
      for (const fault of document.querySelectorAll('.fault:not([hidden]), #status')) {
        const words = String(fault.textContent);
        if (/handed to a trainer/.test(words)) told.add(words);
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
  assert.deepEqual(await page.evaluate(() => [...window.told]), []);
  await page.close();
});
