// A browser whose clock is moved, that answers no question about its storage, or refuses all of them: the run trains, warns, and what can be saved is.
// `web/test/storage-silent.test.ts` has each of the questions in turn.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { siteAndBrowser } from './hooks.mjs';
import { create, RUN, SHAPE, TEXT } from './scenario.mjs';

const at = siteAndBrowser();
/**
 * Returns a script that replaces the calls of the browser about its storage, in a page or a worker. Time limits for storage are shorter there.
 * @param {'silent' | 'refused'} how
 */
const replaced = (how) => `(() => {
  const silent = ${how === 'silent'}, real = setTimeout;
  const isLimit = (millis) => millis === 3000 || (!globalThis.window && (millis === 30_000 || (millis > 8000 && millis <= 10_000)));
  globalThis.setTimeout = (work, millis, ...more) => real(work, isLimit(millis) ? millis / 10 : millis, ...more);
  const now = performance.now.bind(performance);
  if (!globalThis.window) performance.now = () => now() * 10;
  const denied = () => new DOMException('denied for this document', 'SecurityError');
  const answer = silent ? () => new Promise(() => undefined) : () => Promise.reject(denied());
  const writable = { writable: true };
  LockManager.prototype.request = LockManager.prototype.query = answer;
  for (const name of ['estimate', 'persisted', 'persist', 'getDirectory']) if (name in StorageManager.prototype) StorageManager.prototype[name] = answer;
  IDBFactory.prototype.open = () => {
    if (!silent) throw denied();
    return Object.create(IDBOpenDBRequest.prototype, { addEventListener: { value: () => undefined }, onupgradeneeded: writable, onerror: writable });
  };
})();`;
/** Moves the clock at each look: a day back, a day ahead, an hour back. */
const MOVED = `(() => {
  const now = Date.now.bind(Date), shifts = [-86_400_000, 86_400_000, -3_600_000];
  let looks = 0;
  Date.now = () => now() + shifts[looks++ % 3];
})();`;

/** Opens a page in which `script` runs first, as it does in its workers. */
async function pageWith(script, path = '/') {
  const { page, record } = await at.open('/');
  await page.route(/worker[^/]*\.js$/, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: script + (await response.text()) });
  });
  await page.addInitScript(script);
  await page.goto(`${at.site.url}${path}`);
  return { page, record };
}

/** Trains three steps with a save after each; returns losses, warnings and what is listed. */
async function trained(script) {
  const { page, record } = await pageWith(script);
  const result = await page.evaluate(`(async (argument) => {
    const tabtune = await import('/dist/index.js');
    const { ok, storage } = await tabtune.support();
    const trainer = await (${create})(tabtune, argument);
    const warnings = [], losses = [];
    for await (const event of trainer.run()) {
      if (event.type === 'warning') warnings.push(event.code);
      if (event.type === 'step') losses.push(event.loss);
    }
    const listed = await trainer.checkpoints.list().then((all) => all.map(({ step }) => step), (thrown) => thrown.code);
    const exported = (await trainer.export()).size;
    await trainer.dispose();
    return { ok, indexedDb: storage.indexedDb, warnings: [...new Set(warnings)].sort(), losses, listed, exported };
  })(${JSON.stringify({ shape: SHAPE, text: TEXT, options: { ...RUN, steps: 3, saveEvery: 1, saveTotalLimit: 9 } })})`);
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await page.close();
  assert.deepEqual(record.errors, []);
  return result;
}

let plain;
test.beforeAll(async () => {
  plain = await trained('');
});

/** Unit tests move the clock of the store at every save. */
const moved = async () => {
  assert.deepEqual(plain.listed, [3, 2, 1, 0]);
  assert.deepEqual(await trained(MOVED), plain);
};
if (process.env.TABTUNE_FULL !== undefined)
  test('a clock that is moved at each save changes no order', moved);

test('a browser that answers nothing about its storage trains the same, warns and exports', async () => {
  const found = await trained(replaced('silent'));
  const { losses, exported } = plain;
  const warnings = ['storage.blocked', 'storage.silent'];
  assert.deepEqual(found, {
    ok: true,
    indexedDb: false,
    losses,
    exported,
    warnings,
    listed: 'STORAGE_BLOCKED',
  });
});

test('a browser that refuses all storage trains the same, warns and exports', async () => {
  const found = await trained(replaced('refused'));
  const { losses, exported } = plain;
  const warnings = ['run.private', 'run.storage', 'run.unlocked', 'storage.failed'];
  assert.deepEqual(found, {
    ok: true,
    indexedDb: false,
    losses,
    exported,
    warnings,
    listed: 'STORAGE_FAILED',
  });
});

test('the demo page starts in a browser whose storage does not answer, and says so', async () => {
  const { page, record } = await pageWith(replaced('silent'), '/demo/');
  await page.getByText('runs cannot be saved here').waitFor({ timeout: 30_000 });
  await page.locator('#status', { hasText: 'Ready' }).waitFor({ timeout: 30_000 });
  await page.locator('#start:enabled').waitFor();
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await page.close();
  assert.deepEqual(record.errors, []);
});
