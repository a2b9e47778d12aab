// The demo while its form changes: what is not wanted any more ends.
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

/** Runs in the page: counts workers that were not ended. */
function counting() {
  const live = new Set();
  window.Worker = class extends Worker {
    constructor(...all) {
      super(...all);
      live.add(this);
    }
    terminate() {
      live.delete(this);
      super.terminate();
    }
  };
  window.workers = () => live.size;
}

/** Runs in the page: starts a run, and waits until the page is no more starting. */
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
  const { page } = await browser.open(`${site.url}/demo/`, { script: counting });
  await page.waitForSelector('#start:enabled', { timeout: 60_000 });
  // That of the saved runs, and that of the model.
  const wanted = await page.evaluate(() => window.workers());
  // More than any device has, which is known when one is open.
  await page.fill('#s-batch', '1000000');
  let length = 65;
  // The page follows a choice after a while, which falls before, into and after what fails.
  for (let ahead = 140; ahead < 280; ahead += 7) {
    await page.fill('#s-length', String((length += 1)));
    await page.waitForTimeout(ahead);
    await page.evaluate(start);
    assert.match(await page.textContent('#status'), /device\.limit/);
  }
  await page.waitForFunction((count) => window.workers() === count, wanted, { timeout: 20_000 });
  await page.close();
});
