// A browser whose clock is moved, that answers no question about its storage, or refuses all of them: the run trains, warns, and what can be saved is.
// `web/test/storage-silent.test.ts` has each of the questions in turn.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { siteAndBrowser } from './hooks.mjs';
import { inside, setting } from './scenario.mjs';

const at = siteAndBrowser();

/** Runs in a page or a worker: does nothing. */
const unchanged = () => undefined;

/**
 * Runs in a page or a worker: replaces the calls of the browser about its storage. Time limits for storage are shorter there.
 * @param {'silent' | 'refused'} how
 */
function replaced(how) {
  const [silent, real, inWorker] = [how === 'silent', setTimeout, !globalThis.window];
  const isLimit = (/** @type {number} */ millis) =>
    millis === 3000 || (inWorker && (millis === 30_000 || (millis > 8000 && millis <= 10_000)));
  /** @type {any} */ (globalThis).setTimeout = (
    /** @type {() => void} */ work,
    /** @type {number} */ millis,
    /** @type {unknown[]} */ ...more
  ) => real(work, isLimit(millis) ? millis / 10 : millis, ...more);
  const now = performance.now.bind(performance);
  if (inWorker) performance.now = () => now() * 10;
  const denied = () => new DOMException('denied for this document', 'SecurityError');
  /** @type {any} */
  const answer = () => (silent ? new Promise(() => undefined) : Promise.reject(denied()));
  LockManager.prototype.request = LockManager.prototype.query = answer;
  for (const name of ['estimate', 'persisted', 'persist', 'getDirectory'])
    if (name in StorageManager.prototype)
      Object.defineProperty(StorageManager.prototype, name, { value: answer });
  IDBFactory.prototype.open = () => {
    if (!silent) throw denied();
    const writable = { writable: true };
    return Object.create(IDBOpenDBRequest.prototype, {
      addEventListener: { value: () => undefined },
      onupgradeneeded: writable,
      onerror: writable,
    });
  };
}

/** Runs in a page or a worker: moves the clock at each look, a day back, a day ahead, an hour back. */
function moved() {
  const now = Date.now.bind(Date);
  const shifts = [-86_400_000, 86_400_000, -3_600_000];
  let looks = 0;
  Date.now = () => now() + shifts[looks++ % 3];
}

/**
 * Opens a page in which `script(how)` runs first, as it does in its workers.
 * @template A
 * @param {(how: A) => void} script @param {A} how
 */
async function pageWith(script, how, path = '/') {
  const { page, record } = await at.open('/');
  await page.route(/worker[^/]*\.js$/, async (route) => {
    const response = await route.fetch();
    const body = `(${script})(${JSON.stringify(how)});${await response.text()}`;
    await route.fulfill({ response, body });
  });
  await page.addInitScript(/** @type {(how: any) => void} */ (script), how);
  await page.goto(`${at.site.url}${path}`);
  return { page, record };
}

/**
 * Trains three steps with a save after each; returns losses, warnings and what is listed.
 * @template A
 * @param {(how: A) => void} script @param {A} how
 */
async function trained(script, how) {
  const { page, record } = await pageWith(script, how);
  const result = await inside(
    page,
    async ({ tabtune, create }, argument) => {
      const { ok, storage } = await tabtune.support();
      const trainer = await create(argument);
      const [warnings, losses] = [new Set(), /** @type {number[]} */ ([])];
      for await (const event of trainer.run()) {
        if (event.type === 'warning') warnings.add(event.code);
        if (event.type === 'step') losses.push(event.loss);
      }
      const listed = await trainer.checkpoints.list().then(
        (all) => all.map(({ step }) => step),
        (thrown) => thrown.code,
      );
      const exported = (await trainer.export()).size;
      await trainer.dispose();
      const { indexedDb } = storage;
      return { ok, indexedDb, warnings: [...warnings].sort(), losses, listed, exported };
    },
    setting({ steps: 3, saveEvery: 1, saveTotalLimit: 9 }),
  );
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await page.close();
  assert.deepEqual(record.errors, []);
  return result;
}

/** @type {Awaited<ReturnType<typeof trained>>} */
let plain;
test.beforeAll(async () => {
  plain = await trained(unchanged, undefined);
});

/** Unit tests move the clock of the store at every save. */
if (process.env.TABTUNE_FULL !== undefined)
  test('a clock that is moved at each save changes no order', async () => {
    assert.deepEqual(plain.listed, [3, 2, 1, 0]);
    assert.deepEqual(await trained(moved, undefined), plain);
  });

test('a browser that answers nothing about its storage trains the same, warns and exports', async () => {
  const found = await trained(replaced, 'silent');
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
  const found = await trained(replaced, 'refused');
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
  const { page, record } = await pageWith(replaced, 'silent', '/demo/');
  await page.getByText('runs cannot be saved here').waitFor({ timeout: 30_000 });
  await page.locator('#status', { hasText: 'Ready' }).waitFor({ timeout: 30_000 });
  await page.locator('#start:enabled').waitFor();
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await page.close();
  assert.deepEqual(record.errors, []);
});
